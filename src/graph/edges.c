/* edges.c - weights of the edges between kept nodes.
 *
 * An edge counts once per sample, however often the stack goes over it. Where frames between two
 * kept ones are left out, the edge is residual.
 *
 * Of a sample that has no node twice only the ends of each location matter, where it meets its
 * neighbours; edges between the inlined frames of one location are counted once for all samples.
 */
#include "graph/weights.h"

#include "base/parallel.h"
#include "base/vec.h"
#include "graph/edge_table.h"

enum { PARALLEL_SAMPLES = 20000, MIN_BITS = 8, MAX_BITS = 16, PENDING = 256, FEW = 100 };

/* What becomes of a frame's node: the node of the graph, with WANTED if edges to it are, or
 * LEFT_OUT. A frame of the walk, a hop, is that, and FRAME_INLINED. */
#define WANTED 0x40000000u
#define LEFT_OUT FRAME_NODE
/* Of an edge, either of its ends. */
#define EDGE_WANTED ((uint64_t)WANTED << 32 | WANTED)

/* What a location has for the walk; nothing: all of it is hidden. KEPT: frames. INTO, OUT: edges
 * from callers, or to callees, that are wanted. INNER: such edges between its own frames. GAP_*:
 * frames that are left out, before the first that is kept, or after the last, or all. */
enum { KEPT = 1, INTO = 2, OUT = 4, INNER = 8, GAP_BEFORE = 16, GAP_AFTER = 32 };

/* The locations of a sample that are not hidden. */
struct trail {
	const uint32_t *at;
	uint32_t n;
};

/* Where a location meets its callers and its callees: halves of edges, EDGE_RESIDUAL where its own
 * frames at that end are left out. */
struct link {
	uint64_t into, out;
};

