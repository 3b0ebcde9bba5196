#include "fetch/fetch.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/parallel.h"
#include "base/vec.h"
#include "fetch/file.h"
#include "perf/perf.h"

struct fetch_progress {
	atomic_size_t nsources, ndone, nsamples;
};

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

/* A worker reads a range of the sources, in order. */
struct worker {
	const struct fetch_params *params;
	size_t first, last;
	int parse_threads;
	struct strings *strings, own_strings;
	struct arena packed, plain, tables; /* of the source at hand */
	vec(struct piece) pieces;
	size_t ngot;
	struct buf warnings;
	struct err failure; /* of merging */
};

struct fetch_progress *fetch_progress_new(void)
{
	struct fetch_progress *p = xmalloc(sizeof(*p));

	atomic_init(&p->nsources, 0);
	atomic_init(&p->ndone, 0);
	atomic_init(&p->nsamples, 0);
	return p;
}

void fetch_progress_free(struct fetch_progress *p)
{
	free(p);
}

void fetch_progress_text(struct buf *out, const struct fetch_progress *p)
{
	buf_printf(out, "%zu of %zu sources, %zu samples", atomic_load(&p->ndone),
		   atomic_load(&p->nsources), atomic_load(&p->nsamples));
}

/* Into w->tables. */
static bool parse(struct worker *w, struct str bytes, const struct parse_params *params,
		  struct profile *p, struct err *e)
{
	if (perf_recognizes(bytes))
		return perf_parse(p, &w->tables, w->strings, bytes,
				  &(struct perf_params){ .max_bytes = w->params->max_bytes,
							 .locate = w->params->locate },
				  e);
	return profile_parse(p, &w->tables, w->strings, bytes, params, e);
}

static bool read_source(struct worker *w, const char *path, struct profile *p, struct err *e)
{
	size_t max_bytes = w->params->max_bytes;
	struct parse_params params = { .threads = w->parse_threads };
	struct str file, bytes;
	bool ok = file_read(&w->packed, path, max_bytes, &file, e) &&
		  profile_unpack(&w->plain, file, max_bytes, &bytes, e);

	if (ok && bytes.p != file.p)
		arena_rewind(&w->packed); /* the peak of memory comes now */
	params.may_discard = ok && bytes.n > DISCARD_BYTES;
	ok = ok && parse(w, bytes, &params, p, e);
	arena_rewind(&w->packed);
	arena_rewind(&w->plain);
	return ok;
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

		if (!read_source(w, params->sources[i], &p, &e)) {
			buf_printf(&w->warnings, "%s: %s\n", params->sources[i], e.text);
			arena_rewind(&w->tables);
			continue;
		}
		if (params->prepare)
			params->prepare(params->prepare_ctx, &w->tables, &p, &w->warnings);
		nsamples = p.nsamples;
		if (add_profile(w, &p, &e))
			w->ngot++;
		else
			w->failure = e;
		if (params->progress) {
			atomic_fetch_add(&params->progress->ndone, 1);
			atomic_fetch_add(&params->progress->nsamples, nsamples);
		}
	}
	arena_release(&w->packed);
	arena_release(&w->plain);
	arena_release(&w->tables);
}

static void start_workers(struct arena *a, struct worker **workers, size_t *n,
			  struct strings *strings, const struct fetch_params *params)
{
	*n = (size_t)params->threads < params->nsources ? (size_t)params->threads
							: params->nsources;
	if (*n < 1)
		*n = 1;
	*workers = arena_many(a, *n, struct worker);
	for (size_t i = 0; i < *n; i++) {
		struct worker *w = &(*workers)[i];

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

bool fetch_merged(struct arena *a, struct strings *strings, const struct fetch_params *params,
		  struct profile *out, size_t *ngot, struct buf *warnings, struct err *e)
{
	struct worker *workers;
	struct profile *profiles;
	size_t n, npieces;
	bool ok = true;

	*ngot = 0;
	if (params->progress)
		atomic_fetch_add(&params->progress->nsources, params->nsources);
	start_workers(a, &workers, &n, strings, params);
	for (size_t i = 0; i < n; i++) {
		buf_str(warnings, buf_view(&workers[i].warnings));
		*ngot += workers[i].ngot;
		if (ok && workers[i].failure.kind != ERR_NONE) {
			*e = workers[i].failure;
			ok = false;
		}
	}
	npieces = gather(a, workers, n, strings, &profiles);
	if (ok && npieces)
		ok = profile_combine(a, profiles, npieces, out, e);
	release_workers(a, workers, n, npieces == 1);
	return ok;
}
