/* fetch.h - where profiles come from: files, many at once.
 *
 * Sources are read on all cores and merged as they arrive, so memory depends on what is distinct in
 * them, not on how many there are.
 */
#ifndef FETCH_FETCH_H
#define FETCH_FETCH_H

#include "profile/profile.h"

/* How far a fetch has got; read by whoever shows it while others write. */
struct fetch_progress;
struct fetch_progress *fetch_progress_new(void);
void fetch_progress_free(struct fetch_progress *p);
/* Appends "123 of 900 sources, 1.2M samples". */
void fetch_progress_text(struct buf *out, const struct fetch_progress *p);

struct locate_params;

struct fetch_params {
	char *const *sources;
	size_t nsources;
	size_t max_bytes; /* of one profile, unpacked */
	int threads;
	/* Called for every profile before it is merged, from any thread; warnings are whole lines.
	 */
	void (*prepare)(const void *ctx, struct arena *a, struct profile *p, struct buf *warnings);
	const void *prepare_ctx;
	const struct locate_params *locate; /* for perf's stacks (perf/perf.h); or NULL */
	struct fetch_progress *progress;    /* or NULL */
};

/* All sources merged into *out, and how many of them could be read into *ngot. The others are
 * reported in `warnings`, one line each; if there are only those, nothing is returned in *out.
 * False: what was read cannot be combined. */
bool fetch_merged(struct arena *a, struct strings *strings, const struct fetch_params *params,
		  struct profile *out, size_t *ngot, struct buf *warnings, struct err *e);

#endif
