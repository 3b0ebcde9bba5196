/* server.c - /debug/pprof/ as Go's net/http/pprof has it, and gperftools' /pprof/. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/escape.h"
#include "agent/http.h"
#include "agent/local.h"
#include "agent/page.h"
#include "agent/profiles.h"
#include "agent/symbols.h"
#include "agent/thread.h"
#include "kiln.h"

enum { SYMBOLS_MAX = 64 << 20 }; /* bytes of an answer */
#define SECOND ((int64_t)1000000000)
#define SECONDS_MAX ((int64_t)1000000000)

static const char plain_text[] = "text/plain; charset=utf-8";
static const char html_text[] = "text/html; charset=utf-8";
static const char binary[] = "application/octet-stream";

/* ---- answers of all kinds */

static void answer_error(struct exchange *x, int status, const char *text)
{
	out_release(&x->body);
	x->status = status;
	x->type = plain_text;
	x->is_pprof_error = true;
	x->file[0] = '\0';
	out_text(&x->body, text);
	out_text(&x->body, "\n");
}

static void answer_reason(struct exchange *x, const char *what, const char *busy)
{
	struct out text = { 0 };

	out_format(&text, "%s: %s%c", what, errno == EBUSY ? busy : strerrordesc_np(errno), 0);
	answer_error(x, 500, text.p ? text.p : what);
	out_release(&text);
}

static void answer_file(struct exchange *x, const char *name, const char *suffix)
{
	size_t n = 0;

	x->type = binary;
	for (; *name && n < sizeof(x->file) - 16; name++)
		if (*name != '"' && *name != '\\' && (unsigned char)*name >= ' ')
			x->file[n++] = *name;
	strcpy(x->file + n, suffix);
}

/* What was collected, or could not be. */
static void answer_record(struct exchange *x, const struct agent_profile *p, struct record *r)
{
	record_write(&x->body, p, r);
	if (x->body.has_failed)
		answer_error(x, 500, "failed to collect profile");
}

/* ---- numbers as Go reads them: all of the text, or it is none */

static bool parse_integer(const char *s, int64_t *value)
{
	bool is_negative = *s == '-';

	*value = 0;
	s += *s == '-' || *s == '+';
	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9' || *value > INT64_MAX / 10 - 1)
			return false;
		*value = *value * 10 + (*s - '0');
	}
	if (is_negative)
		*value = -*value;
	return true;
}

static int64_t integer_of(const struct exchange *x, const char *name)
{
	char text[64];
	int64_t value;

	if (!request_value(&x->request, name, text, sizeof(text)) || !parse_integer(text, &value))
		return 0;
	return value;
}

/* Seconds with a fraction, in nanoseconds; 0: it is none. */
static int64_t parse_seconds(const char *s)
{
	int64_t value = 0, digit = SECOND;
	bool has_digit = false;

	for (; *s >= '0' && *s <= '9' && value < SECONDS_MAX; s++, has_digit = true)
		value = value * 10 + (*s - '0');
	value *= SECOND;
	if (*s == '.')
		for (s++; *s >= '0' && *s <= '9'; s++, has_digit = true)
			value += (digit /= 10) * (*s - '0');
	return *s || !has_digit ? 0 : value;
}

static int64_t later(int64_t seconds)
{
	return now_ns() + (seconds < SECONDS_MAX ? seconds : SECONDS_MAX) * SECOND;
}

/* ---- what takes its time: CPU, wall, trace */

static void finish_cpu(struct exchange *x)
{
	struct record r = { .profile = &profile_cpu };

	if (cpu_stop(&r))
		answer_record(x, &profile_cpu, &r);
	else
		answer_error(x, 500, "failed to collect profile");
	record_release(&r);
}

static void answer_cpu(struct exchange *x)
{
	int64_t seconds = integer_of(x, "seconds");

	if (!cpu_start((int)settings.cpu_rate)) {
		answer_reason(x, "Could not enable CPU profiling", "cpu profiling already in use");
		return;
	}
	answer_file(x, "profile", "");
	x->until = later(seconds > 0 ? seconds : 30);
	x->finish = finish_cpu;
}

