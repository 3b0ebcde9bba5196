/* weights.c - flat and cumulative weight of every node: the pass over all samples, on all cores. */
#include "graph/weights.h"

#include "base/parallel.h"
#include "base/vec.h"

enum { PARALLEL_SAMPLES = 20000 };

/* What the walk touches for each frame: small, so that many fit the cache. */
struct tally {
	int64_t cum;
	uint32_t sample; /* last sample that was counted in cum, + 1 */
};

/* One thread's share of the samples. */
struct piece {
	uint32_t first, last;
	struct tally *tallies;	     /* by node */
	struct node_weight *weights; /* the rest, by node */
	vec(uint32_t) some;	     /* locations of a sample that matter */
};

struct pass {
	const struct profile *p;
	const struct frames *f;
	const struct graph_params *params;
	const bool *matters; /* by location; NULL: all do */
	struct piece *pieces;
};

/* Adds to a node what it has not got of this sample yet. */
static inline void count_node(const struct pass *x, const struct piece *to, uint32_t node,
			      uint32_t stamp, int64_t w, int64_t div)
{
	struct tally *t = &to->tallies[node];
	int64_t is_new = -(int64_t)(t->sample != stamp); /* all bits or none: no branch to miss */

	t->sample = stamp;
	t->cum = int_add(t->cum, w & is_new);
	if (x->params->mean)
		to->weights[node].cum_div = int_add(to->weights[node].cum_div, div & is_new);
}

static bool *choose_locations(struct arena *a, const struct profile *p, const struct frames *f,
			      const bool *wanted)
{
	bool *matters = arena_many(a, p->nlocations, bool);

	for (uint32_t loc = 0; loc < p->nlocations; loc++)
		for (uint32_t i = f->first[loc]; i < f->first[loc + 1]; i++)
			matters[loc] |= wanted[f->lists[i] & FRAME_NODE];
	return matters;
}

static struct unroll unroll_some(const struct pass *x, struct piece *to, const struct sample *s)
{
	const uint32_t *stack = x->p->stacks + s->stack;
	uint32_t n = 0;

	vec_reserve(&to->some, s->nstack);
	for (uint32_t i = 0; i < s->nstack; i++) {
		to->some.at[n] = stack[i];
		n += x->matters[stack[i]];
	}
	return (struct unroll){ to->some.at, n, 0 };
}

/* Is the leaf of the sample one that was not looked at? */
static bool skips_leaf(const struct pass *x, const struct sample *s)
{
	return x->matters && !x->matters[x->p->stacks[s->stack]];
}

static void count_sample(const struct pass *x, struct piece *to, uint32_t index, int64_t w,
			 int64_t div)
{
	const struct sample *s = &x->p->samples[index];
	struct unroll u = x->matters ? unroll_some(x, to, s) : unroll_start(x->p, s);
	uint32_t frames[UNROLLED + UNROLL_STEP], inlined[UNROLLED + UNROLL_STEP], n;
	struct node_weight *leaf = NULL;

	while ((n = unroll(&u, x->f, x->f->lists, frames))) {
		uint32_t ninlined = 0;

		for (uint32_t i = 0; i < n; i++)
			__builtin_prefetch(&to->tallies[frames[i] & FRAME_NODE], 1);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t node = frames[i] & FRAME_NODE;

			count_node(x, to, node, index + 1, w, div);
			inlined[ninlined] = node;
			ninlined += frames[i] != node;
		}
		for (uint32_t i = 0; i < ninlined; i++)
			to->weights[inlined[i]].inlined += (uint64_t)int_abs(w);
		leaf = &to->weights[frames[n - 1] & FRAME_NODE];
	}
	if (!leaf || skips_leaf(x, s))
		return;
	leaf->flat = int_add(leaf->flat, w);
	leaf->flat_div = int_add(leaf->flat_div, div);
}

static void count_piece(void *ctx, size_t index)
{
	const struct pass *x = ctx;
	struct piece *to = &x->pieces[index];

	touch_pages(to->tallies, x->f->nnodes * sizeof(*to->tallies));
	for (uint32_t i = to->first; i < to->last; i++) {
		const int64_t *values = sample_values(x->p, &x->p->samples[i]);
		int64_t w = values[x->params->value], div = x->params->mean ? values[0] : 0;

		if (w || div)
			count_sample(x, to, i, w, div);
	}
}

static void add_piece(struct node_weight *sum, const struct piece *from, uint32_t nnodes)
{
	for (uint32_t n = 0; n < nnodes; n++) {
		const struct node_weight *w = &from->weights[n];

		sum[n].cum = int_add(sum[n].cum, from->tallies[n].cum);
		sum[n].cum_div = int_add(sum[n].cum_div, w->cum_div);
		sum[n].flat = int_add(sum[n].flat, w->flat);
		sum[n].flat_div = int_add(sum[n].flat_div, w->flat_div);
		sum[n].inlined += w->inlined;
	}
}

struct node_weight *weights_count(struct arena *a, const struct profile *p, const struct frames *f,
				  const bool *wanted, const struct graph_params *params)
{
	struct node_weight *sum = arena_many(a, f->nnodes, struct node_weight);
	struct arena scratch = { 0 };
	struct pass x = { .p = p, .f = f, .params = params };
	size_t n =
		p->nsamples > PARALLEL_SAMPLES && params->threads > 1 ? (size_t)params->threads : 1;

	if (wanted)
		x.matters = choose_locations(&scratch, p, f, wanted);
	x.pieces = arena_many(&scratch, n, struct piece);
	for (size_t i = 0; i < n; i++)
		x.pieces[i] = (struct piece){
			.first = (uint32_t)(p->nsamples * i / n),
			.last = (uint32_t)(p->nsamples * (i + 1) / n),
			.tallies = arena_many(&scratch, f->nnodes, struct tally),
			.weights = arena_many(&scratch, f->nnodes, struct node_weight),
		};
	parallel_for((int)n, n, count_piece, &x);
	for (size_t i = 0; i < n; i++) {
		add_piece(sum, &x.pieces[i], f->nnodes);
		vec_release(&x.pieces[i].some);
	}
	arena_release(&scratch);
	return sum;
}