/* One thread's share of the samples. */
struct edge_pass {
	const struct profile *p;
	const struct graph_params *params;
	const struct frames *f;
	const uint32_t *fates;	     /* by node of f: what becomes of it */
	const bool *repeats;	     /* by row: samples that may have a node twice; NULL: all may */
	const unsigned char *traits; /* by location, as the next; if there are `repeats` */
	const uint32_t *is_asked;    /* a bit for each */
	const uint32_t *is_visible;  /* the same; NULL: all are */
	const struct link *links;
	const struct location_sum *sums; /* by location, as in struct weights; or NULL: not known */
	const uint32_t *inner_of;	 /* else where to sum up weights of an INNER location */
	uint64_t *inner;
	bool has_inner;	      /* any? */
	bool is_whole;	      /* or are all of all locations kept? */
	bool is_choosy;	      /* are only some edges wanted? */
	bool asks_little;     /* of so few locations that most samples have none? */
	uint32_t from_mask;   /* WANTED: edges from wanted nodes are too */
	uint32_t first, last; /* samples */
	struct edge_table edges;
	vec(uint32_t) visible; /* of a sample's stack, if not all is */
	vec(uint32_t) places;  /* of its trail: what is kept */
	/* Edges wait here until their slots have arrived in the cache. */
	vec(struct edge_slot) pending;
	vec(uint64_t) twice; /* of a sample that may have some twice */
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

static unsigned char make_link(struct edge_pass *x, struct link *l, uint32_t loc)
{
	const struct frames *f = x->f;
	uint32_t first = LEFT_OUT, last = LEFT_OUT;
	unsigned char traits = 0;

	for (uint32_t i = f->first[loc]; i < f->first[loc + 1]; i++) {
		uint32_t hop = hop_of(f->lists[i], x->fates);

		if (!is_kept(hop)) {
			traits |= GAP_AFTER;
			continue;
		}
		if (traits & KEPT) {
			if ((hop | (last & x->from_mask)) & WANTED)
				traits |= INNER;
		} else {
			traits |= KEPT | (hop & WANTED ? INTO : 0);
			traits |= traits & GAP_AFTER ? GAP_BEFORE : 0;
			first = hop;
		}
		traits &= (unsigned char)~GAP_AFTER;
		last = hop;
	}
	last = (last & FRAME_NODE) | (last & x->from_mask);
	l->into = (first ^ FRAME_INLINED) | (traits & GAP_BEFORE ? EDGE_RESIDUAL : 0);
	l->out = (uint64_t)last << 32 | (traits & GAP_AFTER ? EDGE_RESIDUAL : 0);
	return traits | (is_kept(last) && (last & WANTED) ? OUT : 0);
}

/* What the walk needs to know of locations. Returns how many have edges of their own. */
static uint32_t make_links(struct arena *a, struct edge_pass *x)
{
	uint32_t n = x->p->nlocations, ninner = 0;
	unsigned char *traits = arena_many(a, n, unsigned char);
	struct link *links = arena_many(a, n, struct link);
	uint32_t *inner_of = arena_many(a, n, uint32_t);
	uint32_t *is_asked = arena_many(a, n / 32 + 1, uint32_t);
	uint32_t *is_visible = arena_many(a, n / 32 + 1, uint32_t);
	unsigned char asked = x->is_choosy ? INTO | OUT | INNER : KEPT;
	uint32_t nvisible = 0, nasked = 0;

	x->is_whole = true;
	for (uint32_t loc = 0; loc < n; loc++) {
		traits[loc] = make_link(x, &links[loc], loc);
		if (!traits[loc])
			continue;
		nvisible++;
		is_visible[loc / 32] |= 1u << loc % 32;
		x->is_whole &= (traits[loc] & (KEPT | GAP_BEFORE | GAP_AFTER)) == KEPT;
		if (traits[loc] & asked) {
			nasked++;
			is_asked[loc / 32] |= 1u << loc % 32;
		}
		if (traits[loc] & INNER)
			inner_of[loc] = ninner++;
	}
	x->traits = traits;
	x->is_asked = is_asked;
	x->is_visible = nvisible < n ? is_visible : NULL;
	x->asks_little = nasked < n / FEW;
	x->links = links;
	x->inner_of = inner_of;
	x->has_inner = ninner;
	return ninner;
}

/* Room for a few callers of each frame that edges are wanted of: a table that grows touches twice
 * the memory, and one that is too large misses the cache. */
static unsigned first_bits(const struct frames *f, const uint32_t *fates, uint32_t nlocations)
{
	unsigned bits = MIN_BITS;
	size_t nwanted = 0;

	for (uint32_t i = 0; i < f->first[nlocations]; i++)
		nwanted += (fates[f->lists[i] & FRAME_NODE] & WANTED) != 0;
	while (bits < MAX_BITS && (size_t)1 << bits < 4 * nwanted)
		bits++;
	return bits;
}

static void count_pending(struct edge_pass *x)
{
	for (size_t i = 0; i < x->pending.n; i++) {
		const struct edge_slot *e = &x->pending.at[i];

		edge_table_add(&x->edges, edge_table_find(&x->edges, e->key), e->key, e->weight);
	}
	x->pending.n = 0;
}

/* Edges of one sample, which may be there twice. */
static void count_twice(struct edge_pass *x, uint32_t sample, int64_t w, int64_t div)
{
	struct edge_table *t = &x->edges;

	for (size_t i = 0; i < x->twice.n; i++)
		__builtin_prefetch(&t->slots[edge_table_place(t, x->twice.at[i])], 1);
	for (size_t i = 0; i < x->twice.n; i++) {
		size_t slot = edge_table_find(t, x->twice.at[i]);

		if (t->samples[slot] == sample + 1)
			continue;
		t->samples[slot] = sample + 1;
		edge_table_add(t, slot, x->twice.at[i], w);
		if (t->divs)
			t->divs[slot] = int_add(t->divs[slot], div);
	}
	x->twice.n = 0;
}

/* A walk from the root: where it is. */
struct position {
	uint32_t parent; /* the last frame that was kept, as in struct link; or LEFT_OUT */
	bool gap;	 /* were frames left out since? */
};

/* Goes on to a frame; returns the edge to it, which may be none. Which frames are kept is as good
 * as random, so this has no branch for it. */
static inline uint64_t step(const struct edge_pass *x, struct position *at, uint32_t hop,
			    bool *is_edge)
{
	uint32_t node = hop & FRAME_NODE, parent = at->parent & FRAME_NODE;
	bool kept = node != LEFT_OUT;
	uint64_t edge =
		(uint64_t)at->parent << 32 | (hop ^ FRAME_INLINED) | (at->gap ? EDGE_RESIDUAL : 0);

	*is_edge = (edge & EDGE_WANTED) && parent != LEFT_OUT && kept && parent != node;
	at->parent = kept ? node | (hop & x->from_mask) : at->parent;
	at->gap = !kept;
	return edge;
}

/* Goes on to some frames, and lists the edges that lead to them. */
static inline void step_frames(struct edge_pass *x, struct position *at, const uint32_t *frames,
			       uint32_t n)
{
	bool is_edge;

	vec_reserve(&x->twice, n);
	for (uint32_t i = 0; i < n; i++) {
		x->twice.at[x->twice.n] = step(x, at, hop_of(frames[i], x->fates), &is_edge);
		x->twice.n += is_edge;
	}
}

/* Any sample. */
static void count_frames(struct edge_pass *x, uint32_t sample, int64_t w, int64_t div)
{
	struct unroll u = unroll_start(x->p, &x->p->samples[sample]);
	struct position at = { .parent = LEFT_OUT };
	uint32_t frames[UNROLLED + UNROLL_STEP], n;

	while ((n = unroll(&u, x->f, frames)))
		step_frames(x, &at, frames, n);
	count_twice(x, sample, w, div);
}

/* The edge between two places. */
static inline uint64_t edge_between(const struct edge_pass *x, const struct trail *t,
				    uint32_t callee, uint32_t caller)
{
	return x->links[t->at[callee]].into | x->links[t->at[caller]].out |
	       (caller - callee > 1 ? EDGE_RESIDUAL : 0);
}

/* Appends to edges that wait, of which there must be room. */
static inline struct edge_slot *push_edge(const struct edge_pass *x, struct edge_slot *to,
					  uint64_t edge, int64_t w)
{
	__builtin_prefetch(&x->edges.slots[edge_table_place(&x->edges, edge)], 1);
	*to = (struct edge_slot){ edge, w };
	return to + 1;
}

/* The edge to the next caller that is kept. */
static struct edge_slot *push_caller(const struct edge_pass *x, struct edge_slot *to,
				     const struct trail *t, uint32_t place, int64_t w)
{
	uint32_t i = place + 1;

	while (i < t->n && !(x->traits[t->at[i]] & KEPT))
		i++;
	return i < t->n ? push_edge(x, to, edge_between(x, t, place, i), w) : to;
}

/* For edges that are wanted because of where they come from. */
static struct edge_slot *push_callee(const struct edge_pass *x, struct edge_slot *to,
				     const struct trail *t, uint32_t place, int64_t w)
{
	uint32_t i = place;

	while (i > 0 && !(x->traits[t->at[i - 1]] & KEPT))
		i--;
	if (i == 0 || x->traits[t->at[i - 1]] & INTO)
		return to;
	return push_edge(x, to, edge_between(x, t, i - 1, place), w);
}

static struct edge_slot *push_some(const struct edge_pass *x, struct edge_slot *to,
				   const struct trail *t, uint32_t n, int64_t w)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t place = x->places.at[i];

