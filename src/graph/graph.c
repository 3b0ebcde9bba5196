/* graph.c - builds the graph and trims it: pprof's pipeline of cuts, rebuilds and sorts.
 *
 * A node keeps its weights and tags however much around it is trimmed, so only edges are counted
 * again when nodes go.
 */
#include "graph/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "graph/weights.h"

enum { MAX_NODELETS = 4 };

struct trimmer {
	struct arena *a;
	struct graph *g;
	const struct profile *p;
	const struct graph_params *params;
	struct frames frames;
	struct weights weights; /* by frame node */
	bool *wanted;		/* by frame node: with params->only, those that match */
	int64_t node_cut, edge_cut;
};

int64_t weights_cut(int64_t total, double fraction)
{
	return int_abs(int_from_double((double)total * fraction));
}

static bool is_shown(const struct trimmer *t, uint32_t node)
{
	int64_t flat = t->weights.flat[node], cum = t->weights.cum[node];

	if ((cum == 0 && flat == 0) || (t->wanted && !t->wanted[node]))
		return false;
	return !t->params->drop_negative || !(flat < 0 || (flat == 0 && cum < 0));
}

static void name_nodes(struct arena *a, struct graph *g, const struct profile *p)
{
	struct buf text = { 0 };

	for (uint32_t i = 0; i < g->nnodes; i++) {
		text.n = 0;
		node_info_text(&text, p, &g->nodes[i].info);
		g->nodes[i].text = (struct str){ arena_copy(a, text.p, text.n), text.n };
	}
	buf_release(&text);
}

/* Makes g->nodes of the frame nodes in `list`; returns frame node -> node. */
static uint32_t *take_nodes(struct trimmer *t, const uint32_t *list, uint32_t n)
{
	uint32_t *kept = arena_many(t->a, t->frames.nnodes, uint32_t);
	const struct weights *w = &t->weights;
	struct graph *g = t->g;

	memset(kept, 0xff, t->frames.nnodes * sizeof(*kept)); /* NONE */
	g->nodes = arena_many(t->a, n, struct node);
	g->nnodes = n;
	for (uint32_t i = 0; i < n; i++) {
		kept[list[i]] = i;
		g->nodes[i] = (struct node){ .flat = w->flat[list[i]], .cum = w->cum[list[i]] };
		if (w->flat_div) {
			g->nodes[i].flat_div = w->flat_div[list[i]];
			g->nodes[i].cum_div = w->cum_div[list[i]];
		}
		frames_info(&t->frames, t->p, list[i], &g->nodes[i].info);
	}
	name_nodes(t->a, g, t->p);
	return kept;
}

/* For telling which nodes are inlined, only edges matter that may be inlined and reach the cut:
 * they weigh no more than all inlined frames of the node they lead to. */
static bool *choose_inlined(struct trimmer *t, const uint32_t *kept)
{
	bool *wanted = arena_many(t->a, t->g->nnodes, bool);

	for (uint32_t i = 0; i < t->frames.nnodes; i++)
		if (kept[i] != NONE)
			wanted[kept[i]] = t->weights.inlined[i] &&
					  t->weights.inlined[i] >= (uint64_t)t->edge_cut;
	return wanted;
}

static bool *choose_near(struct trimmer *t)
{
	bool *wanted = arena_many(t->a, t->g->nnodes, bool);

	for (uint32_t i = 0; i < t->g->nnodes; i++)
		wanted[i] = regex_match(t->params->near, t->g->nodes[i].text);
	return wanted;
}

static void count_edges(struct trimmer *t, const uint32_t *kept)
{
	bool *wanted = t->params->only_inline ? choose_inlined(t, kept)
		       : t->params->near      ? choose_near(t)
					      : NULL;

	if (!t->params->without_edges)
		edges_count(t->a, t->g,
			    &(struct edge_walk){ t->p, &t->frames, t->params, kept, wanted,
						 &t->weights });
	graph_link(t->a, t->g);
}

/* Where to look for nodes that get tags. */
struct tagged {
	const struct profile *p;
	const struct frames *frames;
	const uint32_t *places; /* by frame node: its place in the graph's order, or NONE */
	uint32_t *set;		/* locations that have one: a bit for each */
};

static void find_tagged(struct arena *a, struct tagged *x)
{
	const struct frames *f = x->frames;

	x->set = arena_many(a, x->p->nlocations / 32 + 1, uint32_t);
	for (uint32_t loc = 0; loc < x->p->nlocations; loc++)
		for (uint32_t i = f->first[loc]; i < f->first[loc + 1]; i++)
			if (x->places[f->lists[i] & FRAME_NODE] != NONE)
				x->set[loc / 32] |= 1u << loc % 32;
}

