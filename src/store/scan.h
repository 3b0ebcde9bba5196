/* scan.h - reads the profiles that a query finds, one series after the other, each in order of
 * time, all as they were at one moment. Series of one service come together.
 */
#ifndef STORE_SCAN_H
#define STORE_SCAN_H

#include "store/inside.h"

struct scan_row {
	const struct picked *series;
	int64_t time, row;
	int64_t last; /* time of the last profile in it */
	int64_t book; /* 0: it is no profile */
	uint32_t head;
	struct str totals; /* int64_t of each type; may be damaged */
	struct str data;   /* packed; only if the scan has_data */
	int64_t duration, process;
	uint64_t nprofiles;	 /* that it is the sum of; 0: it corrects another row's values */
	bool is_sum, has_deltas; /* of a window; has what counts from the start as differences */
	const double *factors;	 /* of each type: its values count so many times; NULL: once */
};

/* Where a profile is: in which of the series that are picked. */
struct scan_place {
	size_t picked;
	int64_t time, row;
};

typedef bool scan_each(void *ctx, const struct scan_row *row, struct err *e);

enum scan_which { SCAN_ALL, SCAN_LAST, SCAN_MAX }; /* the last two: of each series */

struct scan {
	struct store *s;
	const struct store_query *q; /* its limit holds for SCAN_ALL */
	enum scan_which which;
	bool has_data;
	bool as_type; /* what counts from a process's start comes as differences; of SCAN_ALL */
	int below;    /* reads sums of tiers (tiers.h) below this only; 0: of any */
	int64_t step; /* times of one step (multiples of it) need not be told apart; 0: of all */
	/* Called first, by who sees the same as the scan will, and may still change *q; or NULL. */
	bool (*begin)(void *ctx, struct db *db, struct err *e);
	scan_each *each;
	/* After the last row of a service; or NULL. */
	bool (*after_service)(void *ctx, struct err *e);
	void *ctx;
	/* set by scan_pick */
	struct picked *picked;
	size_t npicked;
	/* Or NULL: only these, in order of `picked`; what each adds is as if all were asked for. */
	const struct scan_place *places;
	size_t nplaces;
	struct db *db;
	/* own */
	struct deltas *deltas;
};

/* Which series; they lie in `a`. */
void scan_pick(struct scan *scan, struct arena *a);
/* Are all of one profile type? ERR_USAGE if not. */
bool scan_check_type(const struct scan *scan, struct err *e);
bool scan_run(struct scan *scan, struct err *e);

#endif
