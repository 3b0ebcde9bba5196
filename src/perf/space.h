/* space.h - the address spaces of processes, as they change over time. Private to perf/.
 *
 * A space is a balanced tree of ranges. After a fork both processes share the nodes, and copy those
 * that they change: a process that starts thousands of others does not cost thousands of tables.
 */
#ifndef PERF_SPACE_H
#define PERF_SPACE_H

#include <stdint.h>

#include "base/arena.h"

struct space_node;

/* A mapping, or what later ones have left of it. */
struct range {
	uint64_t start, limit;
	uint64_t shift; /* added to an address it gives the one in the profile */
	uint32_t mapping;
};

struct space {
	struct space_node *root;
	uint32_t owner; /* nodes of others are shared */
};

/* All spaces that may share nodes. */
struct spaces {
	struct arena nodes;
	uint32_t nowners;
	uint64_t ninserted, seed;
};

void spaces_init(struct spaces *all);
void spaces_release(struct spaces *all);
/* What *from has; from now on the two go their own ways. */
struct space space_fork(struct spaces *all, struct space *from);
/* Puts in a range; it replaces what was there. Empty ones are ignored. */
void space_insert(struct spaces *all, struct space *s, const struct range *r);
/* NULL if nothing is mapped there. */
const struct range *space_find(const struct space *s, uint64_t address);

#endif
