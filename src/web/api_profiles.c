/* api_profiles.c - profiles that are opened and closed while the server runs. */
#include "web/names.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/number.h"
#include "base/path.h"

enum { MAX_NAME_BYTES = 200 };

bool api_profiles(struct api_call *q, struct buf *out, struct err *e)
{
	(void)e;
	buf_char(out, '{');
	api_put_profiles(out, q);
	buf_puts(out, "}\n");
	return true;
}

/* A file in memory: what reads profiles reads files. */
static int make_file(struct str bytes, struct err *e)
{
	int fd = memfd_create("profile", MFD_CLOEXEC);
	size_t done = 0;

	while (fd >= 0 && done < bytes.n) {
		ssize_t n = write(fd, bytes.p + done, bytes.n - done);

		if (n < 0 && errno != EINTR) {
			close(fd);
			fd = -1;
		}
		done += n > 0 ? (size_t)n : 0;
	}
	if (fd < 0)
		err_system(e, "write", "the profile to memory");
	return fd;
}

/* The error's text with `to` instead of `from`, which the person does not know. */
static void rename_in(struct err *e, struct str from, struct str to)
{
	struct buf text = { 0 };
	struct str rest = str_of(e->text);
	size_t at;

	while ((at = str_find(rest, from)) != STR_NONE) {
		buf_add(&text, rest.p, at);
		buf_str(&text, to);
		rest = str_from(rest, at + from.n);
	}
	buf_str(&text, rest);
	err_set(e, e->kind, "%.*s", STR_ARG(buf_view(&text)));
	buf_release(&text);
}

/* The base is one of those that the line's options name; "": none. */
static struct loaded *load_less(struct api_call *q, char *source, struct analyze_options *base,
				struct str name, struct err *e)
{
	struct command_line line = *q->site->params.c;
	struct buf warnings = { 0 };
	struct loaded *l;

	line.sources = &source;
	line.nsources = 1;
	line.options.base = base->base;
	line.options.diff_base = base->diff_base;
	line.options.normalize = base->normalize;
	if (name.n > MAX_NAME_BYTES)
		name.n = MAX_NAME_BYTES;
	l = profiles_load(&q->site->profiles, &line, str_dup(q->a, name), &warnings, e);
	if (!l && e->kind == ERR_NOTFOUND && warnings.n) { /* that has the reason */
		struct str rest = buf_view(&warnings), first = str_cut(&rest, '\n');

		err_set(e, ERR_FORMAT, "%.*s", STR_ARG(first));
	}
	if (!l)
		rename_in(e, str_of(source), name);
	buf_release(&warnings);
	return l;
}

static struct loaded *load(struct api_call *q, char *source, struct str name, struct err *e)
{
	struct analyze_options none = { .base = "", .diff_base = "" };

	return load_less(q, source, &none, name, e);
}

static struct loaded *load_bytes(struct api_call *q, struct str bytes, struct str name,
				 struct err *e)
{
	int fd = make_file(bytes, e);
	char path[64];
	struct loaded *l;

	if (fd < 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	l = load(q, path, name, e);
	close(fd);
	return l;
}

static struct loaded *load_body(struct api_call *q, struct err *e)
{
	struct str name = path_base(api_param(q, "name"));

	if (!q->http->body.n) {
		err_set(e, ERR_USAGE, "there is no profile in the request");
		return NULL;
	}
	return load_bytes(q, q->http->body, str_eq(name, STR(".")) ? STR("profile") : name, e);
}

/* Only servers: files of this machine are not for whoever sees the page. */
static struct loaded *load_url(struct api_call *q, struct str url, struct err *e)
{
	if (memchr(url.p, '\0', url.n) ||
	    !(str_has_prefix(url, STR("http://")) || str_has_prefix(url, STR("https://")))) {
		err_set(e, ERR_USAGE, "the url must begin with http:// or https://");
		return NULL;
	}
	return load(q, str_dup(q->a, url), url, e);
}

static bool fail_adding(struct api_call *q, const struct err *e)
{
	q->status = e->kind == ERR_LIMIT ? 413 : 400;
	return false;
}

static void put_loaded(struct api_call *q, struct loaded *l, struct buf *out)
{
	pthread_mutex_lock(&l->lock);
	name_functions(q->site, l);
	pthread_mutex_unlock(&l->lock);
	buf_str(out, buf_view(&l->about));
	profiles_drop(&q->site->profiles, l);
}

static bool put_added(struct api_call *q, struct loaded *l, struct buf *out, const struct err *e)
{
	if (!l)
		return fail_adding(q, e);
	put_loaded(q, l, out);
	buf_char(out, '\n');
	return true;
}

/* ---- both sides of a difference, as difffolded.pl writes them in two columns */

static bool has_base(const struct profile *p)
{
	for (uint32_t i = 0; i < p->nsamples; i++)
		if (label_set_is_base(p, p->samples[i].labels))
			return true;
	return false;
}

/* `l` has been closed. */
static struct loaded *load_side(struct api_call *q, struct loaded *l, bool is_base, struct err *e)
{
	struct profile side = l->session.profile;
	struct arena arena = { 0 };
	struct buf bytes = { 0 }, name = { 0 };
	struct loaded *loaded;

