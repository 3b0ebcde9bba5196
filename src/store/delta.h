/* delta.h - values that count from a process's start become those of the time between profiles.
 *
 * Rows of one series, which is taken for one process, come in order of time. What a profile adds is
 * the difference to the one before it. Two cases are not that simple:
 *
 *  - The process began anew: no total has risen and one has fallen. Then the profile counts in
 *    full. (One total alone may fall: Go's estimates of allocated objects do, now and then.)
 *  - There is none before it within DELTA_MAX_GAP: it counts nothing, as nobody knows since when.
 *
 * So each profile adds something that depends on it and its neighbour alone, and sums over times
 * that follow one another may be added.
 *
 * Rows are handed on with the factors by which their values count. In a run of differences all but
 * the first and the last cancel out: those come with factors of 0, and cost nothing.
 */
#ifndef STORE_DELTA_H
#define STORE_DELTA_H

#include "base/buf.h"
#include "base/vec.h"
#include "store/scan.h"

/* A day, for those that push daily, and some. */
#define DELTA_MAX_GAP ((int64_t)25 * 3600 * 1000000000)

struct delta_kind;

struct deltas {
	struct store *s;
	scan_each *each;
	void *ctx;
	int64_t step; /* as of struct scan */
	/* own */
	vec(struct delta_kind *) kinds;
	/* the row before, whose factors the next one changes */
	bool has_last, is_waiting;
	const struct delta_kind *kind;
	struct scan_row last;
	struct buf data, totals;
	vec(double) factors;
};

/* Does it matter what was before this row? */
bool deltas_wants_base(struct deltas *d, const struct scan_row *row);
/* What was before the next row, but does not count itself. */
void deltas_base(struct deltas *d, const struct scan_row *row);
bool deltas_add(struct deltas *d, const struct scan_row *row, struct err *e);
/* After the last row of a series. */
bool deltas_end(struct deltas *d, struct err *e);
void deltas_release(struct deltas *d);

#endif