		if (x->traits[t->at[place]] & INTO)
			to = push_caller(x, to, t, place, w);
		if (x->traits[t->at[place]] & OUT)
			to = push_callee(x, to, t, place, w);
	}
	return to;
}

/* The same if every location is kept whole, so that neighbours are those of the trail. Which of the
 * edges are wanted is as good as random: each is put down, and stays if it is. */
static struct edge_slot *push_some_whole(const struct edge_pass *x, struct edge_slot *to,
					 const struct trail *t, uint32_t n, int64_t w)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t place = x->places.at[i];
		bool has_caller = place + 1 < t->n, has_callee = place > 0;
		uint32_t caller = place + has_caller, callee = place - has_callee;
		unsigned char traits = x->traits[t->at[place]];

		push_edge(x, to, edge_between(x, t, place, caller), w);
		to += has_caller & ((traits & INTO) != 0);
		push_edge(x, to, edge_between(x, t, callee, place), w);
		to += has_callee & ((traits & OUT) != 0) & !(x->traits[t->at[callee]] & INTO);
	}
	return to;
}

/* Edges between all places, one after the other. */
static struct edge_slot *push_all(const struct edge_pass *x, struct edge_slot *to,
				  const struct trail *t, uint32_t n, int64_t w)
{
	const uint32_t *places = x->places.at;

	for (uint32_t i = 1; i < n; i++)
		to = push_edge(x, to, edge_between(x, t, places[i - 1], places[i]), w);
	return to;
}

