/* delta.h - values that count from a process's start become those of the time between profiles.
 *
 * Rows of one series come in order of time. They are of one process or, if several push under the
 * same labels, of several: `process` tells them apart (process_of). What a profile adds is the
 * difference to the one before it of the same process. Some cases are not that simple:
 *
 *  - The process began anew: no total has risen and one has fallen. Then the profile counts in
 *    full. (One total alone may fall: Go's estimates of allocated objects do, now and then.)
 *  - There is none before it within DELTA_MAX_GAP: it counts nothing, as nobody knows since when.
 *  - The same, but others of the series have been there for a while, and one of them has counted
 *    further: then it is a process that has just begun, and counts in full.
 *
 * So each profile adds something that depends on it and what was before it, and sums over times
 * that follow one another may be added.
 *
 * Rows are handed on with the factors by which their values count, those of one process in order of
 * time. In a run of differences all but the first and the last cancel out: those come with factors
 * of 0, and cost nothing.
 */
#ifndef STORE_DELTA_H
#define STORE_DELTA_H

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "store/before.h"
#include "store/scan.h"

/* A day, for those that push daily, and some. */
#define DELTA_MAX_GAP ((int64_t)25 * 3600 * 1000000000)

/* Of which process a profile is: what the client says (`instance`), or else where the kernel has
 * put its [vdso], which is somewhere else in each process. 0: nobody knows. */
int64_t process_of(struct str instance, const struct profile *p);

struct delta_kind;
struct delta_chain;

struct deltas {
	struct store *s;
	struct db *db;
	scan_each *each;
	void *ctx;
	int64_t step; /* as of struct scan */
	bool has_data;
	bool is_extra; /* of the rows that are added now: nothing is known to be before them */
	/* own */
	vec(struct delta_kind *) kinds;
	vec(struct delta_chain *) chains; /* of processes */
	struct map map;
	size_t bytes;
	struct before before;
};

bool deltas_add(struct deltas *d, const struct scan_row *row, struct err *e);
/* After the last row of a series, or before rows that do not follow the last one. */
bool deltas_end(struct deltas *d, struct err *e);
void deltas_release(struct deltas *d);

#endif