	profile_take_side(&arena, &side, is_base);
	profile_encode(&bytes, &side);
	buf_printf(&name, "%.*s, %s", MAX_NAME_BYTES - 20, l->name, is_base ? "before" : "after");
	loaded = load_bytes(q, buf_view(&bytes), buf_view(&name), e);
	buf_release(&name);
	buf_release(&bytes);
	arena_release(&arena);
	return loaded;
}

/* {"before":{...},"after":{...}}: two profiles instead of `l`, which goes. */
static bool put_sides(struct api_call *q, struct loaded *l, struct buf *out, struct err *e)
{
	struct profiles *all = &q->site->profiles;
	struct loaded *before, *after;

	profiles_remove(all, l->id); /* makes room */
	pthread_mutex_lock(&l->lock);
	before = load_side(q, l, true, e);
	after = before ? load_side(q, l, false, e) : NULL;
	pthread_mutex_unlock(&l->lock);
	profiles_drop(all, l);
	if (!after) {
		if (before)
			profiles_remove(all, before->id);
		profiles_drop(all, before);
		return fail_adding(q, e);
	}
	buf_puts(out, "{\"before\":");
	put_loaded(q, before, out);
	buf_puts(out, ",\"after\":");
	put_loaded(q, after, out);
	buf_puts(out, "}\n");
	return true;
}

bool api_add_profile(struct api_call *q, struct buf *out, struct err *e)
{
	struct str url = api_param(q, "url");
	struct loaded *l = url.n ? load_url(q, url, e) : load_body(q, e);

	if (l && api_flag(q, "sides") && has_base(&l->session.profile))
		return put_sides(q, l, out, e);
	return put_added(q, l, out, e);
}

/* ---- one less the other */

static int make_copy(const struct loaded *l, struct err *e)
{
	struct buf bytes = { 0 };
	int fd;

	profile_encode(&bytes, &l->session.profile);
	fd = make_file(buf_view(&bytes), e);
	buf_release(&bytes);
	return fd;
}

static struct loaded *load_difference(struct api_call *q, int before, int after, struct err *e)
{
	bool is_marked = str_eq(api_param(q, "mode"), STR("diff_base"));
	char base[64], source[64];
	struct analyze_options o = { .base = is_marked ? "" : base,
				     .diff_base = is_marked ? base : "",
				     .normalize = q->options.normalize };
	struct buf name = { 0 };
	struct loaded *l;

	snprintf(base, sizeof(base), "/proc/self/fd/%d", before);
	snprintf(source, sizeof(source), "/proc/self/fd/%d", after);
	buf_printf(&name, "%.80s %s-%s=%.80s", q->other->name, o.normalize ? "-normalize " : "",
		   is_marked ? "diff_base" : "base", q->profile->name);
	l = load_less(q, source, &o, buf_view(&name), e);
	buf_release(&name);
	return l;
}

/* Both are read again, as the command line does it: so the numbers are the same. */
bool api_subtract(struct api_call *q, struct buf *out, struct err *e)
{
	struct loaded *l = NULL;
	int before, after;

	if (!q->other)
		return err_set(e, ERR_USAGE, "b must name another profile than a");
	before = make_copy(q->profile, e);
	after = before < 0 ? -1 : make_copy(q->other, e);
	api_unlock(q);
	if (after >= 0) {
		l = load_difference(q, before, after, e);
		close(after);
	}
	if (before >= 0)
		close(before);
	return put_added(q, l, out, e);
}

bool api_remove_profile(struct api_call *q, struct buf *out, struct err *e)
{
	struct str text = api_param(q, "id");
	uint64_t id;

	if (number_parse_uint(text, 10, &id) != NUMBER_OK || id > UINT32_MAX ||
	    !profiles_remove(&q->site->profiles, (uint32_t)id)) {
		q->status = 404;
		return err_set(e, ERR_NOTFOUND, "there is no profile %.*s that could be closed",
			       STR_ARG(text));
	}
	answers_forget(&q->site->answers);
	return api_profiles(q, out, e);
}