static void add_inner_weights(struct edge_pass *x, const struct trail *t, uint32_t n, int64_t w)
{
	uint32_t *places = x->places.at, ninner = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t loc = t->at[places[i]];

		places[ninner] = loc;
		ninner += (x->traits[loc] & INNER) != 0;
	}
	for (uint32_t i = 0; i < ninner; i++)
		x->inner[x->inner_of[places[i]]] += (uint64_t)w;
}

/* Edges that the `n` places have with others. */
static void push_links(struct edge_pass *x, const struct trail *t, uint32_t n, int64_t w)
{
	struct edge_slot *to;

	vec_reserve(&x->pending, 2 * (size_t)n + 1);
	to = x->pending.at + x->pending.n;
	if (!x->is_choosy)
		to = push_all(x, to, t, n, w);
	else if (x->is_whole)
		to = push_some_whole(x, to, t, n, w);
	else
		to = push_some(x, to, t, n, w);
	x->pending.n = (size_t)(to - x->pending.at);
}

static bool is_loop(uint64_t edge)
{
	return !(((edge >> 32) ^ edge) & FRAME_NODE);
}

/* Any sample, and the places that are asked for. */
static void count_places(struct edge_pass *x, uint32_t sample, const struct trail *t, uint32_t n,
			 int64_t w, int64_t div)
{
	size_t first = x->pending.n;

	push_links(x, t, n, w);
	for (size_t i = first; i < x->pending.n; i++)
		if (!is_loop(x->pending.at[i].key))
			vec_push(&x->twice, x->pending.at[i].key);
	x->pending.n = first;
	for (uint32_t i = 0; i < n; i++) {
		struct position at = { .parent = LEFT_OUT };
		uint32_t loc = t->at[x->places.at[i]];

		if (x->traits[loc] & INNER)
			step_frames(x, &at, x->f->lists + x->f->first[loc],
				    x->f->first[loc + 1] - x->f->first[loc]);
	}
	count_twice(x, sample, w, div);
}

/* For a sample that has no node twice, and `n` places that are asked for, which are lost. */
static void count_links(struct edge_pass *x, const struct trail *t, uint32_t n, int64_t w)
{
	push_links(x, t, n, w);
	if (x->has_inner && !x->sums)
		add_inner_weights(x, t, n, w);
	if (x->pending.n >= PENDING)
		count_pending(x);
}

/* Edges between the frames of one location, which weigh `w`. */
static void add_inner(struct edge_pass *x, uint32_t loc, uint64_t w)
{
	const struct frames *f = x->f;
	struct position at = { .parent = LEFT_OUT };
	bool is_edge;

	for (uint32_t i = f->first[loc]; i < f->first[loc + 1]; i++) {
		uint64_t edge = step(x, &at, hop_of(f->lists[i], x->fates), &is_edge);

		if (is_edge)
			edge_table_add(&x->edges, edge_table_find(&x->edges, edge), edge,
				       (int64_t)w);
	}
}

static void count_inner(struct edge_pass *x)
{
	for (uint32_t loc = 0; loc < x->p->nlocations; loc++) {
		uint64_t w = 0;

		if (x->traits[loc] & INNER)
			w = x->sums ? x->sums[loc].cum : x->inner[x->inner_of[loc]];
		if (w)
			add_inner(x, loc, w);
	}
}

/* What a sample has that is not hidden, and which places of it are asked for: returns how many. As
 * in pick_places, there is no branch. */
static uint32_t pick_visible(struct edge_pass *x, struct trail *t)
{
	const uint32_t *asked = x->is_asked, *visible = x->is_visible;
	uint32_t *trail, *places = x->places.at, ntrail = 0, nplaces = 0;

	vec_reserve(&x->visible, t->n);
	trail = x->visible.at;
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t loc = t->at[i];

		trail[ntrail] = loc;
		places[nplaces] = ntrail;
		ntrail += visible[loc / 32] >> loc % 32 & 1;
		nplaces += asked[loc / 32] >> loc % 32 & 1;
	}
	*t = (struct trail){ trail, ntrail };
	return nplaces;
}

