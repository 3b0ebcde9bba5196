/* graph.h - samples turned into a weighted call graph, trimmed to what is worth showing.
 *
 * A node is a frame (function, line, address ... whatever the profile was aggregated to), or with
 * `call_tree` a frame on one path. Everything lies in the arena that graph_build was given, names
 * are strings of the profile. Node and edge weights are sums of sample values; where `mean`
 * divides, the divisor is kept beside the sum: use node_flat(), node_cum(), edge_value().
 */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "base/int.h"
#include "base/regex.h"
#include "base/stop.h"
#include "profile/profile.h"

struct node_info {
	uint64_t address;
	int64_t line, column, start_line;
	uint32_t name, file, object; /* strings */
	uint32_t unused;	     /* 0: infos are compared as bytes */
};

/* A label (or all string labels joined), or a number with its unit, seen at a node. */
struct node_tag {
	struct str name;
	struct str unit;
	int64_t value; /* of a number */
	int64_t flat, flat_div, cum, cum_div;
};

/* Numeric tags that came along with one label tag (or with none). */
struct tag_group {
	struct str label; /* "" for none */
	struct node_tag *tags;
	size_t ntags;
};

struct node {
	struct node_info info;
	struct str text; /* printable name */
	int64_t flat, flat_div, cum, cum_div;
	uint32_t *in, *out; /* edges, heaviest first */
	uint32_t nin, nout;
	struct node_tag *labels; /* label tags */
	struct tag_group *groups;
	size_t nlabels, ngroups;
};

struct edge {
	uint32_t from, to; /* nodes */
	int64_t weight, div;
	bool is_inline, is_residual;
};

struct graph {
	struct node *nodes;
	uint32_t nnodes;
	uint32_t *order; /* the nodes to show, in order; others are only there as ends of edges */
	uint32_t norder;
	struct edge *edges;
	uint32_t nedges;
	uint32_t dropped_nodes, dropped_edges, original_count;
	int64_t flat_total; /* of all shown nodes, before any was dropped */
	bool is_tree, is_visual;
};

enum graph_sort { GRAPH_SORT_FLAT, GRAPH_SORT_CUM, GRAPH_SORT_NONE };

struct graph_params {
	struct granularity keep; /* what tells frames apart */
	uint32_t value;		 /* sample type to weigh by */
	bool mean;		 /* divide by the first sample type */
	bool call_tree;
	bool drop_negative;
	bool with_objects;  /* tell frames of different binaries and start lines apart */
	bool without_edges; /* nodes are all that is needed */
	bool only_inline;   /* of edges, only those that tell which nodes are inlined */
	bool visual;	    /* for dot: tags, entropy order, no redundant edges */
	enum graph_sort sort;
	int64_t max_nodes; /* 0 or less: all */
	double node_fraction, edge_fraction;
	struct str tag_unit; /* unit that numeric tags are named in */
	const struct label_units *units;
	const struct regex *near; /* of edges, only those of nodes whose text matches; or NULL */
	const struct regex *only; /* nodes of functions whose name does not match are left out;
				     NULL, or with without_edges */
	struct graph_memo *memo;  /* or NULL */
	int threads;
	const atomic_bool *stop; /* or NULL; once set, the graph is of no use */
};

/* What graphs of one profile have in common, kept from one graph_build to the next: give the same
 * one to all of a profile's. For one thread at a time. */
struct graph_memo;
/* What a profile is to the one that filters made it of. */
enum memo_kind {
	MEMO_OTHER,   /* it has some of the samples, in the same order, with their stacks or less */
	MEMO_SELECTS, /* everything but the samples is the same */
	MEMO_HIDES,   /* frames are hidden, and samples gone of which nothing is left */
};
/* `all` is that other and `whole` its memo, which helps; both must live longer. Or NULL. */
struct graph_memo *graph_memo_new(struct graph_memo *whole, const struct profile *all,
				  enum memo_kind kind);
void graph_memo_free(struct graph_memo *m);
size_t graph_memo_bytes(const struct graph_memo *m);

void graph_build(struct arena *a, struct graph *g, const struct profile *p,
		 const struct graph_params *params);

/* "main.go:12 0x..." and so on: what a node is called in text. */
void node_info_text(struct buf *out, const struct profile *p, const struct node_info *i);
/* Tells what the frames of a location are, innermost first. There is at least one, even if nothing
 * is known of it. */
struct frame_reader;
struct frame_reader *frame_reader_new(struct arena *a, const struct profile *p,
				      const struct granularity *keep, bool with_objects);
uint32_t frame_count(const struct frame_reader *r, uint32_t loc);
void frame_info(struct frame_reader *r, uint32_t loc, uint32_t frame, struct node_info *info);

