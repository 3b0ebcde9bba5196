/* edges.c - weights of the edges between kept nodes.
 *
 * An edge counts once per sample, however often the stack goes over it. Where frames between two
 * kept ones are left out, the edge is residual.
 *
 * Of a sample that has no node twice only the ends of each location matter, where it meets its
 * neighbours; edges between the inlined frames of one location are counted once for all samples.
 */
#include "graph/weights.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/parallel.h"
#include "base/vec.h"

enum { PARALLEL_SAMPLES = 20000, MIN_BITS = 8, MAX_BITS = 20, PENDING = 2 * UNROLLED };

/* What becomes of a frame's node: the node of the graph, with WANTED if edges to it are, or
 * LEFT_OUT. A frame of the walk is that, and FRAME_INLINED. */
#define WANTED 0x40000000u
#define LEFT_OUT FRAME_NODE

/* What a location has for the walk. KEPT: frames. INTO, OUT: edges from callers, or to callees,
 * that are wanted. INNER: such edges between its own frames. GAP_*: frames that are left out,
 * before the first that is kept, or after the last, or all. */
enum { KEPT = 1, INTO = 2, OUT = 4, INNER = 8, GAP_BEFORE = 16, GAP_AFTER = 32 };

/* Where a location meets its callers and its callees: frames that are kept, or LEFT_OUT. */
struct link {
	uint32_t first, last;
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
	const struct frames *f;
	const uint32_t *fates;	     /* by node of f: what becomes of it */
	const bool *repeats;	     /* by row: samples that may have a node twice; NULL: all may */
	const unsigned char *traits; /* by location, as the next; if there are `repeats` */
	const uint32_t *has_edges;   /* a bit for each: few bytes, as all of a stack are asked */
	const struct link *links;
	const uint32_t *inner_of; /* where to sum up weights of an INNER location */
	uint64_t *inner;
	vec(uint32_t) places; /* of a sample's stack: where edges are */
	uint32_t from_mask;   /* WANTED: edges from wanted nodes are too */
	uint32_t first, last; /* samples */
	struct edge_table edges;
	/* Edges wait here until their slots have arrived in the cache. */
	struct pending {
		uint64_t key;
		uint32_t sample;
		bool is_inline, is_residual;
		bool is_once; /* cannot have been counted for this sample */
	} pending[PENDING + UNROLLED + UNROLL_STEP];
	uint32_t npending;
	uint32_t *seen; /* by node: last sample, + 1; for tags */
	struct tag_tally *tags;
};

static uint32_t *choose_fates(struct arena *a, const struct frames *f, const uint32_t *kept,
			      const bool *wanted)
{
	uint32_t *fates = arena_many(a, f->nnodes, uint32_t);

	for (uint32_t i = 0; i < f->nnodes; i++) {
		uint32_t node = kept[i];

		fates[i] = node == NONE ? LEFT_OUT : !wanted || wanted[node] ? node | WANTED : node;
	}
	return fates;
}

static inline uint32_t hop_of(uint32_t frame, const uint32_t *fates)
{
	return fates[frame & FRAME_NODE] | (frame & FRAME_INLINED);
}

static bool is_kept(uint32_t hop)
{
	return (hop & FRAME_NODE) != LEFT_OUT;
}

static unsigned char make_link(struct link *l, const struct frames *f, uint32_t loc,
			       const uint32_t *fates, bool near)
{
	unsigned char traits = 0;

	*l = (struct link){ LEFT_OUT, LEFT_OUT };
	for (uint32_t i = f->first[loc]; i < f->first[loc + 1]; i++) {
		uint32_t hop = hop_of(f->lists[i], fates);

		if (!is_kept(hop)) {
			traits |= GAP_AFTER;
			continue;
		}
		if (traits & KEPT) {
			if ((hop | (near ? l->last : 0)) & WANTED)
				traits |= INNER;
		} else {
			traits |= KEPT | (hop & WANTED ? INTO : 0);
			traits |= traits & GAP_AFTER ? GAP_BEFORE : 0;
			l->first = hop;
		}
		traits &= (unsigned char)~GAP_AFTER;
		l->last = hop;
	}
	return traits | (near && is_kept(l->last) && (l->last & WANTED) ? OUT : 0);
}