static uint32_t pick_asked(struct edge_pass *x, struct trail *t)
{
	uint32_t n = 1;

	vec_reserve(&x->places, t->n);
	if (x->asks_little || !x->is_visible)
		n = pick_places(x->places.at, t->at, t->n, x->is_asked);
	return n && x->is_visible ? pick_visible(x, t) : n;
}

static void count_one(struct edge_pass *x, uint32_t sample, int64_t w, int64_t div)
{
	const struct sample *s = &x->p->samples[sample];
	struct trail t = { x->p->stacks + s->stack, s->nstack };
	uint32_t n;

	if (!x->links) {
		count_frames(x, sample, w, div);
		return;
	}
	n = pick_asked(x, &t);
	if (!n)
		return;
	if (w > 0 && !x->repeats[s->row])
		count_links(x, &t, n, w);
	else
		count_places(x, sample, &t, n, w, div);
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
		count_one(x, i, w, div);
	}
	count_pending(x);
	if (x->links && (!x->sums || index == 0))
		count_inner(x);
}

/* Walks over the samples on all cores. */
static void count_all(struct arena *a, struct graph *g, struct edge_pass *like)
{
	const struct profile *p = like->p;
	const struct graph_params *params = like->params;
	struct arena scratch = { 0 };
	size_t n = p->nsamples > PARALLEL_SAMPLES ? (size_t)params->threads : 1;
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
		edge_table_init(&passes[i].edges, params->mean, bits);
	}
	parallel_for((int)n, n, count_samples, passes);
	g->nedges = 0;
	if (!stop_asked(params->stop)) {
		for (size_t i = 1; i < n; i++)
			edge_table_join(&passes->edges, &passes[i].edges);
		edge_table_take(a, g, &passes->edges, params->visual);
	}
	for (size_t i = 0; i < n; i++) {
		edge_table_release(&passes[i].edges);
		vec_release(&passes[i].visible);
		vec_release(&passes[i].places);
		vec_release(&passes[i].pending);
		vec_release(&passes[i].twice);
	}
	arena_release(&scratch);
}

/* Leaves the edges of wanted nodes. */
static void select_edges(struct graph *g, const bool *wanted)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->nedges; i++)
		if (wanted[g->edges[i].from] || wanted[g->edges[i].to])
			g->edges[n++] = g->edges[i];
	g->nedges = n;
}

/* Are so many wanted that it is less work to count all edges? */
static bool wants_most(const struct graph *g, const bool *wanted)
{
	enum { ONE_OF = 5 };
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->nnodes; i++)
		n += wanted[i];
	return n > g->nnodes / ONE_OF;
}

static struct edge_pass plan_pass(struct arena *a, const struct edge_walk *walk, const bool *wanted)
{
	return (struct edge_pass){ .p = walk->p,
				   .params = walk->params,
				   .f = walk->f,
				   .fates = choose_fates(a, walk->f, walk->kept, wanted),
				   .repeats = walk->weights->repeats,
				   .sums = walk->weights->locations,
				   .is_choosy = wanted,
				   .from_mask = walk->params->near ? WANTED : 0 };
}

static struct edge_key key_of(const struct edge_pass *x)
{
	return (struct edge_key){ x->fates, x->f->nnodes, x->params->near, x->params->visual };
}

static bool recall_edges(struct arena *a, struct graph *g, const struct edge_pass *x)
{
	struct edge_key key = key_of(x);

	return memo_find_edges(a, g, &key, x->params);
}

static void count_anew(struct arena *a, struct graph *g, struct edge_pass *x)
{
	struct edge_key key = key_of(x);

	count_all(a, g, x);
	memo_keep_edges(g, &key, x->params);
}

void edges_count(struct arena *a, struct graph *g, const struct edge_walk *walk)
{
	struct arena scratch = { 0 };
	struct edge_pass some = plan_pass(&scratch, walk, walk->wanted);
	struct edge_pass all = plan_pass(&scratch, walk, NULL);
	bool known = recall_edges(a, g, &some);
	/* With `near` the wanted ones can be told among all. */
	bool has_all = !known && walk->params->near && recall_edges(a, g, &all);

	if (!known && !has_all && walk->params->near && wants_most(g, walk->wanted)) {
		count_anew(a, g, &all);
		has_all = true;
	}
	if (has_all)
		select_edges(g, walk->wanted);
	else if (!known)
		count_anew(a, g, &some);
	arena_release(&scratch);
}
