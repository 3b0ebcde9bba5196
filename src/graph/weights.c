/* weights.c - flat and cumulative weight of every node: the pass over all samples, on all cores.
 *
 * A node counts once per sample, however often it is in its stack. Where it is known that a sample
 * has no node twice, sums over locations do, without a look at their frames.
 */
#include "graph/weights.h"

#include <string.h>

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
	struct location_sum *by_location; /* or NULL */
	vec(uint32_t) some;		  /* locations of a sample that matter */
};

struct pass {
	const struct weights_walk *walk;
	const struct profile *p;
	const struct frames *f;
	const bool *matters; /* by location; NULL: all do */
	struct piece *pieces;
};

/* Adds to a node what it has not got of this sample yet. Returns whether it had it. */
static inline bool count_node(const struct piece *to, uint32_t node, uint32_t stamp, int64_t w,
			      int64_t div)
{
	struct tally *t = &to->tallies[node];
	int64_t is_new = -(int64_t)(t->sample != stamp); /* all bits or none: no branch to miss */

	t->sample = stamp;
	t->cum = int_add(t->cum, w & is_new);
	if (to->sums.cum_div)
		to->sums.cum_div[node] = int_add(to->sums.cum_div[node], div & is_new);
	return !is_new;
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

/* The innermost location that is not hidden. */
static uint32_t find_leaf(const struct pass *x, const struct sample *s)
{
	const uint32_t *stack = x->p->stacks + s->stack;
	uint32_t i = 0;

	while (x->p->has_hidden && i < s->nstack && x->p->locations[stack[i]].is_hidden)
		i++;
	return i < s->nstack ? stack[i] : NONE;
}

/* Is the leaf of the sample one that was not looked at? */
static bool skips_leaf(const struct pass *x, const struct sample *s)
{
	uint32_t leaf = find_leaf(x, s);

	return x->matters && leaf != NONE && !x->matters[leaf];
}

static void count_locations(const struct pass *x, const struct piece *to, const struct sample *s,
			    int64_t w)
{
	const uint32_t *stack = x->p->stacks + s->stack;
	uint32_t leaf = find_leaf(x, s);

	for (uint32_t i = 0; i < s->nstack; i++)
		to->by_location[stack[i]].cum += (uint64_t)w;
	if (leaf != NONE)
		to->by_location[leaf].flat += (uint64_t)w;
}

/* The same if all is known already, but where stacks end, when frames there are hidden. */
static void count_hidden_leaf(const struct pass *x, const struct piece *to, const struct sample *s,
			      int64_t w)
{
	uint32_t leaf = s->nstack ? x->p->stacks[s->stack] : NONE;

	if (leaf == NONE || !x->p->locations[leaf].is_hidden)
		return;
	leaf = find_leaf(x, s);
	if (leaf != NONE)
		to->by_location[leaf].flat += (uint64_t)w;
}

/* Returns whether it has a node twice. */
static bool count_sample(const struct pass *x, struct piece *to, uint32_t index, int64_t w,
			 int64_t div)
{
	const struct sample *s = &x->p->samples[index];
	struct unroll u = x->matters ? unroll_some(x, to, s) : unroll_start(x->p, s);
	uint32_t frames[UNROLLED + UNROLL_STEP], inlined[UNROLLED + UNROLL_STEP], n, leaf = NONE;
	bool repeats = false;

	while ((n = unroll(&u, x->f, frames))) {
		uint32_t ninlined = 0;

		for (uint32_t i = 0; i < n; i++)
			__builtin_prefetch(&to->tallies[frames[i] & FRAME_NODE], 1);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t node = frames[i] & FRAME_NODE;

			repeats |= count_node(to, node, index + 1, w, div);
			inlined[ninlined] = node;
			ninlined += frames[i] != node;
		}
		for (uint32_t i = 0; i < ninlined; i++)
			to->sums.inlined[inlined[i]] += (uint64_t)int_abs(w);
		leaf = frames[n - 1] & FRAME_NODE;
	}
	if (repeats && x->walk->found_repeats)
		x->walk->found_repeats[s->row] = true;
	if (leaf == NONE || skips_leaf(x, s))
		return repeats;
	to->sums.flat[leaf] = int_add(to->sums.flat[leaf], w);
	if (to->sums.flat_div)
		to->sums.flat_div[leaf] = int_add(to->sums.flat_div[leaf], div);
	return repeats;
}

