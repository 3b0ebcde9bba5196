/* flame.h - what flame graphs are made of: a call tree with names, and what each path takes itself.
 */
#ifndef SERVER_FLAME_H
#define SERVER_FLAME_H

#include "report/report.h"

/* All of it lies in the report's arena. */
struct flame {
	struct frames frames;
	struct path_tree tree;
	uint32_t *name_of; /* by path; of the first, which has no frame, nothing */
	struct str *names;
	uint32_t nnames;
	int64_t *own_now, *own_before; /* by path: without its callees, and without what was cut */
};

/* Of the report's profile: paths of at least that share of the whole, and at most so many; 0: of
 * all. If the report is stopped it is of no use. */
void flame_grow(struct flame *f, struct report_run *r, uint32_t max_paths, double fraction);

#endif
