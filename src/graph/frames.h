/* frames.h - which node each frame of a profile belongs to. Private to graph/. */
#ifndef GRAPH_FRAMES_H
#define GRAPH_FRAMES_H

#include "graph/graph.h"

/* Most locations are one frame. `of[loc]` is then its node; otherwise MANY_FRAMES | index into
 * `lists`, where a count and the nodes follow, caller first. */
#define MANY_FRAMES 0x80000000u

struct frames {
	uint32_t *of;
	uint32_t *lists;
	struct node_info *infos; /* of the nodes */
	uint32_t nnodes;
};

void frames_init(struct arena *a, struct frames *f, const struct profile *p,
		 const struct granularity *keep, bool with_objects);

/* The nodes of a location, caller first. */
static inline const uint32_t *frames_of(const struct frames *f, uint32_t loc, uint32_t *n)
{
	uint32_t at = f->of[loc];

	if (!(at & MANY_FRAMES)) {
		*n = 1;
		return &f->of[loc];
	}
	at &= ~MANY_FRAMES;
	*n = f->lists[at];
	return &f->lists[at + 1];
}

#endif
