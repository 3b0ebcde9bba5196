/* tree.c - the call tree: one node per path. */
#include "graph/weights.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/vec.h"

enum { SIDE_BY_SIDE = 16 };

struct tree_node {
	int64_t flat, cum;
	uint32_t parent, frame; /* frame: index of its node_info */
	bool is_inline;		/* on all paths that came here */
};

struct divisors {
	int64_t flat, cum;
};

struct tree {
	const struct profile *p;
	const struct frames *f;
	const struct graph_params *params;
	vec(struct tree_node) nodes;
	vec(struct divisors) divs; /* with mean, by node */
	vec(uint32_t) frames;	   /* of the samples that are being added */
	struct map map;
	uint64_t seed;
};

static bool same_child(const void *ctx, uint32_t index)
{
	const struct tree *t = ((const void *const *)ctx)[0];
	const struct tree_node *want = ((const void *const *)ctx)[1], *n = &t->nodes.at[index];

	return n->parent == want->parent && n->frame == want->frame;
}

static uint64_t hash_child(const struct tree *t, uint32_t parent, uint32_t frame)
{
	return hash_mix(t->seed, (uint64_t)parent << 32 | frame);
}

static uint32_t add_child(struct tree *t, const struct tree_node *key, uint64_t hash)
{
	const void *ctx[2] = { t, key };
	uint32_t at = map_put(&t->map, hash, t->nodes.n, same_child, ctx);

	if (at == t->nodes.n) {
		vec_push(&t->nodes, *key);
		if (t->params->mean)
			vec_push(&t->divs, (struct divisors){ 0 });
	}
	t->nodes.at[at].is_inline &= key->is_inline;
	return at;
}

/* A sample on its way down the tree. */
struct walk {
	uint32_t first, n; /* its frames in t->frames, root first */
	uint32_t at;	   /* the node that it has come to */
	int64_t w, div;
	uint64_t hash;
};

static void start_walk(struct tree *t, struct walk *k, const struct sample *s)
{
	struct unroll u = unroll_start(t->p, s);
	uint32_t frames[UNROLLED + UNROLL_STEP], n;

	k->first = (uint32_t)t->frames.n;
	k->at = NONE;
	while ((n = unroll(&u, t->f, frames)))
		for (uint32_t i = 0; i < n; i++)
			vec_push(&t->frames, frames[i]);
	k->n = (uint32_t)t->frames.n - k->first;
}

static struct tree_node next_key(const struct tree *t, const struct walk *k, uint32_t depth)
{
	uint32_t frame = t->frames.at[k->first + depth];

	return (struct tree_node){ .parent = k->at,
				   .frame = frame & FRAME_NODE,
				   .is_inline = frame & FRAME_INLINED };
}

static void step(struct tree *t, struct walk *k, uint32_t depth)
{
	struct tree_node key = next_key(t, k, depth);

	k->at = add_child(t, &key, k->hash);
	t->nodes.at[k->at].cum = int_add(t->nodes.at[k->at].cum, k->w);
	if (t->params->mean)
		t->divs.at[k->at].cum = int_add(t->divs.at[k->at].cum, k->div);
}

/* Every step depends on the one before and misses the cache, so several samples go side by side. */
static void walk_all(struct tree *t, struct walk *walks, uint32_t n)
{
	uint32_t deepest = 0;

	for (uint32_t i = 0; i < n; i++)
		deepest = walks[i].n > deepest ? walks[i].n : deepest;
	for (uint32_t depth = 0; depth < deepest; depth++) {
		for (uint32_t i = 0; i < n; i++) {
			if (depth < walks[i].n) {
				struct tree_node key = next_key(t, &walks[i], depth);

				walks[i].hash = hash_child(t, key.parent, key.frame);
				map_prefetch(&t->map, walks[i].hash);
			}
		}
		for (uint32_t i = 0; i < n; i++) {
			uint32_t guess = MAP_NONE;

			if (depth < walks[i].n)
				guess = map_guess(&t->map, walks[i].hash);
			if (guess != MAP_NONE)
				__builtin_prefetch(&t->nodes.at[guess], 1);
		}
		for (uint32_t i = 0; i < n; i++)
			if (depth < walks[i].n)
				step(t, &walks[i], depth);
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = walks[i].at;

		if (at == NONE)
			continue;
		t->nodes.at[at].flat = int_add(t->nodes.at[at].flat, walks[i].w);
		if (t->params->mean)
			t->divs.at[at].flat = int_add(t->divs.at[at].flat, walks[i].div);
	}
	t->frames.n = 0;
}

