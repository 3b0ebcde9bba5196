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

enum { PARALLEL_SAMPLES = 20000, MIN_BITS = 8, MAX_BITS = 20, PENDING = 2 * UNROLLED };

/* A frame of the walk is FRAME_INLINED, WANTED if edges to its node are wanted, and in FRAME_NODE
 * the node, or LEFT_OUT. */
#define WANTED 0x40000000u
#define LEFT_OUT FRAME_NODE

/* What a location has for the walk: frames that are kept, so look at it and its neighbours; frames
 * that are wanted. */
enum { LOOK = 1, SAYS = 2 };

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
	const struct frames *f;
	const uint32_t *hops; /* f->lists, with what is kept */
	const char *matters; /* by location: LOOK, and SAYS if edges may lead there; NULL: all do */
	vec(uint32_t) places, some; /* of a sample's stack: where to look, and what is there */
	uint32_t from_mask;	    /* WANTED: edges from wanted nodes are too */
	uint32_t first, last;	    /* samples */
	struct edge_table edges;
	/* Edges wait here until their slots have arrived in the cache. */
	struct pending {
		uint64_t key;
		uint32_t sample;
		bool is_inline, is_residual;
	} pending[PENDING + UNROLLED + UNROLL_STEP];
	uint32_t npending;
	uint32_t *seen; /* by node: last sample, + 1; for tags */
	struct tag_tally *tags;
};

static uint32_t *make_hops(struct arena *a, const struct profile *p, const struct frames *f,
			   const uint32_t *kept, const bool *wanted)
{
	uint32_t n = f->first[p->nlocations];
	uint32_t *hops = arena_many(a, (size_t)n + UNROLL_STEP, uint32_t);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t node = kept[f->lists[i] & FRAME_NODE];

		hops[i] = f->lists[i] & FRAME_INLINED;
		if (node == NONE)
			hops[i] |= LEFT_OUT;
		else
			hops[i] |= node | (!wanted || wanted[node] ? WANTED : 0);
	}
	return hops;
}

/* Most stacks are long and most frames left out, so locations that have nothing to tell are skipped
 * early. NULL if those are few. */
static char *choose_locations(struct arena *a, const struct profile *p, const struct frames *f,
			      const uint32_t *hops, bool only_wanted)
{
	char *matters = arena_many(a, p->nlocations, char);
	uint32_t n = 0;

	for (uint32_t loc = 0; loc < p->nlocations; loc++) {
		for (uint32_t i = f->first[loc]; i < f->first[loc + 1]; i++) {
			if (hops[i] & WANTED)
				matters[loc] = LOOK | SAYS;
			else if (!only_wanted && (hops[i] & FRAME_NODE) != LEFT_OUT)
				matters[loc] |= LOOK;
		}
		n += matters[loc] != 0;
	}
	return n < p->nlocations / 2 ? matters : NULL;
}

static void table_init(struct edge_table *t, bool with_divs, unsigned bits)
{
	*t = (struct edge_table){ .bits = bits, .multiplier = map_seed() | 1 };
	t->slots = xcalloc((size_t)1 << bits, sizeof(*t->slots));
	if (with_divs)
		t->divs = xcalloc((size_t)1 << bits, sizeof(*t->divs));
}

/* Room for a few callers of each frame that is kept: a table that grows touches twice the memory.
 */
