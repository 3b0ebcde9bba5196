#include "fetch/collect.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "base/unit.h"
#include "fetch/remote.h"
#include "fetch/save.h"
#include "fetch/url.h"

enum {
	TIME_BYTES = sizeof("2020-10-01-22:08:40"),
	MAX_REASONS = 100, /* kept for the summary */
	STACK_BYTES = 1 << 20,
};

#define PROFILES "/debug/pprof"

struct reason {
	char *text;
	size_t count;
};

struct collector {
	const struct collect_params *params;
	int done_fd; /* an eventfd: targets that have finished a round */
	atomic_bool stopped, canceled;
	char folder[TIME_BYTES]; /* of this round */

	pthread_mutex_t lock; /* of what follows, and of params->tell */
	size_t *nsaved;	      /* of each type */
	size_t nfailed, nrounds;
	vec(struct reason) reasons;
};

/* One target in one round. */
struct visit {
	struct collector *c;
	const struct collect_target *target;
};

/* ---- targets */

static bool is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!isalnum((unsigned char)s.p[i]) && !memchr("._-", s.p[i], 3))
			return false;
	return s.n && s.p[0] != '.';
}

/* A file's name that says the same: host:6060 becomes host_6060. */
static const char *service_name(struct arena *a, struct str host)
{
	char *name = str_dup(a, host);

	for (size_t i = 0; i < host.n; i++)
		if (!is_name((struct str){ name + i, 1 }) && !(i && name[i] == '.'))
			name[i] = '_';
	return name;
}

bool collect_target_parse(struct arena *a, const char *text, struct collect_target *out,
			  struct err *e)
{
	struct str rest = str_of(text), name = str_cut(&rest, '=');
	struct url_source source;
	struct buf url = { 0 };
	struct str socket;
	struct url u;

	if (!rest.p || !is_name(name)) {
		rest = str_of(text);
		name = STR("");
	}
	if (!url_resolve(a, rest, 0, 0, &source) || !url_parse(a, &u, str_of(source.url)))
		return err_set(e, ERR_USAGE,
			       "%s: not a target such as host:6060 or "
			       "name=http://host:6060",
			       text);
	socket = http_socket(str_of(source.url));
	out->service =
		name.n ? str_dup(a, name) : service_name(a, socket.n ? path_base(socket) : u.host);
	/* A path in front of Go's is kept; a profile's own name is not. */
	name.n = str_find(u.path, STR(PROFILES));
	if (name.n == STR_NONE) {
		while (u.path.n && u.path.p[u.path.n - 1] == '/')
			u.path.n--;
		name.n = u.path.n;
	}
	buf_add(&url, u.path.p, name.n);
	buf_puts(&url, PROFILES);
	url_set_path(&u, str_of(str_dup(a, buf_view(&url))));
	u.query = u.fragment = STR("");
	url.n = 0;
	url_write(&url, &u);
	out->url = str_dup(a, buf_view(&url));
	buf_release(&url);
	return true;
}

/* ---- reporting */

static void report_failure(struct visit *v, const char *type, const struct err *why)
{
	struct collector *c = v->c;
	struct buf line = { 0 };
	size_t i = 0;

	buf_printf(&line, "%s %s: %s", v->target->service, type, why->text);
	pthread_mutex_lock(&c->lock);
	c->nfailed++;
	while (i < c->reasons.n && !str_eq(str_of(c->reasons.at[i].text), buf_view(&line)))
		i++;
	if (i < c->reasons.n) {
		c->reasons.at[i].count++;
	} else if (i < MAX_REASONS) {
		char *text = xmalloc(line.n + 1);

		memcpy(text, line.p, line.n);
		text[line.n] = '\0';
		vec_push(&c->reasons, (struct reason){ text, 1 });
	}
	buf_char(&line, '\n');
	c->params->tell(c->params->tell_ctx, true, buf_view(&line));
	pthread_mutex_unlock(&c->lock);
	buf_release(&line);
}

static void report_saved(struct visit *v, size_t type, const char *path, size_t bytes)
{
	struct collector *c = v->c;
	struct buf line = { 0 };

	buf_printf(&line, "%s ", path);
	unit_label(&line, (int64_t)bytes, STR("B"), STR("auto"));
	buf_char(&line, '\n');
	pthread_mutex_lock(&c->lock);
	c->nsaved[type]++;
	c->params->tell(c->params->tell_ctx, false, buf_view(&line));
	pthread_mutex_unlock(&c->lock);
	buf_release(&line);
}

