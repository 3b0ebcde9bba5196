/* weights.c - flat and cumulative weight of every node: the pass over all samples, on all cores. */
#include "graph/weights.h"

#include "base/parallel.h"

enum { PARALLEL_SAMPLES = 20000 };

/* What the walk touches for each frame, side by side. */
struct tally {
	int64_t cum, flat;
	uint32_t sample; /* last sample that was counted in cum, + 1 */
};

struct pass {
	const struct profile *p;
	const struct frames *f;
	const struct graph_params *params;
	int npieces;
	struct tally **tallies; /* by piece */
	struct node_weight **divs;
};

static void count_node(const struct pass *x, size_t piece, uint32_t node, uint32_t stamp, int64_t w,
		       int64_t div)
{
	struct tally *t = &x->tallies[piece][node];

	if (t->sample == stamp)
		return;
	t->sample = stamp;
	t->cum = int_add(t->cum, w);
	if (x->params->mean)
		x->divs[piece][node].cum_div = int_add(x->divs[piece][node].cum_div, div);
}

static void count_sample(const struct pass *x, size_t piece, const struct sample *s, uint32_t stamp,
			 int64_t w, int64_t div)
{
	const uint32_t *stack = x->p->stacks + s->stack, *nodes = NULL;
	struct tally *tallies = x->tallies[piece];
	uint32_t n = 0;

	for (uint32_t i = s->nstack; i-- > 0;) {
		nodes = frames_of(x->f, stack[i], &n);
		for (uint32_t k = 0; k < n; k++)
			count_node(x, piece, nodes[k], stamp, w, div);
	}
	if (!nodes)
		return;
	tallies[nodes[n - 1]].flat = int_add(tallies[nodes[n - 1]].flat, w);
	if (x->params->mean) {
		int64_t *d = &x->divs[piece][nodes[n - 1]].flat_div;

		*d = int_add(*d, div);
	}
}

static void count_piece(void *ctx, size_t piece)
{
	const struct pass *x = ctx;
	const struct profile *p = x->p;
	uint32_t first = (uint32_t)((uint64_t)p->nsamples * piece / (uint64_t)x->npieces);
	uint32_t last = (uint32_t)((uint64_t)p->nsamples * (piece + 1) / (uint64_t)x->npieces);

	for (uint32_t i = first; i < last; i++) {
		const int64_t *values = sample_values(p, &p->samples[i]);
		int64_t w = values[x->params->value], div = x->params->mean ? values[0] : 0;

		if (w || div)
			count_sample(x, piece, &p->samples[i], i + 1, w, div);
	}
}

static void add_piece(struct node_weight *sum, const struct pass *x, int piece)
{
	for (uint32_t n = 0; n < x->f->nnodes; n++) {
		sum[n].cum = int_add(sum[n].cum, x->tallies[piece][n].cum);
		sum[n].flat = int_add(sum[n].flat, x->tallies[piece][n].flat);
		if (!x->params->mean)
			continue;
		sum[n].cum_div = int_add(sum[n].cum_div, x->divs[piece][n].cum_div);
		sum[n].flat_div = int_add(sum[n].flat_div, x->divs[piece][n].flat_div);
	}
}

struct node_weight *weights_count(struct arena *a, const struct profile *p, const struct frames *f,
				  const struct graph_params *params)
{
	struct node_weight *sum = arena_many(a, f->nnodes, struct node_weight);
	struct arena scratch = { 0 };
	struct pass x = { p, f, params, 1, NULL, NULL };

	if (p->nsamples > PARALLEL_SAMPLES && params->threads > 1)
		x.npieces = params->threads;
	x.tallies = arena_many(&scratch, (size_t)x.npieces, struct tally *);
	x.divs = arena_many(&scratch, (size_t)x.npieces, struct node_weight *);
	for (int i = 0; i < x.npieces; i++) {
		x.tallies[i] = arena_many(&scratch, f->nnodes, struct tally);
		if (params->mean)
			x.divs[i] = arena_many(&scratch, f->nnodes, struct node_weight);
	}
	parallel_for(x.npieces, (size_t)x.npieces, count_piece, &x);
	for (int i = 0; i < x.npieces; i++)
		add_piece(sum, &x, i);
	arena_release(&scratch);
	return sum;
}