/* The node of the innermost frame, or NONE. Hidden locations have no frames. */
static uint32_t leaf_node(const struct tagged *x, const uint32_t *stack, uint32_t n)
{
	const uint32_t *first = x->frames->first;
	uint32_t i = 0;

	while (i < n && first[stack[i]] == first[stack[i] + 1])
		i++;
	return i < n ? x->places[x->frames->lists[first[stack[i] + 1] - 1] & FRAME_NODE] : NONE;
}

static void list_location(const struct tagged *x, uint32_t loc, node_list *nodes)
{
	const struct frames *f = x->frames;

	for (uint32_t i = f->first[loc]; i < f->first[loc + 1]; i++)
		if (x->places[f->lists[i] & FRAME_NODE] != NONE)
			vec_push(nodes, x->places[f->lists[i] & FRAME_NODE]);
}

/* For tags_count. */
static uint32_t list_nodes(const void *ctx, uint32_t sample, node_list *nodes)
{
	enum { STEP = 64 };
	const struct tagged *x = ctx;
	const struct sample *s = &x->p->samples[sample];
	const uint32_t *stack = x->p->stacks + s->stack;
	uint32_t places[STEP];

	for (uint32_t done = 0; done < s->nstack; done += STEP) {
		uint32_t left = s->nstack - done;
		uint32_t n = pick_places(places, stack + done, left < STEP ? left : STEP, x->set);

		for (uint32_t i = 0; i < n; i++)
			list_location(x, stack[done + places[i]], nodes);
	}
	return leaf_node(x, stack, s->nstack);
}

/* Only nodes that come first in the order are shown. Returns how many, and by frame node its place
 * in the order. */
static uint32_t choose_tagged(const struct trimmer *t, struct tagged *x, const uint32_t *kept)
{
	const struct graph *g = t->g;
	int64_t max = t->params->max_nodes;
	uint32_t n = max > 0 && max < g->norder ? (uint32_t)max : g->norder;
	uint32_t *places = arena_many(t->a, g->nnodes, uint32_t);
	uint32_t *tagged = arena_many(t->a, t->frames.nnodes, uint32_t);

	memset(places, 0xff, g->nnodes * sizeof(*places)); /* NONE */
	for (uint32_t i = 0; i < n; i++)
		places[g->order[i]] = i;
	for (uint32_t i = 0; i < t->frames.nnodes; i++)
		tagged[i] = kept[i] == NONE ? NONE : places[kept[i]];
	x->places = tagged;
	return n;
}

static void count_tags(struct trimmer *t, const uint32_t *kept)
{
	struct tagged x = { .p = t->p, .frames = &t->frames };
	struct tag_walk walk = { .p = t->p,
				 .params = t->params,
				 .nnodes = choose_tagged(t, &x, kept),
				 .nodes = t->g->order,
				 .cut = t->node_cut,
				 .list = list_nodes,
				 .ctx = &x };
	struct tag_list tags;

	if (!tags_exist(t->p))
		return;
	if (!memo_find_tags(&tags, x.places, t->frames.nnodes, &walk)) {
		find_tagged(t->a, &x);
		tags_count(t->a, &tags, &walk);
		memo_keep_tags(&tags, x.places, t->frames.nnodes, &walk);
	}
	tags_hand_out(t->a, t->g, &tags, &walk);
}

static bool *choose_named(const struct trimmer *t)
{
	enum { UNKNOWN, YES, NO };
	unsigned char *verdicts = arena_alloc(t->a, t->p->strings->n);
	bool *wanted = arena_many(t->a, t->frames.nnodes, bool);

	for (uint32_t i = 0; i < t->frames.nnodes; i++) {
		struct node_info info;

		frames_info(&t->frames, t->p, i, &info);
		if (verdicts[info.name] == UNKNOWN)
			verdicts[info.name] =
				regex_match(t->params->only, profile_str(t->p, info.name)) ? YES
											   : NO;
		wanted[i] = verdicts[info.name] == YES;
	}
	return wanted;
}

static void set_cuts(struct trimmer *t)
{
	t->node_cut = weights_cut(t->g->flat_total, t->params->node_fraction);
	t->edge_cut = weights_cut(t->g->flat_total, t->params->edge_fraction);
}

