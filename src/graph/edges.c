/* edges.c - weights of the edges between kept nodes.
 *
 * An edge counts once per sample, however often the stack goes over it. Where frames between two
 * kept ones are left out, the edge is residual.
 */
#include "graph/weights.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/parallel.h"
#include "base/vec.h"

enum { PARALLEL_SAMPLES = 20000, MIN_BITS = 8, MAX_BITS = 20, PENDING = 64 };

/* A kept frame of a location. */
struct step {
	uint32_t node;
	bool is_inline : 1, is_after_gap : 1;
	bool has_edges : 1; /* are edges to its node wanted? */
	/* What a walk needs to know of a location, if this is the only step or stands for several.
	 */
	bool ends_in_gap : 1;
	uint8_t count; /* of steps, or MANY: node is then their index */
};

enum { MANY = 2 };

/* The kept frames of all locations, caller first. */
struct steps {
	struct step *hops;	/* by location */
	vec(struct step) lists; /* a step whose node is a count, then the steps */
	size_t total;
};

/* Edges are looked up for every frame of every sample, so they lie in the hash table itself. */
struct edge_slot {
	uint64_t key; /* from << 32 | to; 0: free, since no edge leads from a node to itself */
	int64_t weight;
	uint32_t sample; /* last sample that was counted, + 1 */
	bool is_inline, is_residual;
};

struct edge_table {
	struct edge_slot *slots;
	int64_t *divs; /* by slot; with mean */
	unsigned bits; /* log2 of the number of slots */
	uint32_t used;
	uint64_t multiplier; /* odd and random */
};

/* One thread's share of the samples. */
struct edge_pass {
	const struct profile *p;
	const struct graph_params *params;
	const struct steps *steps;
	uint32_t first, last; /* samples */
	struct edge_table edges;
	/* Edges wait here until their slots have arrived in the cache. */
	struct pending {
		uint64_t key;
		uint32_t sample;
		bool is_inline, is_residual;
	} pending[PENDING];
	uint32_t npending;
	uint32_t *seen; /* by node: last sample, + 1; for tags */
	struct tag_tally *tags;
};

static void make_steps(struct arena *a, struct steps *s, const struct profile *p,
		       const struct frames *f, const uint32_t *kept, const bool *wanted)
{
	s->hops = arena_many(a, p->nlocations, struct step);
	for (uint32_t loc = 0; loc < p->nlocations; loc++) {
		struct step *hop = &s->hops[loc];
		uint32_t n, start = (uint32_t)s->lists.n;
		const uint32_t *nodes = frames_of(f, loc, &n);
		bool gap = false;

		vec_push(&s->lists, (struct step){ 0 });
		for (uint32_t i = 0; i < n; i++) {
			struct step step = { .node = kept[nodes[i]],
					     .is_inline = i > 0,
					     .is_after_gap = gap };

			gap = step.node == NONE;
			if (gap)
				continue;
			step.has_edges = !wanted || wanted[step.node];
			vec_push(&s->lists, step);
		}
		n = (uint32_t)s->lists.n - start - 1;
		s->lists.at[start].node = n;
		*hop = n == 1 ? s->lists.at[start + 1] : (struct step){ .node = start };
		hop->count = (uint8_t)(n < MANY ? n : MANY);
		hop->ends_in_gap = gap;
		s->total += n;
		if (n < MANY)
			s->lists.n = start;
	}
}

/* The steps of a location, caller first. */
static inline const struct step *hop_steps(const struct steps *s, const struct step *hop,
					   uint32_t *n)
{
	if (hop->count != MANY) {
		*n = hop->count;
		return hop;
	}
	*n = s->lists.at[hop->node].node;
	return &s->lists.at[hop->node + 1];
}

static void table_init(struct edge_table *t, bool with_divs, unsigned bits)
{
	*t = (struct edge_table){ .bits = bits, .multiplier = map_seed() | 1 };
	t->slots = xcalloc((size_t)1 << bits, sizeof(*t->slots));
	if (with_divs)
		t->divs = xcalloc((size_t)1 << bits, sizeof(*t->divs));
}

/* Room for a few callers of each frame: a table that grows touches twice the memory. */
static unsigned first_bits(const struct steps *s)
{
	unsigned bits = MIN_BITS;

	while (bits < MAX_BITS && (size_t)1 << bits < 4 * s->total)
		bits++;
	return bits;
}

static void table_release(struct edge_table *t)
{
	free(t->slots);
	free(t->divs);
}

