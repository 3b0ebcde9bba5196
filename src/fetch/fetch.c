#include "fetch/fetch.h"

#include <glob.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/parallel.h"
#include "base/vec.h"
#include "fetch/download.h"
#include "fetch/file.h"
#include "fetch/progress.h"
#include "fetch/remote.h"
#include "perf/perf.h"

/* Memory that a worker keeps from source to source. */
enum {
	RESERVE_BYTES = 64 << 20,
	DISCARD_BYTES = 4 << 20, /* below that giving memory back costs more than it helps */
};

/* Profiles of one worker that follow each other and have the same types, merged. */
struct piece {
	struct arena arena;
	struct profile profile; /* the only one so far, or */
	struct merger *merger;	/* the sum of several */
};

/* A profile that came from a server, as long as its worker's strings live. */
struct fetched {
	struct profile profile; /* only mappings and strings */
	const char *url;
};

struct fetch {
	const struct fetch_params *params;
	struct arena arena;
	uint32_t *remote_of; /* for each source: index into `urls`, or NONE for a file; or NULL */
	vec(struct url_source) urls;
	struct downloads *downloads; /* NULL if there are no URLs */
};

/* A worker reads a range of the sources, in order. */
struct worker {
	const struct fetch *fetch;
	const struct fetch_params *params;
	size_t first, last;
	int parse_threads;
	struct strings *strings, own_strings;
	struct arena packed, plain, tables; /* of the source at hand */
	struct arena mappings;		    /* of what came from servers */
	vec(struct fetched) fetched;
	vec(struct piece) pieces;
	size_t ngot;
	struct buf warnings;
	struct err failure; /* of merging */
};

static uint32_t remote_of(const struct fetch *f, size_t source)
{
	return f->remote_of ? f->remote_of[source] : NONE;
}

static bool read_bytes(struct worker *w, size_t source, struct str *bytes, struct err *e)
{
	uint32_t remote = remote_of(w->fetch, source);

	if (remote != NONE)
		return download_wait(w->fetch->downloads, remote, bytes, e);
	return file_read(&w->packed, w->params->sources[source], w->params->max_bytes, bytes, e);
}

static void drop_bytes(struct worker *w, size_t source)
{
	uint32_t remote = remote_of(w->fetch, source);

	if (remote != NONE)
		download_drop(w->fetch->downloads, remote);
	arena_rewind(&w->packed);
}

/* Into w->tables. */
static bool parse(struct worker *w, struct str bytes, const struct parse_params *params,
		  struct profile *p, struct err *e)
{
	if (perf_recognizes(bytes))
		return perf_parse(p, &w->tables, w->strings, bytes,
				  &(struct perf_params){ .max_bytes = w->params->max_bytes,
							 .locate = w->params->locate,
							 .has_times = w->params->has_times },
				  e);
	return profile_parse(p, &w->tables, w->strings, bytes, params, e);
}

static bool read_source(struct worker *w, size_t source, struct profile *p, struct err *e)
{
	size_t max_bytes = w->params->max_bytes;
	struct parse_params params = { .threads = w->parse_threads };
	struct str file, bytes;
	bool ok = read_bytes(w, source, &file, e) &&
		  profile_unpack(&w->plain, file, max_bytes, &bytes, e);
	bool is_unpacked = ok && bytes.p != file.p;

	if (is_unpacked)
		drop_bytes(w, source); /* the peak of memory comes now */
	params.may_discard = ok && bytes.n > DISCARD_BYTES &&
			     (is_unpacked || remote_of(w->fetch, source) == NONE);
	ok = ok && parse(w, bytes, &params, p, e);
	if (!is_unpacked)
		drop_bytes(w, source);
	arena_rewind(&w->plain);
	return ok;
}

/* Keeps what remote_origins needs to know. */
static void remember(struct worker *w, size_t source, struct profile *p)
{
	uint32_t remote = remote_of(w->fetch, source);
	struct fetched f;

	if (remote == NONE)
		return;
	f = (struct fetched){ .url = w->fetch->urls.at[remote].url };
	f.profile.strings = p->strings;
	for (uint32_t i = 0; i < p->nmappings; i++)
		if (!p->mappings[i].file && !p->mappings[i].build_id)
			p->mappings[i].file = strings_add(p->strings, str_of(f.url));
	f.profile.nmappings = p->nmappings;
	f.profile.mappings =
		arena_copy(&w->mappings, p->mappings, p->nmappings * sizeof(*p->mappings));
	vec_push(&w->fetched, f);
}

