/* load.c - from the command line to one profile: fetch, merge, subtract, name. */
#include "analyze/analyze.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/progress.h"
#include "analyze/symbolize.h"
#include "base/parallel.h"
#include "fetch/fetch.h"
#include "fetch/save.h"
#include "http/client.h"
#include "symbol/symbol.h"

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

static void locate(const void *ctx, struct arena *a, struct profile *p, struct buf *warnings)
{
	profile_locate_binaries(a, p, ctx, warnings);
}

static bool is_program(const char *path)
{
	struct object o;
	struct err ignored;

	if (!object_open(&o, path, &ignored))
		return false;
	object_close(&o);
	return true;
}

static void warn_missing(struct buf *warnings, size_t ngot, size_t nwanted, const char *what)
{
	if (ngot != nwanted)
		buf_printf(warnings, "Fetched %zu %s profiles out of %zu\n", ngot, what, nwanted);
}

struct load {
	struct session *s;
	const struct command_line *c;
	struct fetch_params params, bases;
	struct buf *warnings;
};

/* Servers are asked for sources and bases at the same time. */
static bool fetch_both(struct load *l, struct profile *source, struct profile *base, struct err *e)
{
	struct arena *a = &l->s->arena;
	struct strings *strings = &l->s->strings;
	struct fetch *sources = fetch_start(&l->params), *bases = fetch_start(&l->bases);
	size_t nsources, nbases;
	struct err base_failure;
	bool ok = fetch_finish(sources, a, strings, source, &nsources, l->warnings, e);
	bool base_ok = fetch_finish(bases, a, strings, base, &nbases, l->warnings, &base_failure);

	if (!ok)
		return err_wrap(e, "problem fetching source profiles");
	if (!base_ok)
		return err_set(e, base_failure.kind,
			       "problem fetching base profiles: %s,", /* sic */
			       base_failure.text);
	if (!nsources)
		return err_set(e, ERR_NOTFOUND, "failed to fetch any source profiles");
	if (l->bases.nsources && !nbases)
		return err_set(e, ERR_NOTFOUND, "failed to fetch any base profiles");
	warn_missing(l->warnings, nsources, l->params.nsources, "source");
	warn_missing(l->warnings, nbases, l->bases.nsources, "base");
	return true;
}

/* Sources minus base, if there is one. */
static bool fetch_and_diff(struct load *l, struct profile *out, struct err *e)
{
	const struct analyze_options *o = &l->c->options;
	char *base_source = str_dup(&l->s->arena, str_of(*o->base ? o->base : o->diff_base));
	char **base_sources = &base_source;
	size_t nbases = *base_source != '\0';
	struct profile source = { 0 }, base = { 0 };

	fetch_expand(&l->s->arena, &base_sources, &nbases);
	l->bases = l->params;
	l->bases.sources = base_sources;
	l->bases.nsources = nbases;
	if (!fetch_both(l, &source, &base, e))
		return false;
	*out = source;
	if (!nbases)
		return true;
	return profile_diff(
		&l->s->arena, source, base,
		&(struct diff_params){ .mark_base = *o->diff_base, .normalize = o->normalize }, out,
		e);
}

static bool is_url_with_scheme(struct str file)
{
	size_t i = 0;

	if (!file.n || !isalpha((unsigned char)file.p[0]))
		return false;
	while (i < file.n && (isalnum((unsigned char)file.p[i]) || strchr("+-.", file.p[i])))
		i++;
	return i < file.n && file.p[i] == ':';
}

/* Remote sources leave their URL as the name of a mapping that has none. */
static void forget_urls(struct arena *a, struct profile *p)
{
	for (uint32_t i = 0; i < p->nmappings; i++) {
		if (p->mappings[i].build_id ||
		    !is_url_with_scheme(profile_str(p, p->mappings[i].file)))
			continue;
		p->mappings = arena_copy(a, p->mappings, p->nmappings * sizeof(*p->mappings));
		p->mappings[i].file = 0;
	}
}

static void add_comment(struct arena *a, struct profile *p, const char *comment)
{
	uint32_t *comments = arena_many(a, p->ncomments + 1, uint32_t);

	memcpy(comments, p->comments ? p->comments : comments, p->ncomments * sizeof(*comments));
	comments[p->ncomments++] = strings_add(p->strings, str_of(comment));
	p->comments = comments;
}

/* The first of several sources may be the program itself. */
static void take_program(struct load *l, struct locate_params *paths)
{
	if (l->params.nsources > 1 && is_program(l->params.sources[0])) {
		paths->exec_name = l->params.sources[0];
		l->params.sources++;
		l->params.nsources--;
	}
}

static bool save_copy(const struct profile *p, struct buf *warnings, struct err *e)
{
	return profile_save_copy(p,
				 &(struct save_places){ environment("PPROF_TMPDIR"),
							environment("HOME"),
							environment("TMPDIR") },
				 warnings, e);
}

/* After merging, in pprof's order. */
static bool finish(struct load *l, struct err *e)
{
	const struct analyze_options *o = &l->c->options;
	struct arena *a = &l->s->arena;
	struct profile *p = &l->s->profile;

	if (o->all_frames)
		p->drop_frames = p->keep_frames = 0;
	if (!symbolize(a, p, o, l->params.remote, l->warnings, e))
		return false;
	profile_drop_frames(a, p);
	forget_urls(a, p);
	if (*o->add_comment)
		add_comment(a, p, o->add_comment);
	return !fetch_remote_is_used(l->params.remote) || save_copy(p, l->warnings, e);
}

bool analyze_load(struct session *s, const struct command_line *c, struct buf *warnings,
		  struct err *e)
{
	const struct analyze_options *o = &c->options;
	struct locate_params paths = { environment("PPROF_BINARY_PATH"), environment("HOME"), "",
				       o->buildid };
	const struct http_tls tls = { .cert = o->tls_cert, .key = o->tls_key, .ca = o->tls_ca };
	struct load l = { .s = s, .c = c, .warnings = warnings };
	struct progress *progress;
	char **sources = c->sources;
	size_t nsources = c->nsources;
	bool ok;

	*s = (struct session){ .threads = c->threads ? c->threads : parallel_cores() };
	strings_init(&s->strings);
	fetch_expand(&s->arena, &sources, &nsources);
	progress = c->progress ? c->progress : progress_start();
	l.params = (struct fetch_params){ .sources = sources,
					  .nsources = nsources,
					  .max_bytes = c->max_profile_bytes,
					  .threads = s->threads,
					  .prepare = locate,
					  .prepare_ctx = &paths,
					  .locate = &paths,
					  .has_times = *o->http,
					  .progress = progress_counters(progress),
					  .remote = fetch_remote_new(&tls),
					  .seconds = o->seconds,
					  .timeout = o->timeout,
					  .tell = progress_tell,
					  .tell_ctx = progress };
	take_program(&l, &paths);
	ok = fetch_and_diff(&l, &s->profile, e);
	if (!c->progress)
		progress_stop(progress);
	ok = ok && finish(&l, e);
	fetch_remote_free(l.params.remote);
	return ok;
}

void session_release(struct session *s)
{
	viewed_release(&s->viewed);
	cache_release(&s->cache);
	arena_release(&s->arena);
	strings_release(&s->strings);
}
