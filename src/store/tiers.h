/* tiers.h - sums of all profiles of a series in a minute, an hour or a day.
 *
 * A window is a minute, hour or day of UTC. Its sum (a row for each book and head) has what scans
 * with `as_type` give: counters and gauges added, differences of what counts from a process's
 * start. It is there to be read instead of the profiles, and, once it is thinned, in their place:
 * then nothing finer is left but what came later, which counts beside it.
 *
 * A profile that comes late, and deleting, drop the sums of their windows in the same commit, and
 * note that they are to be made again: so what is there is right at any time.
 */
#ifndef STORE_TIERS_H
#define STORE_TIERS_H

#include "base/buf.h"
#include "base/vec.h"
#include "store/inside.h"

enum tier { TIER_RAW, TIER_MINUTE, TIER_HOUR, TIER_DAY, NTIERS };

/* In nanoseconds. */
int64_t tier_length(enum tier tier);
/* The window that has a time. */
int64_t tier_start(enum tier tier, int64_t time);

enum tier_kind { TIER_HAS_DELTAS = 1, TIER_IS_THINNED = 2 };

struct tier_row {
	int64_t book, first, last, duration;
	uint32_t head;
	uint64_t nprofiles;
	bool has_deltas;
	struct buf data;
	vec(int64_t) totals;
};

struct tier_window {
	struct store *s;
	struct picked *series;
	enum tier tier;
	int below; /* the sum of those below this tier */
	int64_t time;
	vec(struct tier_row) rows;
};

/* The sum of what there is. The caller sets all but the rows, and releases it. */
bool tier_sum(struct tier_window *w, struct err *e);
void tier_window_release(struct tier_window *w);

/* ---- within a commit */

/* In place of what was there. */
bool tier_save(struct db *db, const struct tier_window *w, bool is_thinned, struct err *e);
/* One row more of a window: added to what it has of the same book, which is this, and head. */
bool tier_add(struct db *db, const struct book *book, const struct tier_window *w,
	      const struct tier_row *row, bool is_thinned, struct err *e);
/* Those that begin between the times; with `is_all` those that are thinned too. */
bool tier_drop(struct db *db, int64_t series, enum tier tier, int64_t from, int64_t to, bool is_all,
	       struct err *e);
/* There is a profile of the process (delta.h) more or less at this time, and sums had been made up
 * to `until`. */
bool tier_change(struct db *db, int64_t series, int64_t process, int64_t time, int64_t until,
		 struct err *e);
/* Profiles between the times are deleted. `*n` profiles that were only in sums went, too. */
bool tier_delete(struct db *db, int64_t series, int64_t from, int64_t to, uint64_t *n,
		 struct err *e);

#endif
