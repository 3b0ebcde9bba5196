/* edge_table.h - weights of edges, summed up. Private to graph/. */
#ifndef GRAPH_EDGE_TABLE_H
#define GRAPH_EDGE_TABLE_H

#include "graph/graph.h"

/* An edge is a number: from << 32 | to. The bits that nodes do not need say more of it. */
#define EDGE_SPREADS ((uint64_t)FRAME_INLINED) /* it is not, or not always, inlined */
#define EDGE_RESIDUAL ((uint64_t)FRAME_INLINED << 32)
#define EDGE_FLAGS (EDGE_SPREADS | EDGE_RESIDUAL)
#define EDGE_ENDS ((uint64_t)FRAME_NODE << 32 | FRAME_NODE)

/* Edges are looked up for every frame of every sample, so they lie in the hash table itself. */
struct edge_slot {
	uint64_t key; /* ends and flags; 0: free, since no edge leads from a node to itself */
	int64_t weight;
};

struct edge_table {
	struct edge_slot *slots;
	uint32_t *samples; /* by slot: last sample with a node twice that was counted, + 1 */
	int64_t *divs;	   /* by slot; with mean */
	unsigned bits;	   /* log2 of the number of slots */
	uint32_t used;
	uint64_t multiplier; /* odd and random */
};

void edge_table_init(struct edge_table *t, bool with_divs, unsigned bits);
void edge_table_release(struct edge_table *t);
void edge_table_grow(struct edge_table *t);
/* Adds all that another table has. */
void edge_table_join(struct edge_table *t, const struct edge_table *from);
/* Makes g->edges of it; in order, if sums over them must not depend on hashing. */
void edge_table_take(struct arena *a, struct graph *g, const struct edge_table *t, bool in_order);

/* Where to look for an edge first. */
static inline size_t edge_table_place(const struct edge_table *t, uint64_t edge)
{
	return (size_t)((edge & EDGE_ENDS) * t->multiplier >> (64 - t->bits));
}

/* The slot of an edge, new or not. */
static inline size_t edge_table_find(struct edge_table *t, uint64_t edge)
{
	size_t mask = ((size_t)1 << t->bits) - 1;
	size_t i = edge_table_place(t, edge);

	while ((t->slots[i].key ^ edge) & EDGE_ENDS) {
		if (!t->slots[i].key) {
			if ((size_t)t->used * 4 >= mask * 3) {
				edge_table_grow(t);
				return edge_table_find(t, edge);
			}
			t->used++;
			t->slots[i].key = edge & EDGE_ENDS;
			return i;
		}
		i = (i + 1) & mask;
	}
	return i;
}

static inline void edge_table_add(struct edge_table *t, size_t slot, uint64_t edge, int64_t weight)
{
	t->slots[slot].key |= edge & EDGE_FLAGS;
	t->slots[slot].weight = int_add(t->slots[slot].weight, weight);
}

#endif