static void table_grow(struct edge_table *t);

static inline size_t first_slot(const struct edge_table *t, uint64_t key)
{
	return (size_t)(key * t->multiplier >> (64 - t->bits));
}

/* The slot of an edge, new or not. */
static inline size_t find_slot(struct edge_table *t, uint64_t key)
{
	size_t mask = ((size_t)1 << t->bits) - 1;
	size_t i = first_slot(t, key);

	while (t->slots[i].key != key) {
		if (!t->slots[i].key) {
			if ((size_t)t->used * 4 >= mask * 3) {
				table_grow(t);
				return find_slot(t, key);
			}
			t->used++;
			t->slots[i].key = key;
			t->slots[i].is_inline = true;
			return i;
		}
		i = (i + 1) & mask;
	}
	return i;
}

static void table_grow(struct edge_table *t)
{
	struct edge_table old = *t;

	table_init(t, old.divs, old.bits + 1);
	for (size_t i = 0; i < (size_t)1 << old.bits; i++) {
		if (old.slots[i].key) {
			size_t to = find_slot(t, old.slots[i].key);

			t->slots[to] = old.slots[i];
			if (t->divs)
				t->divs[to] = old.divs[i];
		}
	}
	table_release(&old);
}

static void add_edge(struct edge_table *t, size_t slot, const struct edge *e)
{
	struct edge_slot *s = &t->slots[slot];

	s->weight = int_add(s->weight, e->weight);
	s->is_residual |= e->is_residual;
	s->is_inline &= e->is_inline;
	if (t->divs)
		t->divs[slot] = int_add(t->divs[slot], e->div);
}

static uint64_t edge_key(const struct edge *e)
{
	return (uint64_t)e->from << 32 | e->to;
}

static struct edge sample_edge(const struct edge_pass *x, const struct pending *e)
{
	const int64_t *values = sample_values(x->p, &x->p->samples[e->sample]);

	return (struct edge){ .weight = values[x->params->value],
			      .div = x->params->mean ? values[0] : 0,
			      .is_inline = e->is_inline,
			      .is_residual = e->is_residual };
}

static void count_pending(struct edge_pass *x)
{
	for (uint32_t i = 0; i < x->npending; i++)
		__builtin_prefetch(&x->edges.slots[first_slot(&x->edges, x->pending[i].key)], 1);
	for (uint32_t i = 0; i < x->npending; i++) {
		const struct pending *e = &x->pending[i];
		size_t slot = find_slot(&x->edges, e->key);
		struct edge edge;

		if (x->edges.slots[slot].sample == e->sample + 1)
			continue;
		x->edges.slots[slot].sample = e->sample + 1;
		edge = sample_edge(x, e);
		add_edge(&x->edges, slot, &edge);
	}
	x->npending = 0;
}

/* Which frames are kept is as good as random, so this has no branch for it: the edge is always
 * written and then maybe not counted. *n is x->npending, kept in a register. */
static inline uint32_t take_step(struct edge_pass *x, uint32_t *n, uint32_t sample, uint32_t parent,
				 const struct step *step, bool gap, bool is_kept)
{
	if (*n == PENDING) {
		x->npending = *n;
		count_pending(x);
		*n = 0;
	}
	x->pending[*n] = (struct pending){ (uint64_t)parent << 32 | step->node, sample,
					   step->is_inline, gap | step->is_after_gap };
	*n += is_kept & step->has_edges & (parent != NONE) & (parent != step->node);
	return is_kept ? step->node : parent;
}

static struct edge edge_at(const struct edge_table *t, size_t slot)
{
	const struct edge_slot *s = &t->slots[slot];

	return (struct edge){ .from = (uint32_t)(s->key >> 32),
			      .to = (uint32_t)s->key,
			      .weight = s->weight,
			      .div = t->divs ? t->divs[slot] : 0,
			      .is_inline = s->is_inline,
			      .is_residual = s->is_residual };
}

static void count_sample(struct edge_pass *x, uint32_t sample)
{
	const struct sample *s = &x->p->samples[sample];
	const uint32_t *stack = x->p->stacks + s->stack;
	const struct step *hops = x->steps->hops;
	uint32_t parent = NONE, npending = x->npending;
	bool gap = false;

	for (uint32_t i = s->nstack; i-- > 0;) {
		const struct step *hop = &hops[stack[i]];

		if (hop->count != MANY) {
			parent = take_step(x, &npending, sample, parent, hop, gap, hop->count);
		} else {
			uint32_t n;
			const struct step *steps = hop_steps(x->steps, hop, &n);

			for (uint32_t k = 0; k < n; k++)
				parent = take_step(x, &npending, sample, parent, &steps[k],
						   gap & !k, true);
		}
		gap = hop->ends_in_gap;
	}
	x->npending = npending;
}

