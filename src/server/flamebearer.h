/* flamebearer.h - flame graphs as Pyroscope and Grafana draw them: names, and levels of numbers.
 *
 * A level has four numbers for each box, from left to right: how far it begins after the end of the
 * box before it, its width, what of that it takes itself, and its name. Callees stand to the right
 * of what their caller takes itself. A comparison has seven: the first three of each side, the left
 * one first, then the name. Level 0 is the box "total"; what was cut is a box "other".
 */
#ifndef SERVER_FLAMEBEARER_H
#define SERVER_FLAMEBEARER_H

#include "server/flame.h"

struct flamebearer {
	struct str *names;
	uint32_t nnames;
	int64_t *values; /* of all levels */
	size_t *ends;	 /* of each level in them */
	size_t nlevels;
	bool is_diff;
	int64_t total, max_self; /* of a comparison: of both sides together */
	int64_t left, right;	 /* totals of a comparison's sides */
};

/* Its tables go to `a`; names are those of the flame. As a comparison what was before is left. */
void flamebearer_make(struct arena *a, struct flamebearer *b, const struct flame *f, bool is_diff);
/* As a message of querier.v1: FlameGraph or FlameGraphDiff. */
void flamebearer_put(struct buf *out, const struct flamebearer *b);
/* {"names":[...],"levels":[[...]],"numTicks":1,"maxSelf":1} */
void flamebearer_json(struct buf *out, const struct flamebearer *b);

/* The same boxes as Pyroscope's servers exchange them: each before its callees, with its name, what
 * it takes itself, and how many callees follow. The first has no name. */
void flamebearer_put_tree(struct buf *out, const struct flame *f);

#endif
