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
	struct tally *tallies; /* by node: what becomes sums.cum */
	struct weights sums;
	vec(uint32_t) some; /* locations of a sample that matter */
};

struct pass {
	const struct profile *p;
	const struct frames *f;
	const struct graph_params *params;
	const bool *matters; /* by location; NULL: all do */
	struct piece *pieces;
};

/* Adds to a node what it has not got of this sample yet. */
static inline void count_node(const struct piece *to, uint32_t node, uint32_t stamp, int64_t w,
			      int64_t div)
{
	struct tally *t = &to->tallies[node];
	int64_t is_new = -(int64_t)(t->sample != stamp); /* all bits or none: no branch to miss */

	t->sample = stamp;
	t->cum = int_add(t->cum, w & is_new);
	if (to->sums.cum_div)
		to->sums.cum_div[node] = int_add(to->sums.cum_div[node], div & is_new);
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
	uint32_t frames[UNROLLED + UNROLL_STEP], inlined[UNROLLED + UNROLL_STEP], n, leaf = NONE;

	while ((n = unroll(&u, x->f, x->f->lists, frames))) {
		uint32_t ninlined = 0;

		for (uint32_t i = 0; i < n; i++)
			__builtin_prefetch(&to->tallies[frames[i] & FRAME_NODE], 1);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t node = frames[i] & FRAME_NODE;

			count_node(to, node, index + 1, w, div);
			inlined[ninlined] = node;
			ninlined += frames[i] != node;
		}
		for (uint32_t i = 0; i < ninlined; i++)
			to->sums.inlined[inlined[i]] += (uint64_t)int_abs(w);
		leaf = frames[n - 1] & FRAME_NODE;
	}
	if (leaf == NONE || skips_leaf(x, s))
		return;
	to->sums.flat[leaf] = int_add(to->sums.flat[leaf], w);
	if (to->sums.flat_div)
		to->sums.flat_div[leaf] = int_add(to->sums.flat_div[leaf], div);
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

static void add_numbers(int64_t *sum, const int64_t *from, uint32_t n)
{
	for (uint32_t i = 0; sum && i < n; i++)
		sum[i] = int_add(sum[i], from[i]);
}

static void add_piece(struct weights *sum, const struct piece *from, uint32_t nnodes)
{
	add_numbers(sum->flat, from->sums.flat, nnodes);
	add_numbers(sum->flat_div, from->sums.flat_div, nnodes);
	add_numbers(sum->cum_div, from->sums.cum_div, nnodes);
	for (uint32_t n = 0; n < nnodes; n++) {
		sum->cum[n] = int_add(sum->cum[n], from->tallies[n].cum);
		sum->inlined[n] += from->sums.inlined[n];
	}
}

static void weights_init(struct arena *a, struct weights *w, uint32_t nnodes, bool mean)
{
	*w = (struct weights){ .flat = arena_many(a, nnodes, int64_t),
			       .inlined = arena_many(a, nnodes, uint64_t) };
	if (mean) {
		w->flat_div = arena_many(a, nnodes, int64_t);
		w->cum_div = arena_many(a, nnodes, int64_t);
	}
}

void weights_count(struct arena *a, struct weights *w, const struct profile *p,
		   const struct frames *f, const bool *wanted, const struct graph_params *params)
{
	struct arena scratch = { 0 };
	struct pass x = { .p = p, .f = f, .params = params };
	size_t n =
		p->nsamples > PARALLEL_SAMPLES && params->threads > 1 ? (size_t)params->threads : 1;

	if (wanted)
		x.matters = choose_locations(&scratch, p, f, wanted);
	x.pieces = arena_many(&scratch, n, struct piece);
	for (size_t i = 0; i < n; i++) {
		struct piece *piece = &x.pieces[i];

		piece->first = (uint32_t)(p->nsamples * i / n);
		piece->last = (uint32_t)(p->nsamples * (i + 1) / n);
		piece->tallies = arena_many(&scratch, f->nnodes, struct tally);
		weights_init(i ? &scratch : a, &piece->sums, f->nnodes, params->mean);
	}
	parallel_for((int)n, n, count_piece, &x);
	/* The first piece's sums become those of all. */
	*w = x.pieces[0].sums;
	w->cum = arena_many(a, f->nnodes, int64_t);
	for (uint32_t i = 0; i < f->nnodes; i++)
		w->cum[i] = x.pieces[0].tallies[i].cum;
	for (size_t i = 1; i < n; i++)
		add_piece(w, &x.pieces[i], f->nnodes);
	for (size_t i = 0; i < n; i++)
		vec_release(&x.pieces[i].some);
	arena_release(&scratch);
}