static void add_samples(struct tree *t)
{
	const struct profile *p = t->p;
	struct walk walks[SIDE_BY_SIDE];
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->nsamples; i++) {
		const int64_t *values = sample_values(p, &p->samples[i]);
		struct walk *k = &walks[n];

		if (stop_asked_at(t->params->stop, i))
			break;
		k->w = values[t->params->value];
		k->div = t->params->mean ? values[0] : 0;
		if (!k->w && !k->div)
			continue;
		start_walk(t, k, &p->samples[i]);
		if (++n == SIDE_BY_SIDE) {
			walk_all(t, walks, n);
			n = 0;
		}
	}
	walk_all(t, walks, n);
}

static bool is_shown(const struct tree *t, const struct tree_node *n)
{
	if (n->cum == 0 && n->flat == 0)
		return false;
	return !t->params->drop_negative || !(n->flat < 0 || (n->flat == 0 && n->cum < 0));
}

static int64_t shown_total(const struct tree *t, uint32_t *nshown)
{
	int64_t total = 0;

	*nshown = 0;
	for (size_t i = 0; i < t->nodes.n; i++) {
		if (is_shown(t, &t->nodes.at[i])) {
			total = int_add(total, t->nodes.at[i].flat);
			++*nshown;
		}
	}
	return total;
}

static void set_node(const struct tree *t, struct node *to, size_t at)
{
	const struct tree_node *n = &t->nodes.at[at];

	*to = (struct node){ .flat = n->flat, .cum = n->cum };
	frames_info(t->f, t->p, n->frame, &to->info);
	if (t->params->mean) {
		to->flat_div = t->divs.at[at].flat;
		to->cum_div = t->divs.at[at].cum;
	}
}

/* Nodes that are not shown stay in the tree, those below the cut leave it. */
static uint32_t *choose_nodes(struct arena *a, const struct tree *t, struct graph *g)
{
	uint32_t nshown, nkept = 0, *to = arena_many(a, t->nodes.n, uint32_t);
	int64_t cut;

	g->flat_total = shown_total(t, &nshown);
	cut = weights_cut(g->flat_total, t->params->node_fraction);
	for (size_t i = 0; i < t->nodes.n; i++) {
		bool shown = is_shown(t, &t->nodes.at[i]);

		to[i] = NONE;
		if (shown && cut > 0 && int_abs(t->nodes.at[i].cum) < cut)
			continue;
		to[i] = g->nnodes++;
		nkept += shown;
	}
	g->dropped_nodes = nshown - nkept;
	g->norder = nkept;
	return to;
}

static void make_graph(struct arena *a, const struct tree *t, struct graph *g, const uint32_t *to)
{
	uint32_t shown = 0;
	/* for nodes that left: the nearest ancestor that stays, and whether all the way is inlined
	 */
	uint32_t *up = arena_many(a, t->nodes.n, uint32_t);
	bool *is_inline = arena_many(a, t->nodes.n, bool);

	g->nodes = arena_many(a, g->nnodes, struct node);
	g->order = arena_many(a, g->norder, uint32_t);
	g->edges = arena_many(a, g->nnodes, struct edge);
	for (size_t i = 0; i < t->nodes.n; i++) { /* parents come before their children */
		const struct tree_node *n = &t->nodes.at[i];
		uint32_t parent = n->parent;
		bool gap = parent != NONE && to[parent] == NONE;

		is_inline[i] = n->is_inline && (!gap || is_inline[parent]);
		up[i] = gap ? up[parent] : parent;
		if (to[i] == NONE)
			continue;
		set_node(t, &g->nodes[to[i]], i);
		if (is_shown(t, n))
			g->order[shown++] = to[i];
		if (up[i] != NONE)
			g->edges[g->nedges++] = (struct edge){
				to[up[i]],    to[i],
				n->cum,	      t->params->mean ? t->divs.at[i].cum : 0,
				is_inline[i], gap
			};
	}
}