/* ---- one profile */

static void local_time(char text[TIME_BYTES])
{
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(text, TIME_BYTES, "%Y-%m-%d-%H:%M:%S", &tm);
}

/* What is no profile is not kept; what is none of pprof's own format becomes one. */
static bool check_profile(const struct collect_params *params, struct buf *body, struct err *e)
{
	struct arena a = { 0 };
	struct strings strings;
	struct profile p;
	bool ok, is_gzip = body->n > 1 && memcmp(body->p, "\x1f\x8b", 2) == 0;

	strings_init(&strings);
	ok = profile_read(&p, &a, &strings, buf_view(body), params->max_bytes, e);
	if (ok && !is_gzip) {
		body->n = 0;
		profile_encode_gzip(body, &p);
	}
	strings_release(&strings);
	arena_release(&a);
	return ok;
}

/* Under another name first, so that nobody finds half a file. */
static bool write_file(const char *dir, const char *path, const char *temporary,
		       const struct buf *bytes, struct err *e)
{
	FILE *f;
	bool ok;

	if (!save_make_directory(dir, e))
		return false;
	f = fopen(temporary, "wxe");
	if (!f)
		return err_system(e, "open", temporary);
	ok = fwrite(bytes->p, 1, bytes->n, f) == bytes->n;
	ok = fclose(f) == 0 && ok;
	if (!ok)
		err_system(e, "write", temporary);
	else if (rename(temporary, path) != 0)
		ok = err_system(e, "rename", path);
	if (!ok)
		unlink(temporary);
	return ok;
}

static bool save(struct visit *v, size_t type, const char *when, const struct buf *bytes,
		 struct err *e)
{
	const struct collect_params *params = v->c->params;
	struct buf dir = { 0 }, name = { 0 }, path = { 0 };
	bool ok;

	path_join(&dir, str_of(params->out_dir), str_of(v->c->folder));
	buf_char(&dir, '\0');
	buf_printf(&name, "%s-%s-%s.pb.gz", v->target->service, params->types[type], when);
	buf_printf(&path, "%s/%.*s%c%s/.%.*s.tmp%c", dir.p, STR_ARG(buf_view(&name)), '\0', dir.p,
		   STR_ARG(buf_view(&name)), '\0');
	ok = write_file(dir.p, path.p, path.p + strlen(path.p) + 1, bytes, e);
	if (ok)
		report_saved(v, type, path.p, bytes->n);
	buf_release(&dir);
	buf_release(&name);
	buf_release(&path);
	return ok;
}

static bool fetch_profile(struct visit *v, size_t type, struct http_response *r, struct err *e)
{
	const struct collect_params *params = v->c->params;
	bool is_cpu = strcmp(params->types[type], "cpu") == 0;
	struct arena a = { 0 };
	struct buf url = { 0 };
	struct url_source source;
	struct http_request q = { .max_bytes = params->max_bytes, .canceled = &v->c->canceled };
	bool ok;

	buf_printf(&url, "%s/%s", v->target->url, is_cpu ? "profile" : params->types[type]);
	ok = url_resolve(&a, buf_view(&url), is_cpu ? params->seconds : 0, params->timeout,
			 &source);
	if (ok) {
		q.url = source.url;
		q.timeout_ms = source.timeout_ms;
		ok = remote_send(params->remote, &q, r, e) && check_profile(params, &r->body, e);
	} else {
		err_set(e, ERR_USAGE, "%.*s: not a URL", STR_ARG(buf_view(&url)));
	}
	buf_release(&url);
	arena_release(&a);
	return ok;
}

static void *visit_target(void *arg)
{
	struct visit *v = arg;
	const struct collect_params *params = v->c->params;

	for (size_t i = 0; i < params->ntypes && !atomic_load(&v->c->stopped); i++) {
		struct http_response r = { 0 };
		char when[TIME_BYTES];
		struct err e;

		local_time(when);
		if (!fetch_profile(v, i, &r, &e) || !save(v, i, when, &r.body, &e))
			report_failure(v, params->types[i], &e);
		http_response_release(&r);
	}
	eventfd_write(v->c->done_fd, 1);
	return NULL;
}