static bool has_same_types(const struct profile *a, const struct profile *b)
{
	if (a->ntypes != b->ntypes || a->period_type.type != b->period_type.type ||
	    a->period_type.unit != b->period_type.unit)
		return false;
	for (uint32_t i = 0; i < a->ntypes; i++)
		if (a->types[i].type != b->types[i].type || a->types[i].unit != b->types[i].unit)
			return false;
	return true;
}

static bool merge_into(struct piece *to, const struct profile *p, struct err *e)
{
	if (!to->merger) {
		to->merger = merger_new(p->strings);
		if (!merger_add(to->merger, &to->profile, e))
			return false;
	}
	return merger_add(to->merger, p, e);
}

static void reserve(const struct worker *w, struct arena *a)
{
	if (w->last - w->first > 1)
		arena_reserve(a, RESERVE_BYTES);
}

/* Merges a profile that lies in w->tables. The last piece grows as long as types stay the same. */
static bool add_profile(struct worker *w, const struct profile *p, struct err *e)
{
	struct piece *last = w->pieces.n ? &w->pieces.at[w->pieces.n - 1] : NULL;
	bool ok;

	if (last && has_same_types(&last->profile, p)) {
		ok = merge_into(last, p, e);
		arena_rewind(&w->tables);
		return ok;
	}
	vec_push(&w->pieces, (struct piece){ .arena = w->tables, .profile = *p });
	w->tables = (struct arena){ 0 };
	reserve(w, &w->tables);
	return true;
}

static void run_worker(void *ctx, size_t index)
{
	struct worker *w = (struct worker *)ctx + index;
	const struct fetch_params *params = w->params;

	reserve(w, &w->packed);
	reserve(w, &w->plain);
	reserve(w, &w->tables);
	for (size_t i = w->first; i < w->last && w->failure.kind == ERR_NONE; i++) {
		struct profile p;
		struct err e = { 0 };
		uint32_t nsamples;

		if (!read_source(w, i, &p, &e)) {
			buf_printf(&w->warnings, "%s: %s\n", params->sources[i], e.text);
			arena_rewind(&w->tables);
			continue;
		}
		if (params->prepare)
			params->prepare(params->prepare_ctx, &w->tables, &p, &w->warnings);
		remember(w, i, &p);
		nsamples = p.nsamples;
		if (add_profile(w, &p, &e))
			w->ngot++;
		else
			w->failure = e;
		fetch_progress_done(params->progress, nsamples);
	}
	arena_release(&w->packed);
	arena_release(&w->plain);
	arena_release(&w->tables);
}

static void run_workers(struct arena *a, struct worker **workers, size_t *n,
			struct strings *strings, const struct fetch *f)
{
	const struct fetch_params *params = f->params;

	*n = (size_t)params->threads < params->nsources ? (size_t)params->threads
							: params->nsources;
	if (*n < 1)
		*n = 1;
	*workers = arena_many(a, *n, struct worker);
	for (size_t i = 0; i < *n; i++) {
		struct worker *w = &(*workers)[i];

		w->fetch = f;
		w->params = params;
		w->first = params->nsources * i / *n;
		w->last = params->nsources * (i + 1) / *n;
		w->parse_threads = params->threads / (int)*n;
		w->strings = strings;
		if (i) { /* the first works on the common table */
			strings_init(&w->own_strings);
			w->strings = &w->own_strings;
		}
	}
	parallel_for((int)*n, *n, run_worker, *workers);
}

/* Finishes all pieces and brings them to the common strings, in source order. */
static size_t gather(struct arena *a, struct worker *workers, size_t n, struct strings *strings,
		     struct profile **profiles)
{
	size_t npieces = 0, k = 0;

	for (size_t i = 0; i < n; i++)
		npieces += workers[i].pieces.n;
	*profiles = arena_many(a, npieces, struct profile);
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < workers[i].pieces.n; j++) {
			struct piece *piece = &workers[i].pieces.at[j];

			if (piece->merger) {
				merger_finish(piece->merger, &piece->arena, &piece->profile);
				piece->merger = NULL;
			}
			if (workers[i].strings != strings)
				profile_rebase(&piece->profile, strings);
			(*profiles)[k++] = piece->profile;
		}
		strings_release(&workers[i].own_strings);
	}
	return npieces;
}