struct tree_stays {
	const struct tree *t;
	const uint32_t *to; /* by node: that of the graph, or NONE */
};

/* For tags_count. */
static uint32_t list_nodes(const void *ctx, uint32_t sample, node_list *nodes)
{
	const struct tree_stays *x = ctx;
	const struct tree *t = x->t;
	struct unroll u = unroll_start(t->p, &t->p->samples[sample]);
	uint32_t frames[UNROLLED + UNROLL_STEP], n, at = NONE;

	while ((n = unroll(&u, t->f, frames))) {
		for (uint32_t k = 0; k < n; k++) {
			struct tree_node key = { .parent = at, .frame = frames[k] & FRAME_NODE };
			const void *same[2] = { t, &key };

			at = map_get(&t->map, hash_child(t, at, key.frame), same_child, same);
			if (x->to[at] != NONE)
				vec_push(nodes, x->to[at]);
		}
	}
	return at == NONE ? NONE : x->to[at];
}

static void tag_nodes(struct arena *a, const struct tree *t, struct graph *g, const uint32_t *to)
{
	struct tree_stays stays = { t, to };
	struct tag_walk walk = { .p = t->p,
				 .params = t->params,
				 .nnodes = g->nnodes,
				 .cut = weights_cut(g->flat_total, t->params->node_fraction),
				 .list = list_nodes,
				 .ctx = &stays };
	struct tag_list tags;

	tags_count(a, &tags, &walk);
	tags_hand_out(a, g, &tags, &walk);
}

void tree_build(struct arena *a, struct graph *g, const struct profile *p, const struct frames *f,
		const struct graph_params *params)
{
	struct tree t = { .p = p, .f = f, .params = params, .seed = map_seed() };
	struct arena scratch = { 0 };
	uint32_t *to;

	add_samples(&t);
	g->is_tree = true;
	to = choose_nodes(&scratch, &t, g);
	make_graph(a, &t, g, to);
	/* Of a tree that is not complete, samples would not find their nodes. */
	if (params->visual && tags_exist(p) && !stop_asked(params->stop))
		tag_nodes(a, &t, g, to);
	vec_release(&t.nodes);
	vec_release(&t.divs);
	vec_release(&t.frames);
	map_release(&t.map);
	arena_release(&scratch);
}

void tree_remove(struct graph *g, const bool *keep)
{
	uint32_t nedges = 0, norder = 0;
	struct arena scratch = { 0 };
	const struct edge *edges = arena_copy(&scratch, g->edges, g->nedges * sizeof(*edges));
	uint32_t *in = arena_many(&scratch, g->nnodes, uint32_t); /* edge into the node, + 1 */

	for (uint32_t i = 0; i < g->nedges; i++)
		in[edges[i].to] = i + 1;
	for (uint32_t i = 0; i < g->nedges; i++) {
		struct edge e = edges[i];

		if (!keep[e.to])
			continue;
		while (e.from != NONE && !keep[e.from]) {
			uint32_t up = in[e.from];

			e.is_residual = true;
			e.is_inline &= up && edges[up - 1].is_inline;
			e.from = up ? edges[up - 1].from : NONE;
		}
		if (e.from != NONE)
			g->edges[nedges++] = e;
	}
	g->nedges = nedges;
	for (uint32_t i = 0; i < g->norder; i++)
		if (keep[g->order[i]])
			g->order[norder++] = g->order[i];
	g->norder = norder;
	arena_release(&scratch);
}