/* From sums over locations to sums over nodes. */
static void spread_locations(const struct pass *x, const struct piece *to)
{
	const struct frames *f = x->f;

	for (uint32_t loc = 0; loc < x->p->nlocations; loc++) {
		const struct location_sum *sum = &to->by_location[loc];
		uint32_t end = f->first[loc + 1];

		if (!sum->cum && !sum->flat)
			continue;
		for (uint32_t i = f->first[loc]; i < end; i++) {
			uint32_t node = f->lists[i] & FRAME_NODE;

			to->tallies[node].cum = int_add(to->tallies[node].cum, (int64_t)sum->cum);
			if (f->lists[i] & FRAME_INLINED)
				to->sums.inlined[node] += sum->cum;
			if (i + 1 == end)
				to->sums.flat[node] =
					int_add(to->sums.flat[node], (int64_t)sum->flat);
		}
	}
}

static void count_one(const struct pass *x, struct piece *to, uint32_t index)
{
	const struct weights_walk *walk = x->walk;
	const struct sample *s = &x->p->samples[index];
	const int64_t *values = sample_values(x->p, s);
	int64_t w = values[walk->params->value], div = walk->params->mean ? values[0] : 0;

	/* What is inlined is summed without sign. */
	if (to->by_location && walk->repeats && w >= 0 && !walk->repeats[s->row]) {
		if (!walk->locations)
			count_locations(x, to, s, w);
		else if (!walk->knows_leaves)
			count_hidden_leaf(x, to, s, w);
	} else if (w || div) {
		bool repeats = count_sample(x, to, index, w, div);

		if (to->by_location && !walk->repeats && w >= 0 && !repeats)
			count_locations(x, to, s, w);
	} else if (walk->found_repeats) {
		walk->found_repeats[s->row] = true; /* for all we know */
	}
}

static void count_piece(void *ctx, size_t index)
{
	const struct pass *x = ctx;
	struct piece *to = &x->pieces[index];

	touch_pages(to->tallies, x->f->nnodes * sizeof(*to->tallies));
	for (uint32_t i = to->first; i < to->last; i++) {
		if (stop_asked_at(x->walk->params->stop, i))
			break;
		count_one(x, to, i);
	}
	/* Else their nodes are counted. */
	if (to->by_location && x->walk->repeats)
		spread_locations(x, to);
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

/* Sums of all pieces. */
static struct location_sum *add_locations(struct arena *a, const struct pass *x, size_t n)
{
	struct location_sum *sums = arena_many(a, x->p->nlocations, struct location_sum);

	for (size_t i = 0; i < n; i++) {
		const struct location_sum *from = x->pieces[i].by_location;

		for (uint32_t loc = 0; loc < x->p->nlocations; loc++) {
			sums[loc].cum += from[loc].cum;
			sums[loc].flat += from[loc].flat;
		}
	}
	return sums;
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

void weights_count(struct arena *a, struct weights *w, const struct weights_walk *walk)
{
	const struct profile *p = walk->p;
	const struct frames *f = walk->f;
	const struct graph_params *params = walk->params;
	struct arena scratch = { 0 };
	struct pass x = { .walk = walk, .p = p, .f = f };
	size_t n =
		p->nsamples > PARALLEL_SAMPLES && params->threads > 1 ? (size_t)params->threads : 1;

	if (walk->wanted)
		x.matters = choose_locations(&scratch, p, f, walk->wanted);
	x.pieces = arena_many(&scratch, n, struct piece);
	for (size_t i = 0; i < n; i++) {
		struct piece *piece = &x.pieces[i];

		piece->first = (uint32_t)(p->nsamples * i / n);
		piece->last = (uint32_t)(p->nsamples * (i + 1) / n);
		piece->tallies = arena_many(&scratch, f->nnodes, struct tally);
		if ((walk->repeats || walk->with_locations) && !params->mean)
			piece->by_location =
				arena_many(&scratch, p->nlocations, struct location_sum);
		weights_init(i ? &scratch : a, &piece->sums, f->nnodes, params->mean);
	}
	if (walk->locations)
		memcpy(x.pieces[0].by_location, walk->locations,
		       p->nlocations * sizeof(*walk->locations));
	parallel_for((int)n, n, count_piece, &x);
	/* The first piece's sums become those of all. */
	*w = x.pieces[0].sums;
	if (walk->with_locations && !params->mean)
		w->locations = add_locations(a, &x, n);
	w->repeats = walk->found_repeats ? walk->found_repeats : walk->repeats;
	w->cum = arena_many(a, f->nnodes, int64_t);
	for (uint32_t i = 0; i < f->nnodes; i++)
		w->cum[i] = x.pieces[0].tallies[i].cum;
	for (size_t i = 1; i < n; i++)
		add_piece(w, &x.pieces[i], f->nnodes);
	for (size_t i = 0; i < n; i++)
		vec_release(&x.pieces[i].some);
	arena_release(&scratch);
}