/* ---- rounds */

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits until then, or for a target or a signal to stop. Negative: for ever. Returns how many
 * targets have finished. */
static size_t wait_for_event(struct collector *c, int64_t until_ms)
{
	struct pollfd fds[2] = { { .fd = c->done_fd, .events = POLLIN },
				 { .fd = c->params->stop_fd, .events = POLLIN } };
	int64_t left = until_ms < 0 ? -1 : until_ms - now_ms();
	char byte[128]; /* as large as what a signalfd gives */
	eventfd_t n = 0;

	if (until_ms >= 0 && left < 0)
		left = 0;
	if (poll(fds, 2, left > INT32_MAX ? INT32_MAX : (int)left) <= 0)
		return 0;
	if (fds[1].revents && read(c->params->stop_fd, byte, sizeof(byte)) > 0) {
		if (atomic_exchange(&c->stopped, true))
			atomic_store(&c->canceled, true);
	}
	if (fds[0].revents)
		eventfd_read(c->done_fd, &n);
	return (size_t)n;
}

static void run_round(struct collector *c, struct visit *visits, pthread_t *threads)
{
	size_t started = 0, ndone = 0;
	pthread_attr_t attr;

	local_time(c->folder);
	c->nrounds++;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (size_t i = 0; i < c->params->ntargets; i++) {
		visits[i] = (struct visit){ c, &c->params->targets[i] };
		if (pthread_create(&threads[started], &attr, visit_target, &visits[i]) == 0)
			started++;
		else
			report_failure(&visits[i], "all",
				       &(struct err){ ERR_LIMIT, "no more threads can be had" });
	}
	pthread_attr_destroy(&attr);
	while (ndone < started)
		ndone += wait_for_event(c, -1);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

static void run_rounds(struct collector *c)
{
	const struct collect_params *params = c->params;
	struct visit *visits = xcalloc(params->ntargets, sizeof(*visits));
	pthread_t *threads = xcalloc(params->ntargets, sizeof(*threads));
	int64_t start = now_ms(), next = start;

	for (;;) {
		run_round(c, visits, threads);
		if (!params->every_ms)
			break;
		/* A round that took too long costs those that it ran into. */
		do
			next += params->every_ms;
		while (next < now_ms());
		if (params->for_ms && next - start >= params->for_ms)
			break;
		while (!atomic_load(&c->stopped) && now_ms() < next)
			wait_for_event(c, next);
		if (atomic_load(&c->stopped))
			break;
	}
	free(visits);
	free(threads);
}

static size_t summarize(const struct collector *c, struct buf *out)
{
	size_t nsaved = 0, nlisted = 0;

	for (size_t i = 0; i < c->params->ntypes; i++)
		nsaved += c->nsaved[i];
	buf_printf(out, "saved %zu profile%s in %zu round%s", nsaved, nsaved == 1 ? "" : "s",
		   c->nrounds, c->nrounds == 1 ? "" : "s");
	for (size_t i = 0; i < c->params->ntypes; i++)
		buf_printf(out, "%s%zu %s", i ? ", " : ": ", c->nsaved[i], c->params->types[i]);
	buf_printf(out, "; %zu failed\n", c->nfailed);
	for (size_t i = 0; i < c->reasons.n; i++) {
		buf_printf(out, "  %zu x %s\n", c->reasons.at[i].count, c->reasons.at[i].text);
		nlisted += c->reasons.at[i].count;
	}
	if (nlisted < c->nfailed)
		buf_printf(out, "  %zu for other reasons\n", c->nfailed - nlisted);
	return nsaved;
}

bool collect_run(const struct collect_params *params, struct buf *summary, struct err *e)
{
	struct collector c = { .params = params, .done_fd = eventfd(0, EFD_CLOEXEC) };
	size_t nsaved;

	if (c.done_fd < 0)
		return err_system(e, "eventfd", "");
	pthread_mutex_init(&c.lock, NULL);
	c.nsaved = xcalloc(params->ntypes, sizeof(*c.nsaved));
	run_rounds(&c);
	nsaved = summarize(&c, summary);
	for (size_t i = 0; i < c.reasons.n; i++)
		free(c.reasons.at[i].text);
	vec_release(&c.reasons);
	free(c.nsaved);
	pthread_mutex_destroy(&c.lock);
	close(c.done_fd);
	return nsaved || err_set(e, ERR_NOTFOUND, "nothing could be fetched");
}