/* The graph of all nodes that reach the cut. Returns frame node -> node. */
static uint32_t *cut_nodes(struct trimmer *t)
{
	uint32_t n = t->frames.nnodes, nshown = 0, nkept = 0, nall = 0;
	uint32_t *all = arena_many(t->a, n, uint32_t), *shown = arena_many(t->a, n, uint32_t);
	struct graph *g = t->g;
	uint32_t *kept;

	for (uint32_t i = 0; i < n; i++) {
		if (is_shown(t, i)) {
			g->flat_total = int_add(g->flat_total, t->weights.flat[i]);
			nshown++;
		}
	}
	set_cuts(t);
	for (uint32_t i = 0; i < n; i++)
		if (is_shown(t, i) &&
		    (t->node_cut <= 0 || int_abs(t->weights.cum[i]) >= t->node_cut))
			shown[nkept++] = i;
	g->dropped_nodes = nshown - nkept;
	/* Only a rebuilt graph is free of the nodes that are not shown. */
	for (uint32_t i = 0; i < nkept; i++)
		all[nall++] = shown[i];
	for (uint32_t i = 0; i < n && !g->dropped_nodes && !t->wanted; i++)
		if (!is_shown(t, i))
			all[nall++] = i;
	kept = take_nodes(t, all, nall);
	g->order = arena_many(t->a, nkept, uint32_t);
	g->norder = nkept;
	for (uint32_t i = 0; i < nkept; i++)
		g->order[i] = i;
	return kept;
}

/* ---- tags and edges below the cut */

static size_t cut_tags(struct node_tag *tags, size_t n, int64_t cut)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (int_abs(tags[i].flat) >= cut || int_abs(tags[i].cum) >= cut)
			tags[kept++] = tags[i];
	return kept;
}

static void trim_tags(struct trimmer *t)
{
	for (uint32_t i = 0; i < t->g->nnodes; i++) {
		struct node *n = &t->g->nodes[i];

		n->nlabels = cut_tags(n->labels, n->nlabels, t->node_cut);
		for (size_t k = 0; k < n->ngroups; k++)
			n->groups[k].ntags =
				cut_tags(n->groups[k].tags, n->groups[k].ntags, t->node_cut);
	}
}

static uint32_t trim_edges(struct trimmer *t)
{
	struct graph *g = t->g;
	uint32_t kept = 0, dropped;
	bool *is_shown_node = arena_many(t->a, g->nnodes, bool);

	for (uint32_t i = 0; i < g->norder; i++)
		is_shown_node[g->order[i]] = true;
	for (uint32_t i = 0; i < g->nedges; i++)
		if (!is_shown_node[g->edges[i].to] || int_abs(g->edges[i].weight) >= t->edge_cut)
			g->edges[kept++] = g->edges[i];
	dropped = g->nedges - kept;
	g->nedges = kept;
	if (dropped)
		graph_link(t->a, g);
	return dropped;
}

/* ---- limit to max_nodes */

static int64_t tags_of(const struct node *n)
{
	int64_t count = 0;

	for (size_t i = 0; i < n->nlabels; i++)
		count += n->labels[i].flat != 0;
	for (size_t i = 0; i < n->ngroups; i++)
		for (size_t k = 0; k < n->groups[i].ntags; k++)
			count += n->groups[i].tags[k].flat != 0;
	return count < MAX_NODELETS ? count : MAX_NODELETS;
}

static uint32_t select_top(const struct trimmer *t)
{
	const struct graph *g = t->g;
	int64_t used = 0, max = t->params->max_nodes;
	uint32_t n = 0;

	while (n < g->norder && used < max) {
		used += t->params->visual ? 1 + tags_of(&g->nodes[g->order[n]]) : 1;
		n++;
	}
	return n;
}

static void take_tags(struct node *to, const struct node *from)
{
	to->labels = from->labels;
	to->groups = from->groups;
	to->nlabels = from->nlabels;
	to->ngroups = from->ngroups;
}

/* Leaves the first n nodes of the order. Returns frame node -> node. */
static const uint32_t *keep_top(struct trimmer *t, const uint32_t *kept, uint32_t n)
{
	struct graph *g = t->g;
	const struct node *before = g->nodes;
	const uint32_t *before_of = kept;
	uint32_t *list = arena_many(t->a, n, uint32_t), nlist = 0;
	bool *is_kept = arena_many(t->a, g->nnodes, bool);

	if (g->is_tree) {
		memset(is_kept, 1, g->nnodes);
		for (uint32_t i = n; i < g->norder; i++)
			is_kept[g->order[i]] = false;
		tree_remove(g, is_kept);
		return kept;
	}
	for (uint32_t i = 0; i < n; i++)
		is_kept[g->order[i]] = true;
	for (uint32_t i = 0; i < t->frames.nnodes; i++)
		if (kept[i] != NONE && is_kept[kept[i]])
			list[nlist++] = i;
	kept = take_nodes(t, list, nlist);
	g->norder = nlist;
	for (uint32_t i = 0; i < nlist; i++) {
		g->order[i] = i;
		take_tags(&g->nodes[i], &before[before_of[list[i]]]);
	}
	return kept;
}

