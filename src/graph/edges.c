/* edges.c - weights of the edges between kept nodes.
 *
 * An edge counts once per sample, however often the stack goes over it. Where frames between two
 * kept ones are left out, the edge is residual.
 */
#include "graph/weights.h"

#include "base/map.h"
#include "base/vec.h"

/* A kept frame of a location. */
struct step {
	uint32_t node;
	bool is_inline, is_after_gap;
};

/* The kept frames of all locations, caller first. */
struct steps {
	uint32_t *first; /* by location: index + 1; 0: none is kept */
	uint32_t *count;
	bool *ends_in_gap;
	vec(struct step) all;
};

struct counted_edge {
	struct edge edge;
	uint32_t sample; /* last sample that was counted, + 1 */
};

struct edge_pass {
	const struct profile *p;
	const struct graph_params *params;
	struct steps steps;
	struct map map;
	uint64_t seed;
	vec(struct counted_edge) edges;
	uint32_t *seen; /* by node: last sample, + 1; for tags */
	struct tag_tally *tags;
};

static void make_steps(struct arena *a, struct steps *s, const struct profile *p,
		       const struct frames *f, const uint32_t *kept)
{
	s->first = arena_many(a, p->nlocations, uint32_t);
	s->count = arena_many(a, p->nlocations, uint32_t);
	s->ends_in_gap = arena_many(a, p->nlocations, bool);
	for (uint32_t loc = 0; loc < p->nlocations; loc++) {
		uint32_t n, start = (uint32_t)s->all.n;
		const uint32_t *nodes = frames_of(f, loc, &n);
		bool gap = false;

		for (uint32_t i = 0; i < n; i++) {
			struct step step = { kept[nodes[i]], i > 0, gap };

			if (step.node == NONE) {
				gap = true;
				continue;
			}
			vec_push(&s->all, step);
			gap = false;
		}
		s->ends_in_gap[loc] = gap;
		s->count[loc] = (uint32_t)s->all.n - start;
		s->first[loc] = s->count[loc] ? start + 1 : 0;
	}
}

static bool same_edge(const void *ctx, uint32_t index)
{
	const struct edge_pass *x = ((const void *const *)ctx)[0];
	const struct edge *want = ((const void *const *)ctx)[1], *e = &x->edges.at[index].edge;

	return e->from == want->from && e->to == want->to;
}

static void count_edge(struct edge_pass *x, const struct edge *e, uint32_t stamp)
{
	const void *ctx[2] = { x, e };
	uint64_t hash = hash_mix(x->seed, (uint64_t)e->from << 32 | e->to);
	uint32_t at = map_put(&x->map, hash, x->edges.n, same_edge, ctx);
	struct counted_edge *c;

	if (at == x->edges.n) {
		vec_push(&x->edges, (struct counted_edge){ *e, stamp });
		return;
	}
	c = &x->edges.at[at];
	if (c->sample == stamp)
		return;
	c->sample = stamp;
	c->edge.weight = int_add(c->edge.weight, e->weight);
	c->edge.div = int_add(c->edge.div, e->div);
	c->edge.is_residual |= e->is_residual;
	c->edge.is_inline &= e->is_inline;
}

static void count_tags(struct edge_pass *x, uint32_t node, uint32_t set, uint32_t stamp, int64_t w,
		       int64_t div)
{
	if (x->seen[node] == stamp)
		return;
	x->seen[node] = stamp;
	tag_tally_add(x->tags, node, set, false, w, div);
}

static void count_sample(struct edge_pass *x, const struct sample *s, uint32_t stamp, int64_t w,
			 int64_t div)
{
	const uint32_t *stack = x->p->stacks + s->stack;
	uint32_t parent = NONE;
	bool gap = false;

	for (uint32_t i = s->nstack; i-- > 0;) {
		uint32_t loc = stack[i], first = x->steps.first[loc];

		if (!first) {
			gap = true;
			continue;
		}
		for (uint32_t k = 0; k < x->steps.count[loc]; k++) {
			const struct step *step = &x->steps.all.at[first - 1 + k];

			if (x->tags)
				count_tags(x, step->node, s->labels, stamp, w, div);
			if (parent != NONE && parent != step->node)
				count_edge(x,
					   &(struct edge){ parent, step->node, w, div,
							   step->is_inline,
							   gap || step->is_after_gap },
					   stamp);
			parent = step->node;
			gap = false;
		}
		gap = x->steps.ends_in_gap[loc];
	}
	if (x->tags && parent != NONE && !gap)
		tag_tally_add(x->tags, parent, s->labels, true, w, div);
}

void edges_count(struct arena *a, struct graph *g, const struct profile *p, const struct frames *f,
		 const uint32_t *kept, const struct graph_params *params)
{
	struct arena scratch = { 0 };
	struct edge_pass x = { .p = p, .params = params, .seed = map_seed() };

	make_steps(&scratch, &x.steps, p, f, kept);
	if (params->visual && tags_exist(p)) {
		x.tags = tag_tally_new(p, params);
		x.seen = arena_many(&scratch, g->nnodes, uint32_t);
	}
	for (uint32_t i = 0; i < p->nsamples; i++) {
		const int64_t *values = sample_values(p, &p->samples[i]);
		int64_t w = values[params->value], div = params->mean ? values[0] : 0;

		if (w || div)
			count_sample(&x, &p->samples[i], i + 1, w, div);
	}
	g->edges = arena_many(a, x.edges.n, struct edge);
	g->nedges = (uint32_t)x.edges.n;
	for (size_t i = 0; i < x.edges.n; i++)
		g->edges[i] = x.edges.at[i].edge;
	if (x.tags)
		tag_tally_finish(x.tags, a, g);
	vec_release(&x.edges);
	vec_release(&x.steps.all);
	map_release(&x.map);
	arena_release(&scratch);
}