static void finish_wall(struct exchange *x)
{
	const struct agent_profile *p = profile_find("wall");
	struct record r = { .profile = p };

	if (wall_stop(&r))
		answer_record(x, p, &r);
	else
		answer_error(x, 500, "failed to collect profile");
	record_release(&r);
}

static void answer_wall(struct exchange *x)
{
	int64_t seconds = integer_of(x, "seconds");

	if (!wall_start((int)settings.wall_rate)) {
		answer_reason(x, "Could not enable wall profiling",
			      "wall profiling already in use");
		return;
	}
	answer_file(x, "wall", "");
	x->until = later(seconds > 0 ? seconds : 30);
	x->finish = finish_wall;
}

static void finish_trace(struct exchange *x)
{
	trace_stop(&x->body);
}

static void answer_trace(struct exchange *x)
{
	char text[64];
	int64_t duration =
		request_value(&x->request, "seconds", text, sizeof(text)) ? parse_seconds(text) : 0;

	if (!trace_start()) {
		answer_reason(x, "Could not enable tracing", "tracing is already enabled");
		return;
	}
	answer_file(x, "trace", "");
	x->until = now_ns() + (duration > 0 ? duration : SECOND);
	x->finish = finish_trace;
}

/* ---- differences */

static void set_mutex(int64_t rate)
{
	mutex_set_fraction((int)rate);
}

static int64_t get_mutex(void)
{
	return mutex_fraction();
}

/* Profiles that are off unless asked for: whoever wants to see some seconds asks. */
static struct lent {
	const char *name;
	int64_t (*get)(void);
	void (*set)(int64_t rate);
	int64_t rate;
	unsigned users; /* that wait now */
} lent[] = { { "mutex", get_mutex, set_mutex, 0, 0 },
	     { "block", block_rate, block_set_rate, 0, 0 } };

static struct lent *lend(const struct exchange *x, const struct agent_profile *p)
{
	for (unsigned i = 0; i < sizeof(lent) / sizeof(*lent); i++) {
		struct lent *l = &lent[i];

		if (strcmp(l->name, p->name) != 0 || (!l->users && l->get()))
			continue;
		if (l->users++ == 0) {
			int64_t rate = integer_of(x, "rate");

			l->rate = rate > 0 && rate < INT32_MAX ? rate : 1;
			l->set(l->rate);
		}
		return l;
	}
	return NULL;
}

/* Unless the program has set another rate meanwhile. */
static void give_back(struct lent *l)
{
	if (l && --l->users == 0 && l->get() == l->rate)
		l->set(0);
}

struct delta {
	const struct agent_profile *profile;
	struct lent *lent;
	struct record before;
};

static void answer_delta(struct exchange *x, const struct delta *d)
{
	struct record now = { 0 };

	if (!profile_collect(d->profile, &now)) {
		answer_error(x, 500, "failed to collect profile");
	} else if (!record_subtract(&now, &d->before)) {
		answer_error(x, 500, "failed to compute delta");
	} else {
		answer_file(x, d->profile->name, "-delta");
		answer_record(x, d->profile, &now);
	}
	record_release(&now);
}

static void finish_delta(struct exchange *x)
{
	struct delta *d = x->data;

	if (x->has_left)
		answer_error(x, 500, "context canceled");
	else
		answer_delta(x, d);
	give_back(d->lent);
	record_release(&d->before);
	pages_unmap(d, sizeof(*d));
}

static void begin_delta(struct exchange *x, const struct agent_profile *p, int64_t seconds)
{
	struct delta *d = pages_map(sizeof(*d));

	if (!d) {
		answer_error(x, 500, "failed to collect profile");
		return;
	}
	d->profile = p;
	d->lent = lend(x, p);
	if (!profile_collect(p, &d->before)) {
		give_back(d->lent);
		record_release(&d->before);
		pages_unmap(d, sizeof(*d));
		answer_error(x, 500, "failed to collect profile");
		return;
	}
	x->data = d;
	x->until = later(seconds);
	x->finish = finish_delta;
}

static void check_delta(struct exchange *x, const struct agent_profile *p, const char *text)
{
	int64_t seconds;

	if (!parse_integer(text, &seconds) || seconds <= 0)
		answer_error(x, 400, "invalid value for \"seconds\" - must be a positive integer");
	else if (!p->has_delta)
		answer_error(x, 400,
			     "\"seconds\" parameter is not supported for this profile "
			     "type");
	else if (integer_of(x, "debug") != 0)
		answer_error(x, 400, "seconds and debug params are incompatible");
	else
		begin_delta(x, p, seconds);
}

