/* plan.h - which sums and which profiles of a series make up a time. */
#ifndef STORE_PLAN_H
#define STORE_PLAN_H

#include "store/tiers.h"

struct piece {
	enum tier tier;
	int64_t from, to; /* of tiers: starts of the first and of the last window */
	bool is_extra;	  /* came after the window was thinned: what was before it is not known */
};

struct plan {
	struct db *db;
	int64_t series;
	enum tier below;	  /* only finer tiers */
	int64_t step;		  /* only windows that lie within a multiple of it; 0: any */
	bool as_type;		  /* differences are wanted */
	vec(struct piece) pieces; /* in order of time; the caller releases it */
};

bool plan_make(struct plan *p, int64_t from, int64_t to, struct err *e);

#endif
