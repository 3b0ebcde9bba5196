/* weights.h - weights of nodes, and of the edges and tags between the ones that are kept. Private
 * to graph/. */
#ifndef GRAPH_WEIGHTS_H
#define GRAPH_WEIGHTS_H

#include "base/vec.h"
#include "graph/frames.h"

/* What samples that have no node twice add up to at a location. */
struct location_sum {
	uint64_t cum, flat;
};

/* All by node of some frames. */
struct weights {
	int64_t *flat, *cum;
	int64_t *flat_div, *cum_div; /* NULL without a mean */
	uint64_t *inlined;	     /* sum of |value| over its inlined frames */
	const bool *repeats;	     /* by row: samples that may have a node twice; NULL: all may */
	struct location_sum *locations; /* by location, if they were asked for; else NULL */
};

struct weights_walk {
	const struct profile *p;
	const struct frames *f;
	const struct graph_params *params;
	const bool *wanted;  /* by node; of others the weights are wrong. NULL: all are wanted */
	const bool *repeats; /* by row: samples that may have a node twice. NULL: all may */
	bool *found_repeats; /* by row: set for those that have, if not NULL */
	bool with_locations; /* keep sums by location */
	/* Those sums, if known beforehand; else NULL. What is hidden may be new, and so where
	 * stacks end, unless that is known as well. */
	const struct location_sum *locations;
	bool knows_leaves;
};

void weights_count(struct arena *a, struct weights *w, const struct weights_walk *walk);

/* Frames of the profile and weights of their nodes, either new in `a` or from params->memo. */
void memo_frames(struct arena *a, struct frames *f, const struct profile *p,
		 const struct graph_params *params);
void memo_weights(struct arena *a, struct weights *w, const struct profile *p,
		  const struct frames *f, const bool *wanted, const struct graph_params *params);

/* What edges depend on, beside frames and weights. */
struct edge_key {
	const uint32_t *fates; /* what is kept of the nodes */
	size_t nfates;
	bool near, in_order;
};
/* Copies the edges that an earlier walk found, if params->memo has them. */
bool memo_find_edges(struct arena *a, struct graph *g, const struct edge_key *key,
		     const struct graph_params *params);
void memo_keep_edges(const struct graph *g, const struct edge_key *key,
		     const struct graph_params *params);

struct edge_walk {
	const struct profile *p;
	const struct frames *f;
	const struct graph_params *params;
	const uint32_t *kept; /* by node of f: the index in g->nodes, or NONE */
	/* By index in g->nodes: edges that lead to others are left out; with params->near, only
	 * those that do not come from a wanted one. NULL: all are wanted. */
	const bool *wanted;
	const struct weights *weights;
};
/* Fills g->edges from the samples, with only those frames whose nodes are kept. */
void edges_count(struct arena *a, struct graph *g, const struct edge_walk *walk);

/* Makes g of the whole call tree, cut to nodes of some weight: g->order has them, not sorted. */
void tree_build(struct arena *a, struct graph *g, const struct profile *p, const struct frames *f,
		const struct graph_params *params);
/* Takes nodes out of a tree that has been built: their children go to their parents. */
void tree_remove(struct graph *g, const bool *keep);

/* |sum of flat over the shown nodes * fraction|, which a node or edge must reach. */
int64_t weights_cut(int64_t total, double fraction);

/* One tag of one node; as tag_walk numbers them. */
struct tag_row {
	uint32_t node, label,
		name;	 /* strings; name: of a numeric tag, NONE: the label tag itself */
	uint32_t number; /* of p->labels, that it is the value of */
	uint64_t rank;	 /* of equal ones the first gives its value */
	int64_t flat, flat_div, cum, cum_div;
};
struct tag_list {
	struct tag_row *rows;
	size_t n;
};

typedef vec(uint32_t) node_list;
struct tag_walk {
	const struct profile *p;
	const struct graph_params *params;
	uint32_t nnodes;       /* that get tags, numbered from 0 */
	const uint32_t *nodes; /* by such number: the graph's node; NULL: that is its number */
	int64_t cut;	       /* tags that are lighter are not needed */
	/* Appends the numbers of the nodes that a sample goes through, any number of times, and
	 * returns that of the node where it ends; NONE: it gets no tags. Called by many threads at
	 * a time. */
	uint32_t (*list)(const void *ctx, uint32_t sample, node_list *nodes);
	const void *ctx;
};
void tags_count(struct arena *a, struct tag_list *l, const struct tag_walk *walk);
/* Gives them to the nodes. */
void tags_hand_out(struct arena *a, struct graph *g, const struct tag_list *l,
		   const struct tag_walk *walk);
/* The list of an earlier walk that kept the same, if params->memo has it; it stays there. */
bool memo_find_tags(struct tag_list *l, const uint32_t *kept, size_t nkept,
		    const struct tag_walk *walk);
void memo_keep_tags(const struct tag_list *l, const uint32_t *kept, size_t nkept,
		    const struct tag_walk *walk);
/* Does the profile have labels that a graph shows? */
bool tags_exist(const struct profile *p);

/* Sorts g->order as params say; uses in and out edges for dot. */
void graph_sort(struct graph *g, const struct profile *p, const struct graph_params *params);
/* Lists each node's edges, in the order of g->edges. */
void graph_link(struct arena *a, struct graph *g);
/* Puts the heaviest first. */
void graph_sort_links(struct graph *g, const struct graph_params *params);

#endif