/* ---- profiles as they are now */

static void answer_now(struct exchange *x, const struct agent_profile *p)
{
	int debug = (int)integer_of(x, "debug");
	struct record r = { 0 };

	if (!profile_collect(p, &r)) {
		answer_error(x, 500, "failed to collect profile");
	} else if (debug == 0) {
		answer_file(x, p->name, "");
		answer_record(x, p, &r);
	} else {
		x->type = plain_text;
		(p->write_text ? p->write_text : record_write_text)(&x->body, p, &r, debug);
	}
	record_release(&r);
}

static void answer_profile(struct exchange *x, const struct agent_profile *p)
{
	char seconds[64];

	if (request_value(&x->request, "seconds", seconds, sizeof(seconds)) && *seconds) {
		check_delta(x, p, seconds);
		return;
	}
	if (strcmp(p->name, "heap") == 0 && integer_of(x, "gc") > 0)
		malloc_trim(0);
	answer_now(x, p);
}

/* gperftools' names. */
static void answer_heap(struct exchange *x)
{
	answer_profile(x, profile_find("heap"));
}

static void answer_contention(struct exchange *x)
{
	answer_profile(x, profile_find("mutex"));
}

static void answer_growth(struct exchange *x)
{
	answer_profile(x, &profile_growth);
}

/* ---- cmdline */

static void answer_cmdline(struct exchange *x)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	char some[4096];
	ssize_t n;

	x->type = plain_text;
	if (fd < 0)
		return;
	while ((n = read(fd, some, sizeof(some))) > 0)
		out_add(&x->body, some, (size_t)n);
	close(fd);
	if (x->body.n) /* which ends in a NUL, and Go's does not */
		x->body.n--;
}

/* ---- symbol: addresses with '+' between them */

static void end_word(struct exchange *x)
{
	char name[4096], *end;
	uint64_t address, offset;

	x->rest[x->nrest < sizeof(x->rest) ? x->nrest : 0] = '\0';
	x->nrest = 0;
	if (x->rest[0] < '0' || x->rest[0] > '9')
		return;
	address = strtoull(x->rest, &end, 0);
	if (*end || !address || x->body.n > SYMBOLS_MAX)
		return;
	if (symbol_name(frame_of(address), name, sizeof(name), &offset))
		out_format(&x->body, "%#llx %s\n", (unsigned long long)address, name);
}

/* Of the last one a part may come with the next piece. */
static void take_words(struct exchange *x, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '+')
			end_word(x);
		else if (x->nrest < sizeof(x->rest))
			x->rest[x->nrest++] = p[i];
	}
}

static void begin_symbols(struct exchange *x)
{
	if (x->body.n == 0)
		out_text(&x->body, "num_symbols: 1\n");
}

static bool is_symbol(const struct exchange *x)
{
	return strcmp(x->request.path, "/debug/pprof/symbol") == 0 ||
	       strcmp(x->request.path, "/pprof/symbol") == 0;
}

static bool take_body(struct exchange *x, const char *p, size_t n)
{
	if (!is_symbol(x) || x->request.method != METHOD_POST)
		return false;
	begin_symbols(x);
	take_words(x, p, n);
	return true;
}

static void answer_symbol(struct exchange *x)
{
	x->type = plain_text;
	begin_symbols(x);
	if (x->request.method != METHOD_POST)
		take_words(x, x->request.query, strlen(x->request.query));
	end_word(x);
}

/* ---- where to go */

static void answer_index(struct exchange *x)
{
	x->type = html_text;
	page_index(&x->body);
}

static const struct {
	const char *path;
	void (*answer)(struct exchange *x);
} routes[] = {
	{ "/debug/pprof/", answer_index },	{ "/debug/pprof/cmdline", answer_cmdline },
	{ "/debug/pprof/profile", answer_cpu }, { "/debug/pprof/symbol", answer_symbol },
	{ "/debug/pprof/trace", answer_trace }, { "/debug/pprof/wall", answer_wall },
	{ "/pprof/cmdline", answer_cmdline },	{ "/pprof/contention", answer_contention },
	{ "/pprof/growth", answer_growth },	{ "/pprof/heap", answer_heap },
	{ "/pprof/profile", answer_cpu },	{ "/pprof/symbol", answer_symbol },
};