/* A single piece is the result; of several nothing is needed once they are merged. */
static void release_workers(struct arena *a, struct worker *workers, size_t n, bool keep_pieces)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < workers[i].pieces.n; j++) {
			if (keep_pieces)
				arena_join(a, &workers[i].pieces.at[j].arena);
			else
				arena_release(&workers[i].pieces.at[j].arena);
			merger_free(workers[i].pieces.at[j].merger);
		}
		vec_release(&workers[i].pieces);
		buf_release(&workers[i].warnings);
	}
}

/* ---- sources */

void fetch_expand(struct arena *a, char ***sources, size_t *nsources)
{
	vec(char *) all = { 0 };
	bool is_changed = false;

	for (size_t i = 0; i < *nsources; i++) {
		char *source = (*sources)[i];
		struct stat st;
		glob_t found;

		if (!strpbrk(source, "*?[") || stat(source, &st) == 0 ||
		    glob(source, 0, NULL, &found) != 0) {
			vec_push(&all, source);
			continue;
		}
		for (size_t k = 0; k < found.gl_pathc; k++)
			vec_push(&all, str_dup(a, str_of(found.gl_pathv[k])));
		globfree(&found);
		is_changed = true;
	}
	if (is_changed) {
		*nsources = all.n;
		*sources = vec_adopt(a, &all);
	}
	vec_release(&all);
}

/* Most sources are files, and there may be many: do not look at each twice. */
static bool may_be_url(const char *source)
{
	struct stat st;

	return (strchr(source, ':') || strncmp(source, "//", 2) == 0) && stat(source, &st) != 0;
}

static void find_urls(struct fetch *f)
{
	const struct fetch_params *params = f->params;

	for (size_t i = 0; i < params->nsources; i++) {
		struct url_source url;

		if (!may_be_url(params->sources[i]) ||
		    !url_resolve(&f->arena, str_of(params->sources[i]), params->seconds,
				 params->timeout, &url))
			continue;
		if (!f->remote_of) {
			f->remote_of = arena_many(&f->arena, params->nsources, uint32_t);
			memset(f->remote_of, 0xff, params->nsources * sizeof(*f->remote_of));
		}
		f->remote_of[i] = (uint32_t)f->urls.n;
		vec_push(&f->urls, url);
	}
}

struct fetch *fetch_start(const struct fetch_params *params)
{
	struct fetch *f = xcalloc(1, sizeof(*f));

	f->params = params;
	fetch_progress_expect(params->progress, params->nsources);
	if (params->remote)
		find_urls(f);
	if (f->urls.n)
		f->downloads = downloads_start(params, f->urls.at, f->urls.n);
	return f;
}

static void fetch_free(struct fetch *f)
{
	if (f->downloads)
		downloads_free(f->downloads);
	vec_release(&f->urls);
	arena_release(&f->arena);
	free(f);
}

/* What the workers report, in source order. */
static bool collect_reports(const struct fetch *f, struct worker *workers, size_t n, size_t *ngot,
			    struct buf *warnings, struct err *e)
{
	bool ok = true;

	*ngot = 0;
	for (size_t i = 0; i < n; i++) {
		struct worker *w = &workers[i];

		buf_str(warnings, buf_view(&w->warnings));
		*ngot += w->ngot;
		if (ok && w->failure.kind != ERR_NONE) {
			*e = w->failure;
			ok = false;
		}
		for (size_t k = 0; k < w->fetched.n; k++)
			remote_origins(f->params->remote, &w->fetched.at[k].profile,
				       w->fetched.at[k].url);
		vec_release(&w->fetched);
		arena_release(&w->mappings);
	}
	return ok;
}

bool fetch_finish(struct fetch *f, struct arena *a, struct strings *strings, struct profile *out,
		  size_t *ngot, struct buf *warnings, struct err *e)
{
	struct worker *workers;
	struct profile *profiles;
	size_t n, npieces;
	bool ok;

	run_workers(a, &workers, &n, strings, f);
	ok = collect_reports(f, workers, n, ngot, warnings, e);
	npieces = gather(a, workers, n, strings, &profiles);
	if (ok && npieces)
		ok = profile_combine(a, profiles, npieces, out, e);
	release_workers(a, workers, n, npieces == 1);
	fetch_free(f);
	return ok;
}
