/* sums.h - packed profiles of many books added up, in groups, within bounded memory.
 *
 * There is one sum for each book, head and group. When they take too much, and whenever the caller
 * says so, all of them are handed over (`take`) and begun anew: so `take` must add to what it was
 * given before.
 */
#ifndef STORE_SUMS_H
#define STORE_SUMS_H

#include "base/map.h"
#include "base/vec.h"
#include "store/scan.h"

struct sum {
	struct shelf_book *book; /* its lock is held for reading when it is handed over */
	uint32_t head, ntypes;
	uint64_t group;
	int64_t service;
	struct str service_name;
	uint64_t nprofiles;
	struct book_sum *sum;
	size_t bytes;
};

struct sums {
	struct store *s;
	bool (*take)(void *ctx, const struct sum *sum, struct err *e);
	void *ctx;
	/* own */
	vec(struct sum) at;
	vec(struct shelf_book *) held;
	vec(double) ones;
	struct map map;
	uint64_t seed;
	size_t bytes;
};

void sums_init(struct sums *m, struct store *s,
	       bool (*take)(void *ctx, const struct sum *sum, struct err *e), void *ctx);
/* ERR_LIMIT: no memory for it. A profile whose book has just been deleted is left out, as if the
 * query had come later: *is_added tells. */
bool sums_add(struct sums *m, const struct scan_row *row, uint64_t group, bool *is_added,
	      struct err *e);
bool sums_flush(struct sums *m, struct err *e);
void sums_release(struct sums *m);

#endif