/* Which frame each location stands for, caller first: those of location `loc` are
 * lists[first[loc]] up to lists[first[loc + 1]]. Each is the number of a node, with FRAME_INLINED
 * if it is not the first of its location. */
struct frames {
	uint32_t *first;
	uint32_t *lists;
	struct frame_place {
		uint32_t loc, frame;
	} * places; /* by node: one frame that has it */
	struct frame_reader *reader;
	uint32_t nnodes;
};

#define FRAME_INLINED 0x80000000u
#define FRAME_NODE 0x3fffffffu	/* a bit is left for others' use */
#define FRAME_GROUP 0x40000000u /* of path_side.name_of: repeats of it are one frame */

void frames_init(struct arena *a, struct frames *f, const struct profile *p,
		 const struct granularity *keep, bool with_objects);
/* What a node is. `p` is the profile that the frames were made of, or a copy of it. */
void frames_info(const struct frames *f, const struct profile *p, uint32_t node,
		 struct node_info *info);

static inline int64_t divided(int64_t sum, int64_t div)
{
	return div ? int_div(sum, div) : sum;
}

static inline int64_t node_flat(const struct node *n)
{
	return divided(n->flat, n->flat_div);
}

static inline int64_t node_cum(const struct node *n)
{
	return divided(n->cum, n->cum_div);
}

static inline int64_t edge_value(const struct edge *e)
{
	return divided(e->weight, e->div);
}

/* ---- the call tree, cut to what can be seen of it, for flame graphs (paths.c) */

/* One path. A comparison's base has negative samples; both sides are kept, as positive numbers. */
struct path {
	uint32_t parent;     /* or NONE; parents come before their children */
	uint32_t frame;	     /* a node of frames, or what path_side.name_of makes of it */
	int64_t now, before; /* sums of positive and of negative samples that go through here */
	int64_t lost_now, lost_before; /* of that: what goes on to paths that were left out */
	double width;		       /* the larger of the two at each path's end, summed up */
	unsigned char inlined;	       /* per cent of it that comes here without a call */
};

struct path_tree {
	struct frames frames; /* of path_tree_build */
	struct path *paths;   /* the first is the empty path, of no frame: the sum of all */
	uint32_t npaths;
	uint32_t ncut; /* paths that were left out; those below them are not counted */
	bool has_base; /* are there any negative samples? */
};

/* Of the parameters, uses keep, value, drop_negative (paths that are lighter than before are left
 * out), mean (each sample is divided by itself) and node_fraction: paths below that share of the
 * whole end where their caller does. Some that are a little lighter may be there. */
void path_tree_build(struct arena *a, struct path_tree *t, const struct profile *p,
		     const struct graph_params *params);

/* One of the profiles that a tree is made of. Stacks may have hidden locations. */
struct path_side {
	const struct profile *p;
	const struct frames *frames;
	/* By node: what tells paths apart, which may have FRAME_GROUP. NULL: the nodes themselves.
	 */
	const uint32_t *name_of;
	uint32_t value;
	bool mean;
	bool is_before; /* all of it counts as `before` */
};

struct path_params {
	double fraction;    /* of the whole, or of what goes through `root` */
	uint32_t max_paths; /* the heaviest; 0: no limit */
	bool drop_negative;
	bool is_inverted;	  /* from the leaf to its callers */
	bool collapses_recursion; /* a frame that is the same as its caller's is left out */
	bool collapses_loops;	  /* and so is all between a frame and its last occurrence */
	bool splits_inlined;	  /* a function that was called is not one that was inlined */
	uint32_t pivot;		  /* stacks start at its outermost occurrence; or NONE */
	/* A path; what does not go through it is lost where it leaves. With splits_inlined its
	 * frames may have FRAME_INLINED. */
	const uint32_t *root;
	size_t nroot;
	const atomic_bool *stop; /* or NULL */
	int threads;
};

/* There are one or two sides. The frames that differ between sides must have been given common
 * numbers by name_of. If stopped, the tree is of no use. */
void path_tree_grow(struct arena *a, struct path_tree *t, const struct path_side *sides,
		    size_t nsides, const struct path_params *params);
/* What each path weighs by itself: without its callees, and without what was left out. */
int64_t *path_tree_own(struct arena *a, const struct path_tree *t, bool before);

/* Nodes of the profile's frames, out of the memo if the parameters have one. */
void graph_frames(struct arena *a, struct frames *f, const struct profile *p,
		  const struct graph_params *params);

/* Heaviest first; ties by the names of the ends. */
void graph_sort_edges(struct graph *g, uint32_t *edges, size_t n);
/* Orders tags by weight, then name. */
void node_tags_sort(struct node_tag *tags, size_t n, bool by_flat);

#endif