static unsigned first_bits(const uint32_t *hops, uint32_t n)
{
	unsigned bits = MIN_BITS;
	size_t nkept = 0;

	for (uint32_t i = 0; i < n; i++)
		nkept += (hops[i] & FRAME_NODE) != LEFT_OUT;
	while (bits < MAX_BITS && (size_t)1 << bits < 4 * nkept)
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

/* Lists the places of a stack where to look in x->places, without a branch for each. Returns how
 * many, or 0 if no edge can come of them. */
static uint32_t find_places(struct edge_pass *x, const uint32_t *stack, uint32_t n)
{
	uint32_t nplaces = 0;
	char all = 0;

	vec_reserve(&x->places, n);
	for (uint32_t i = 0; i < n; i++) {
		char here = x->matters[stack[i]];

		x->places.at[nplaces] = i;
		nplaces += here & LOOK;
		all |= here;
	}
	return all & SAYS ? nplaces : 0;
}

/* Hidden locations have no frames. */
static bool has_frames(const struct edge_pass *x, uint32_t loc)
{
	return x->f->first[loc] < x->f->first[loc + 1];
}

/* The locations of a sample that matter, and their neighbours: one that is left out stands for all
 * that are, between two that are not. */
static struct unroll unroll_some(struct edge_pass *x, const struct sample *s)
{
	const uint32_t *stack = x->p->stacks + s->stack;
	uint32_t nplaces = find_places(x, stack, s->nstack), n = 0, next = 0;

	vec_reserve(&x->some, s->nstack);
	for (uint32_t i = 0; i < nplaces; i++) {
		uint32_t place = x->places.at[i], before = place, after = place + 1;
		uint32_t end = i + 1 < nplaces ? x->places.at[i + 1] : s->nstack;

		while (before > next && !has_frames(x, stack[before - 1]))
			before--;
		if (before > next)
			x->some.at[n++] = stack[before - 1];
		x->some.at[n++] = stack[place];
		while (after < end && !has_frames(x, stack[after]))
			after++;
		if (after < end)
			x->some.at[n++] = stack[after];
		next = after < end ? after + 1 : end;
	}
	return (struct unroll){ x->some.at, n, 0 };
}

/* Which frames are kept is as good as random, so this has no branch for it: the edge is always
 * written and then maybe not counted. */
static void count_sample(struct edge_pass *x, uint32_t sample)
{
	const struct sample *s = &x->p->samples[sample];
	struct unroll u = x->matters ? unroll_some(x, s) : unroll_start(x->p, s);
	uint32_t hops[UNROLLED + UNROLL_STEP], n, parent = LEFT_OUT, from = 0;
	bool gap = false;

	while ((n = unroll(&u, x->f, x->hops, hops))) {
		uint32_t npending = x->npending;

		for (uint32_t i = 0; i < n; i++) {
			uint32_t node = hops[i] & FRAME_NODE;
			bool is_kept = node != LEFT_OUT;

			x->pending[npending] =
				(struct pending){ (uint64_t)parent << 32 | node, sample,
						  hops[i] & FRAME_INLINED, gap };
			npending += ((hops[i] | from) & WANTED) && parent != LEFT_OUT && is_kept &&
				    parent != node;
			parent = is_kept ? node : parent;
			from = is_kept ? hops[i] & x->from_mask : from;
			gap = !is_kept;
		}
		x->npending = npending;
		if (npending >= PENDING)
			count_pending(x);
	}
}

/* The same walk, for the labels of the nodes on the way. */
static void count_tags(struct edge_pass *x, uint32_t sample, int64_t w, int64_t div)
{
	const struct sample *s = &x->p->samples[sample];
	struct unroll u = unroll_start(x->p, s);
	uint32_t hops[UNROLLED + UNROLL_STEP], n, node = LEFT_OUT;

	while ((n = unroll(&u, x->f, x->hops, hops))) {
		for (uint32_t i = 0; i < n; i++) {
			node = hops[i] & FRAME_NODE;
			if (node == LEFT_OUT || x->seen[node] == sample + 1)
				continue;
			tag_tally_add(x->tags, node, s->labels, false, w, div);
			x->seen[node] = sample + 1;
		}
	}
	if (node != LEFT_OUT)
		tag_tally_add(x->tags, node, s->labels, true, w, div);
}

static void count_samples(void *ctx, size_t index)
{
	struct edge_pass *x = (struct edge_pass *)ctx + index;
	const struct profile *p = x->p;

	touch_pages(x->edges.slots, sizeof(*x->edges.slots) << x->edges.bits);
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

/* Sums all passes up in the first, and frees the tables of the others. */
static void join_passes(struct edge_pass *passes, size_t n)
{
	struct edge_table *sum = &passes[0].edges;

	for (size_t i = 1; i < n; i++) {
		struct edge_table *t = &passes[i].edges;

		for (size_t k = 0; k < (size_t)1 << t->bits; k++) {
			struct edge e = edge_at(t, k);

			if (t->slots[k].key)
				add_edge(sum, find_slot(sum, t->slots[k].key), &e);
		}
		table_release(t);
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

/* Walks over the samples on all cores, unless tags are wanted too. */
static void count_all(struct arena *a, struct graph *g, const struct edge_pass *like,
		      bool with_tags)
{
	const struct profile *p = like->p;
	const struct graph_params *params = like->params;
	struct arena scratch = { 0 };
	size_t n = p->nsamples > PARALLEL_SAMPLES && !with_tags ? (size_t)params->threads : 1;
	struct edge_pass *passes = arena_many(&scratch, n, struct edge_pass);
	unsigned bits = first_bits(like->hops, like->f->first[p->nlocations]);

	for (size_t i = 0; i < n; i++) {
		passes[i] = *like;
		passes[i].first = (uint32_t)(p->nsamples * i / n);
		passes[i].last = (uint32_t)(p->nsamples * (i + 1) / n);
		table_init(&passes[i].edges, params->mean, bits);
	}
	if (with_tags) {
		passes->tags = tag_tally_new(p, params);
		passes->seen = arena_many(&scratch, g->nnodes, uint32_t);
	}
	parallel_for((int)n, n, count_samples, passes);
	join_passes(passes, n);
	take_edges(a, g, &passes->edges, params->visual);
	table_release(&passes->edges);
	if (with_tags)
		tag_tally_finish(passes->tags, a, g);
	for (size_t i = 0; i < n; i++) {
		vec_release(&passes[i].places);
		vec_release(&passes[i].some);
	}
	arena_release(&scratch);
}

void edges_count(struct arena *a, struct graph *g, const struct profile *p, const struct frames *f,
		 const uint32_t *kept, const bool *wanted, const struct graph_params *params)
{
	struct arena scratch = { 0 };
	bool with_tags = params->visual && tags_exist(p);
	uint32_t *hops = make_hops(&scratch, p, f, kept, wanted);
	struct edge_walk walk = { hops, f->first[p->nlocations], params->near, params->visual };
	struct edge_pass pass = { .p = p,
				  .params = params,
				  .f = f,
				  .hops = hops,
				  .from_mask = params->near ? WANTED : 0 };

	if (with_tags || !memo_find_edges(a, g, &walk, params)) {
		pass.matters = choose_locations(&scratch, p, f, hops, params->near);
		count_all(a, g, &pass, with_tags);
		if (!with_tags)
			memo_keep_edges(g, &walk, params);
	}
	arena_release(&scratch);
}
