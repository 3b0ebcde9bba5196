/* frames.h - samples taken apart into frames. Private to graph/. */
#ifndef GRAPH_FRAMES_H
#define GRAPH_FRAMES_H

#include <string.h>

#include "graph/graph.h"

enum { UNROLLED = 64, UNROLL_STEP = 4 };

/* A walk over all frames of a sample, root first. */
struct unroll {
	const uint32_t *stack;
	uint32_t left; /* locations */
	uint32_t done; /* frames of the last of those */
};

enum { UNROLL_AHEAD = 256 }; /* some samples */

static inline struct unroll unroll_start(const struct profile *p, const struct sample *s)
{
	const uint32_t *stack = p->stacks + s->stack;

	/* Stacks lie one after the other, but each is read backwards, which hides it from the CPU.
	 */
	for (int i = 0; i < 32; i += 16)
		__builtin_prefetch(stack + UNROLL_AHEAD + i);
	return (struct unroll){ stack, s->nstack, 0 };
}

/* The next frames: up to UNROLLED, and a few more. 0: there are no more. How many frames a location
 * has is as good as random, so this copies a fixed number of them rather than branch. */
static inline uint32_t unroll(struct unroll *u, const struct frames *f,
			      uint32_t out[UNROLLED + UNROLL_STEP])
{
	uint32_t n = 0;

	while (u->left && n < UNROLLED) {
		uint32_t loc = u->stack[u->left - 1];
		uint32_t at = f->first[loc] + u->done, more = f->first[loc + 1] - at;

		memcpy(out + n, f->lists + at, UNROLL_STEP * sizeof(*out));
		if (more > UNROLL_STEP) {
			n += UNROLL_STEP;
			u->done += UNROLL_STEP;
			continue;
		}
		n += more;
		u->left--;
		u->done = 0;
	}
	return n;
}

/* Lists the places of a stack whose locations are in a set, which has a bit for each: few bytes, as
 * all of a stack are looked at. Which are is as good as random, so there is no branch for it. */
static inline uint32_t pick_places(uint32_t *places, const uint32_t *stack, uint32_t n,
				   const uint32_t *set)
{
	uint32_t nplaces = 0;

	for (uint32_t i = 0; i < n; i++) {
		places[nplaces] = i;
		nplaces += set[stack[i] / 32] >> stack[i] % 32 & 1;
	}
	return nplaces;
}

#endif