/* The same walk, for the labels of the nodes on the way. */
static void count_tags(struct edge_pass *x, uint32_t sample, int64_t w, int64_t div)
{
	const struct sample *s = &x->p->samples[sample];
	uint32_t last = NONE;
	bool gap = false;

	for (uint32_t i = s->nstack; i-- > 0;) {
		const struct step *hop = &x->steps->hops[x->p->stacks[s->stack + i]];
		uint32_t n;
		const struct step *steps = hop_steps(x->steps, hop, &n);

		for (uint32_t k = 0; k < n; k++) {
			last = steps[k].node;
			if (x->seen[last] != sample + 1)
				tag_tally_add(x->tags, last, s->labels, false, w, div);
			x->seen[last] = sample + 1;
		}
		gap = hop->ends_in_gap;
	}
	if (last != NONE && !gap)
		tag_tally_add(x->tags, last, s->labels, true, w, div);
}

static void count_samples(void *ctx, size_t index)
{
	struct edge_pass *x = (struct edge_pass *)ctx + index;
	const struct profile *p = x->p;

	for (uint32_t i = x->first; i < x->last; i++) {
		const int64_t *values = sample_values(p, &p->samples[i]);
		int64_t w = values[x->params->value], div = x->params->mean ? values[0] : 0;

		if (!w && !div)
			continue;
		count_sample(x, i);
		if (x->tags)
			count_tags(x, i, w, div);
	}
	count_pending(x);
}

/* Sums all passes up in the first. */
static void join_passes(struct edge_pass *passes, size_t n)
{
	struct edge_table *sum = &passes[0].edges;

	for (size_t i = 1; i < n; i++) {
		const struct edge_table *t = &passes[i].edges;

		for (size_t k = 0; k < (size_t)1 << t->bits; k++) {
			struct edge e = edge_at(t, k);

			if (t->slots[k].key)
				add_edge(sum, find_slot(sum, t->slots[k].key), &e);
		}
	}
}

static int compare_ends(const void *x, const void *y)
{
	uint64_t a = edge_key(x), b = edge_key(y);

	return (a > b) - (a < b);
}

/* Scores of nodes are sums over their edges, so for those the order must not depend on hashing. */
static void take_edges(struct arena *a, struct graph *g, const struct edge_table *t, bool in_order)
{
	g->edges = arena_many(a, t->used, struct edge);
	g->nedges = 0;
	for (size_t i = 0; i < (size_t)1 << t->bits; i++)
		if (t->slots[i].key)
			g->edges[g->nedges++] = edge_at(t, i);
	if (in_order && g->nedges)
		qsort(g->edges, g->nedges, sizeof(*g->edges), compare_ends);
}

void edges_count(struct arena *a, struct graph *g, const struct profile *p, const struct frames *f,
		 const uint32_t *kept, const bool *wanted, const struct graph_params *params)
{
	struct arena scratch = { 0 };
	struct steps steps = { 0 };
	bool with_tags = params->visual && tags_exist(p);
	size_t n = p->nsamples > PARALLEL_SAMPLES && !with_tags ? (size_t)params->threads : 1;
	struct edge_pass *passes = arena_many(&scratch, n, struct edge_pass);

	make_steps(&scratch, &steps, p, f, kept, wanted);
	for (size_t i = 0; i < n; i++) {
		passes[i] = (struct edge_pass){ .p = p,
						.params = params,
						.steps = &steps,
						.first = (uint32_t)(p->nsamples * i / n),
						.last = (uint32_t)(p->nsamples * (i + 1) / n) };
		table_init(&passes[i].edges, params->mean, first_bits(&steps));
	}
	if (with_tags) {
		passes->tags = tag_tally_new(p, params);
		passes->seen = arena_many(&scratch, g->nnodes, uint32_t);
	}
	parallel_for((int)n, n, count_samples, passes);
	join_passes(passes, n);
	take_edges(a, g, &passes->edges, params->visual);
	if (with_tags)
		tag_tally_finish(passes->tags, a, g);
	for (size_t i = 0; i < n; i++)
		table_release(&passes[i].edges);
	vec_release(&steps.lists);
	arena_release(&scratch);
}
