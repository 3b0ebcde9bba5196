/* cache.h - filtered profiles that the next report may want again.
 *
 * A slice is the session's profile as some filters leave it, with what reports of it have in
 * common. Reports on the same slice then cost only what they themselves show. A cache is for one
 * thread at a time.
 */
#ifndef ANALYZE_CACHE_H
#define ANALYZE_CACHE_H

#include "base/vec.h"
#include "graph/graph.h"
#include "profile/profile.h"

enum { CACHE_SLICES = 6 };
/* Slices beyond the two that a report needs are dropped when all take more. */
#define CACHE_MAX_BYTES ((size_t)512 << 20)

struct slice_total {
	uint32_t value;
	bool mean;
	int64_t total;
};

struct slice {
	struct arena arena;
	const char *key;	    /* all options that it depends on */
	const struct slice *parent; /* before the filters; or NULL */
	struct profile p;
	struct label_units units;
	struct buf warnings; /* that making it gave */
	vec(struct slice_total) totals;
	struct graph_memo *graphs;
};

struct cache {
	struct slice *slices[CACHE_SLICES + 1]; /* the one that was used last comes first */
	size_t n;
};

/* NULL if it is not there. */
struct slice *cache_find(struct cache *c, const char *key);
/* A new slice, not yet in any cache. */
struct slice *slice_new(const char *key);
void slice_free(struct slice *slice);
/* Takes the slice, and drops those that were not used for long. Its parent must be in the cache. */
void cache_add(struct cache *c, struct slice *slice);
void cache_release(struct cache *c);

#endif