static void answer_redirect(struct exchange *x, const char *path)
{
	struct out url = { 0 };

	out_url(&url, path);
	if (*x->request.query) {
		out_text(&url, "?");
		out_text(&url, x->request.query);
	}
	out_add(&url, "", 1);
	x->status = 301;
	x->is_guessable = true;
	if (!url.has_failed && url.n <= sizeof(x->location))
		memcpy(x->location, url.p, url.n);
	if (x->request.method == METHOD_GET || x->request.method == METHOD_HEAD)
		x->type = html_text;
	if (x->request.method == METHOD_GET) {
		out_text(&x->body, "<a href=\"");
		out_html(&x->body, x->location);
		out_text(&x->body, "\">Moved Permanently</a>.\n\n");
	}
	out_release(&url);
}

/* Without "//", "/./" and "/../", as Go's mux wants it. `to` has room for as much and a slash. */
static void clean_path(char *to, const char *path)
{
	size_t n = 0;

	while (*path) {
		size_t part = strcspn(++path, "/");

		if (part == 2 && memcmp(path, "..", 2) == 0) {
			while (n > 0 && to[--n] != '/')
				;
		} else if (part && !(part == 1 && *path == '.')) {
			to[n++] = '/';
			memcpy(to + n, path, part);
			n += part;
		}
		path += part;
		if (*path == '/' && !path[1])
			break;
	}
	if (*path || n == 0)
		to[n++] = '/';
	to[n] = '\0';
}

static void answer_known(struct exchange *x)
{
	static const char prefix[] = "/debug/pprof/";
	const char *path = x->request.path;
	const struct agent_profile *p;

	for (unsigned i = 0; i < sizeof(routes) / sizeof(*routes); i++)
		if (strcmp(path, routes[i].path) == 0) {
			routes[i].answer(x);
			return;
		}
	if (strncmp(path, prefix, sizeof(prefix) - 1) != 0) {
		x->status = 404;
		x->type = plain_text;
		out_text(&x->body, "404 page not found\n");
		return;
	}
	p = profile_find(path + sizeof(prefix) - 1);
	if (p)
		answer_profile(x, p);
	else
		answer_error(x, 404, "Unknown profile");
}

static void answer(struct exchange *x)
{
	const char *path = x->request.path;
	char *clean = pages_map(strlen(path) + 2);

	modules_update(true);
	if (!*path) { /* "*" */
		x->status = 400;
		x->is_guessable = true;
	} else if (clean) {
		clean_path(clean, path);
		if (strcmp(clean, "/debug/pprof") == 0)
			strcat(clean, "/");
		if (strcmp(clean, path) != 0)
			answer_redirect(x, clean);
		else
			answer_known(x);
	}
	pages_unmap(clean, strlen(path) + 2);
}

static const struct http_handler handler = { take_body, answer };

/* ---- the part */

/* The agent's thread is to end it, and to give back what reading names took. */
static int serve(const char *address, bool later)
{
	int failed = http_listen(address, &handler, later);

	if (!failed)
		agent_start_thread();
	return failed;
}

static void serve_at_start(void)
{
	if (settings.pprof_addr)
		serve(settings.pprof_addr, true);
}

static void forget(void)
{
	http_forget();
	symbols_forget();
	for (unsigned i = 0; i < sizeof(lent) / sizeof(*lent); i++)
		lent[i].users = 0;
}

KILN_API int kiln_serve(const char *address)
{
	int failed, kept = errno;

	if (agent_is_inert)
		return -EPERM;
	if (!address)
		return -EINVAL;
	agent_enter();
	failed = serve(address, false);
	if (!failed) {
		threads_watch();
		if (!heap_rate() && settings.heap_rate > 0)
			heap_set_rate((size_t)settings.heap_rate);
	}
	agent_leave();
	errno = kept;
	return failed;
}

const struct agent_part part_server = {
	.name = "server",
	.init = serve_at_start,
	.work = symbols_trim,
	.before_fork = http_before_fork,
	.after_fork = http_after_fork,
	.in_child = forget,
	.at_exit = http_end,
};