/* What the walk needs to know of locations. Returns how many have edges of their own. */
static uint32_t make_links(struct arena *a, struct edge_pass *x)
{
	uint32_t n = x->p->nlocations, ninner = 0;
	unsigned char *traits = arena_many(a, n, unsigned char);
	struct link *links = arena_many(a, n, struct link);
	uint32_t *inner_of = arena_many(a, n, uint32_t);
	uint32_t *has_edges = arena_many(a, n / 32 + 1, uint32_t);

	for (uint32_t loc = 0; loc < n; loc++) {
		traits[loc] = make_link(&links[loc], x->f, loc, x->fates, x->from_mask);
		if (traits[loc] & (INTO | OUT | INNER))
			has_edges[loc / 32] |= 1u << loc % 32;
		if (traits[loc] & INNER)
			inner_of[loc] = ninner++;
	}
	x->traits = traits;
	x->has_edges = has_edges;
	x->links = links;
	x->inner_of = inner_of;
	return ninner;
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
static unsigned first_bits(const struct frames *f, const uint32_t *fates, uint32_t nlocations)
{
	unsigned bits = MIN_BITS;
	size_t nkept = 0;

	for (uint32_t i = 0; i < f->first[nlocations]; i++)
		nkept += is_kept(hop_of(f->lists[i], fates));
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

		if (!e->is_once && x->edges.slots[slot].sample == e->sample + 1)
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

/* A walk from the root: where it is. */
struct position {
	uint32_t parent; /* the last frame that was kept; or LEFT_OUT */
	uint32_t from;	 /* WANTED if edges from there are */
	bool gap;	 /* were frames left out since? */
};

/* Goes on to a frame. Which frames are kept is as good as random, so this has no branch for it: the
 * edge is always written and then maybe not counted. */
static inline void step(struct edge_pass *x, struct position *at, struct pending edge, uint32_t hop)
{
	uint32_t node = hop & FRAME_NODE;
	bool kept = node != LEFT_OUT;

	edge.key = (uint64_t)at->parent << 32 | node;
	edge.is_inline = hop & FRAME_INLINED;
	edge.is_residual |= at->gap;
	x->pending[x->npending] = edge;
	x->npending +=
		((hop | at->from) & WANTED) && at->parent != LEFT_OUT && kept && at->parent != node;
	at->parent = kept ? node : at->parent;
	at->from = kept ? hop & x->from_mask : at->from;
	at->gap = !kept;
}

/* Lists the places of a stack that have edges, without a branch for each. */
static uint32_t find_places(struct edge_pass *x, const uint32_t *stack, uint32_t n)
{
	uint32_t nplaces = 0;

	vec_reserve(&x->places, n);
	for (uint32_t i = 0; i < n; i++) {
		x->places.at[nplaces] = i;
		nplaces += x->has_edges[stack[i] / 32] >> stack[i] % 32 & 1;
	}
	return nplaces;
}

static void count_sample(struct edge_pass *x, uint32_t sample)
{
	struct unroll u = unroll_start(x->p, &x->p->samples[sample]);
	struct position at = { .parent = LEFT_OUT };
	uint32_t frames[UNROLLED + UNROLL_STEP], n;

	while ((n = unroll(&u, x->f, frames))) {
		for (uint32_t i = 0; i < n; i++)
			step(x, &at, (struct pending){ .sample = sample },
			     hop_of(frames[i], x->fates));
		if (x->npending >= PENDING)
			count_pending(x);
	}
}

static void push_edge(struct edge_pass *x, uint32_t sample, uint32_t from, uint32_t to, bool gap)
{
	x->pending[x->npending++] =
		(struct pending){ (uint64_t)(from & FRAME_NODE) << 32 | (to & FRAME_NODE), sample,
				  to & FRAME_INLINED, gap, true };
}

static void push_caller(struct edge_pass *x, uint32_t sample, uint32_t place)
{
	const struct sample *s = &x->p->samples[sample];
	const uint32_t *stack = x->p->stacks + s->stack;
	unsigned gaps = x->traits[stack[place]] & GAP_BEFORE;
	uint32_t i = place + 1;

	while (i < s->nstack && !(x->traits[stack[i]] & KEPT))
		gaps |= x->traits[stack[i++]];
	if (i == s->nstack)
		return;
	gaps |= x->traits[stack[i]] & GAP_AFTER;
	push_edge(x, sample, x->links[stack[i]].last, x->links[stack[place]].first,
		  gaps & (GAP_BEFORE | GAP_AFTER));
}

/* For edges that are wanted because of where they come from. */
static void push_callee(struct edge_pass *x, uint32_t sample, uint32_t place)
{
	const uint32_t *stack = x->p->stacks + x->p->samples[sample].stack;
	unsigned gaps = x->traits[stack[place]] & GAP_AFTER;
	uint32_t i = place;

	while (i > 0 && !(x->traits[stack[i - 1]] & KEPT))
		gaps |= x->traits[stack[--i]];
	if (i == 0 || (x->traits[stack[i - 1]] & INTO))
		return;
	gaps |= x->traits[stack[i - 1]] & GAP_BEFORE;
	push_edge(x, sample, x->links[stack[place]].last, x->links[stack[i - 1]].first,
		  gaps & (GAP_BEFORE | GAP_AFTER));
}

/* The same for a sample that has no node twice, and edges at `n` places. */
static void count_links(struct edge_pass *x, uint32_t sample, uint32_t n, int64_t w)
{
	const uint32_t *stack = x->p->stacks + x->p->samples[sample].stack;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t place = x->places.at[i], loc = stack[place];

		if (x->traits[loc] & INTO)
			push_caller(x, sample, place);
		if (x->traits[loc] & OUT)
			push_callee(x, sample, place);
		if (x->traits[loc] & INNER)
			x->inner[x->inner_of[loc]] += (uint64_t)w;
		if (x->npending >= PENDING)
			count_pending(x);
	}
}

/* Edges between the frames of one location, which weigh `w`. */
static void add_inner(struct edge_pass *x, uint32_t loc, uint64_t w)
{
	const struct frames *f = x->f;
	struct position at = { .parent = LEFT_OUT };

	x->npending = 0;
	for (uint32_t i = f->first[loc]; i < f->first[loc + 1]; i++) {
		const struct pending *e = x->pending;

		step(x, &at, (struct pending){ 0 }, hop_of(f->lists[i], x->fates));
		if (x->npending)
			add_edge(&x->edges, find_slot(&x->edges, e->key),
				 &(struct edge){ .weight = (int64_t)w,
						 .is_inline = e->is_inline,
						 .is_residual = e->is_residual });
		x->npending = 0;
	}
}

static void count_inner(struct edge_pass *x)
{
	for (uint32_t loc = 0; loc < x->p->nlocations; loc++)
		if ((x->traits[loc] & INNER) && x->inner[x->inner_of[loc]])
			add_inner(x, loc, x->inner[x->inner_of[loc]]);
}

/* The same walk, for the labels of the nodes on the way. */
static void count_tags(struct edge_pass *x, uint32_t sample, int64_t w, int64_t div)
{
	const struct sample *s = &x->p->samples[sample];
	struct unroll u = unroll_start(x->p, s);
	uint32_t frames[UNROLLED + UNROLL_STEP], n, node = LEFT_OUT;

	while ((n = unroll(&u, x->f, frames))) {
		for (uint32_t i = 0; i < n; i++) {
			node = hop_of(frames[i], x->fates) & FRAME_NODE;
			if (node == LEFT_OUT || x->seen[node] == sample + 1)
				continue;
			tag_tally_add(x->tags, node, s->labels, false, w, div);
			x->seen[node] = sample + 1;
		}
	}
	if (node != LEFT_OUT)
		tag_tally_add(x->tags, node, s->labels, true, w, div);
}

static void count_one(struct edge_pass *x, uint32_t sample, int64_t w)
{
	const struct sample *s = &x->p->samples[sample];
	uint32_t nplaces = x->links ? find_places(x, x->p->stacks + s->stack, s->nstack) : 0;

	if (!x->links)
		count_sample(x, sample);
	else if (nplaces && w > 0 && !x->repeats[s->row])
		count_links(x, sample, nplaces, w);
	else if (nplaces)
		count_sample(x, sample);
}

static void count_samples(void *ctx, size_t index)
{
	struct edge_pass *x = (struct edge_pass *)ctx + index;
	const struct profile *p = x->p;

	touch_pages(x->edges.slots, sizeof(*x->edges.slots) << x->edges.bits);
	for (uint32_t i = x->first; i < x->last; i++) {
		const int64_t *values = sample_values(p, &p->samples[i]);
		int64_t w = values[x->params->value], div = x->params->mean ? values[0] : 0;

		if (stop_asked_at(x->params->stop, i))
			break;
		if (!w && !div)
			continue;
		count_one(x, i, w);
		if (x->tags)
			count_tags(x, i, w, div);
	}
	count_pending(x);
	if (x->links)
		count_inner(x);
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
static void count_all(struct arena *a, struct graph *g, struct edge_pass *like, bool with_tags)
{
	const struct profile *p = like->p;
	const struct graph_params *params = like->params;
	struct arena scratch = { 0 };
	size_t n = p->nsamples > PARALLEL_SAMPLES && !with_tags ? (size_t)params->threads : 1;
	struct edge_pass *passes = arena_many(&scratch, n, struct edge_pass);
	unsigned bits = first_bits(like->f, like->fates, p->nlocations);
	uint32_t ninner = 0;

	if (like->repeats && !params->mean)
		ninner = make_links(&scratch, like);
	for (size_t i = 0; i < n; i++) {
		passes[i] = *like;
		passes[i].first = (uint32_t)(p->nsamples * i / n);
		passes[i].last = (uint32_t)(p->nsamples * (i + 1) / n);
		passes[i].inner = arena_many(&scratch, (size_t)ninner + 1, uint64_t);
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
	for (size_t i = 0; i < n; i++)
		vec_release(&passes[i].places);
	arena_release(&scratch);
}

/* Edges near some nodes, taken from the edges between all that are kept, if those are known. */
static bool select_edges(struct arena *a, struct graph *g, const struct edge_walk *walk)
{
	const struct graph_params *params = walk->params;
	struct arena scratch = { 0 };
	struct edge_key all = { choose_fates(&scratch, walk->f, walk->kept, NULL), walk->f->nnodes,
				params->near, params->visual };
	bool found = params->near && memo_find_edges(a, g, &all, params);
	uint32_t n = 0;

	for (uint32_t i = 0; found && i < g->nedges; i++)
		if (walk->wanted[g->edges[i].from] || walk->wanted[g->edges[i].to])
			g->edges[n++] = g->edges[i];
	g->nedges = found ? n : g->nedges;
	arena_release(&scratch);
	return found;
}

void edges_count(struct arena *a, struct graph *g, const struct edge_walk *walk)
{
	const struct graph_params *params = walk->params;
	struct arena scratch = { 0 };
	bool with_tags = params->visual && tags_exist(walk->p);
	struct edge_pass pass = { .p = walk->p,
				  .params = params,
				  .f = walk->f,
				  .fates =
					  choose_fates(&scratch, walk->f, walk->kept, walk->wanted),
				  .repeats = walk->repeats,
				  .from_mask = params->near ? WANTED : 0 };
	struct edge_key key = { pass.fates, walk->f->nnodes, params->near, params->visual };

	if (with_tags || (!memo_find_edges(a, g, &key, params) && !select_edges(a, g, walk))) {
		count_all(a, g, &pass, with_tags);
		if (!with_tags)
			memo_keep_edges(g, &key, params);
	}
	arena_release(&scratch);
}
