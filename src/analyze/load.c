/* load.c - from the command line to one profile: fetch, merge, subtract, name. */
#include "analyze/analyze.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/progress.h"
#include "analyze/symbolize.h"
#include "base/parallel.h"
#include "fetch/fetch.h"
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

/* The first of several sources may be the program itself. */
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
	struct fetch_params params;
	struct buf *warnings;
};

/* Sources minus base, if there is one. */
static bool fetch_and_diff(struct load *l, struct profile *out, struct err *e)
{
	const struct analyze_options *o = &l->c->options;
	char *base_source = str_dup(&l->s->arena, str_of(*o->base ? o->base : o->diff_base));
	struct fetch_params bases = l->params;
	struct profile source = { 0 }, base = { 0 };
	size_t nsources, nbases = 0;
	bool has_base = *base_source, ok;

	ok = fetch_merged(&l->s->arena, &l->s->strings, &l->params, &source, &nsources, l->warnings,
			  e);
	if (!ok)
		return err_wrap(e, "problem fetching source profiles");
	bases.sources = &base_source;
	bases.nsources = has_base;
	if (has_base &&
	    !fetch_merged(&l->s->arena, &l->s->strings, &bases, &base, &nbases, l->warnings, e)) {
		err_wrap(e, "problem fetching base profiles");
		strncat(e->text, ",", sizeof(e->text) - strlen(e->text) - 1); /* sic */
		return false;
	}
	if (!nsources)
		return err_set(e, ERR_NOTFOUND, "failed to fetch any source profiles");
	if (has_base && !nbases)
		return err_set(e, ERR_NOTFOUND, "failed to fetch any base profiles");
	warn_missing(l->warnings, nsources, l->params.nsources, "source");
	warn_missing(l->warnings, nbases, bases.nsources, "base");
	*out = source;
	if (!has_base)
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

bool analyze_load(struct session *s, const struct command_line *c, struct buf *warnings,
		  struct err *e)
{
	const struct analyze_options *o = &c->options;
	struct locate_params paths = { environment("PPROF_BINARY_PATH"), environment("HOME"), "",
				       o->buildid };
	struct load l = { .s = s, .c = c, .warnings = warnings };
	struct progress *progress;
	bool ok;

	*s = (struct session){ .threads = c->threads ? c->threads : parallel_cores() };
	strings_init(&s->strings);
	l.params = (struct fetch_params){ .sources = c->sources,
					  .nsources = c->nsources,
					  .max_bytes = c->max_profile_bytes,
					  .threads = s->threads,
					  .prepare = locate,
					  .prepare_ctx = &paths,
					  .locate = &paths };
	if (c->nsources > 1 && is_program(c->sources[0])) {
		paths.exec_name = c->sources[0];
		l.params.sources++;
		l.params.nsources--;
	}
	l.params.progress = c->progress;
	progress = c->progress ? NULL : progress_start(&l.params.progress);
	ok = fetch_and_diff(&l, &s->profile, e);
	progress_stop(progress);
	if (!ok)
		return false;
	if (o->all_frames)
		s->profile.drop_frames = s->profile.keep_frames = 0;
	if (!symbolize(&s->arena, &s->profile, o, warnings, e))
		return false;
	profile_drop_frames(&s->arena, &s->profile);
	forget_urls(&s->arena, &s->profile);
	if (*o->add_comment)
		add_comment(&s->arena, &s->profile, o->add_comment);
	return true;
}

void session_release(struct session *s)
{
	viewed_release(&s->viewed);
	arena_release(&s->arena);
	strings_release(&s->strings);
}