/* ---- redundant edges */

/* Can `from` still reach `to` when edge `skip` is gone? */
static bool is_redundant(const struct graph *g, uint32_t skip, uint32_t *queue, uint32_t *mark,
			 uint32_t stamp)
{
	uint32_t from = g->edges[skip].from, nqueue = 0;

	queue[nqueue++] = g->edges[skip].to;
	mark[g->edges[skip].to] = stamp;
	for (uint32_t i = 0; i < nqueue; i++) {
		const struct node *n = &g->nodes[queue[i]];

		for (uint32_t k = 0; k < n->nin; k++) {
			uint32_t next = g->edges[n->in[k]].from;

			if (n->in[k] == skip || mark[next] == stamp)
				continue;
			if (next == from)
				return true;
			mark[next] = stamp;
			queue[nqueue++] = next;
		}
	}
	return false;
}

static void unlink_edge(struct graph *g, uint32_t edge)
{
	struct node *from = &g->nodes[g->edges[edge].from], *to = &g->nodes[g->edges[edge].to];
	uint32_t k = 0;

	for (uint32_t i = 0; i < from->nout; i++)
		if (from->out[i] != edge)
			from->out[k++] = from->out[i];
	from->nout = k;
	k = 0;
	for (uint32_t i = 0; i < to->nin; i++)
		if (to->in[i] != edge)
			to->in[k++] = to->in[i];
	to->nin = k;
}

static void remove_redundant_edges(struct trimmer *t)
{
	struct graph *g = t->g;
	uint32_t *queue = arena_many(t->a, g->nnodes, uint32_t);
	uint32_t *mark = arena_many(t->a, g->nnodes, uint32_t), stamp = 0;

	for (uint32_t i = g->norder; i-- > 0;) {
		struct node *n = &g->nodes[g->order[i]];

		/* Lightest first, and never an edge that is heavier than a real one. */
		for (uint32_t k = n->nin; k-- > 0 && g->edges[n->in[k]].is_residual;)
			if (is_redundant(g, n->in[k], queue, mark, ++stamp))
				unlink_edge(g, n->in[k]);
	}
}

/* A drawing's nodes are chosen by how their edges spread, so those are counted before and after. */
static void trim_visual(struct trimmer *t, const uint32_t *kept)
{
	struct graph *g = t->g;

	graph_sort(g, t->p, t->params);
	if (!g->is_tree)
		count_tags(t, kept);
	if (stop_asked(t->params->stop))
		return;
	if (t->params->max_nodes > 0) {
		uint32_t n;

		trim_tags(t);
		trim_edges(t);
		n = select_top(t);
		if (n < g->norder) {
			kept = keep_top(t, kept, n);
			if (g->is_tree)
				graph_link(t->a, g);
			else
				count_edges(t, kept);
			graph_sort(g, t->p, t->params);
		}
	}
	trim_tags(t);
	g->dropped_edges = trim_edges(t);
	graph_sort_links(g, t->params);
	remove_redundant_edges(t);
}

/* Elsewhere weight decides, and edges are needed of the final nodes only. */
static void trim(struct trimmer *t, const uint32_t *kept)
{
	struct graph *g = t->g;

	if (t->params->sort != GRAPH_SORT_NONE)
		graph_sort(g, t->p, t->params);
	if (t->params->max_nodes > 0 && select_top(t) < g->norder) {
		kept = keep_top(t, kept, select_top(t));
		graph_sort(g, t->p, t->params);
	}
	if (!g->is_tree)
		count_edges(t, kept);
	if (stop_asked(t->params->stop))
		return;
	trim_edges(t);
	graph_link(t->a, g);
	graph_sort_links(g, t->params);
}

void graph_build(struct arena *a, struct graph *g, const struct profile *p,
		 const struct graph_params *params)
{
	struct trimmer t = { .a = a, .g = g, .p = p, .params = params };
	uint32_t *kept = NULL;

	*g = (struct graph){ .is_visual = params->visual };
	memo_frames(a, &t.frames, p, params);
	if (params->call_tree) {
		tree_build(a, g, p, &t.frames, params);
		set_cuts(&t);
		name_nodes(a, g, p);
		graph_link(a, g);
	} else {
		t.wanted = params->only ? choose_named(&t) : NULL;
		memo_weights(a, &t.weights, p, &t.frames, t.wanted, params);
		if (stop_asked(params->stop))
			return;
		kept = cut_nodes(&t);
	}
	g->original_count = g->norder;
	if (params->visual && !g->is_tree)
		count_edges(&t, kept);
	if (stop_asked(params->stop))
		return;
	if (params->visual)
		trim_visual(&t, kept);
	else
		trim(&t, kept);
}
