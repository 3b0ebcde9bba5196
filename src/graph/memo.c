/* memo.c - frames, node weights and edges, kept from one graph of a profile to the next. */
#include "graph/weights.h"

#include <stdlib.h>

enum { MAX_BASES = 4, MAX_EDGE_LISTS = 8, MAX_EDGES = 1 << 20, MAX_TAGS = 1 << 18 };

/* What they depend on, beside the profile. */
struct base_key {
	struct granularity keep;
	uint32_t value;
	bool with_objects, mean;
};

/* Edges that were counted once, and which frames were kept for that. */
struct edge_list {
	struct arena arena;
	struct edge_key key;
	struct edge *edges;
	uint32_t nedges;
};

/* Tags that were counted last, and for what. */
struct kept_tags {
	struct arena arena;
	const uint32_t *kept;
	size_t nkept;
	int64_t cut;
	struct str unit;
	struct tag_list list;
};

struct base {
	struct base_key key;
	struct arena arena;
	struct frames frames;
	struct weights weights;			/* not counted yet: .flat is NULL */
	struct edge_list lists[MAX_EDGE_LISTS]; /* the one that was used last comes first */
	size_t nlists;
	struct kept_tags tags; /* .kept is NULL: none */
};

struct graph_memo {
	struct graph_memo *whole; /* of the profile before filters; NULL: this is it */
	const struct profile *all;
	enum memo_kind kind;
	bool *repeats; /* by row: samples that have some function twice; NULL: not known */
	struct base bases[MAX_BASES]; /* the one that was used last comes first */
	size_t nbases;
};

struct graph_memo *graph_memo_new(struct graph_memo *whole, const struct profile *all,
				  enum memo_kind kind)
{
	struct graph_memo *m = xcalloc(1, sizeof(*m));

	m->whole = whole;
	m->all = all;
	m->kind = kind;
	return m;
}

static void release_base(struct base *b)
{
	for (size_t i = 0; i < b->nlists; i++)
		arena_release(&b->lists[i].arena);
	arena_release(&b->tags.arena);
	arena_release(&b->arena);
}

void graph_memo_free(struct graph_memo *m)
{
	for (size_t i = 0; m && i < m->nbases; i++)
		release_base(&m->bases[i]);
	if (m)
		free(m->repeats);
	free(m);
}

size_t graph_memo_bytes(const struct graph_memo *m)
{
	size_t bytes = 0;

	for (size_t i = 0; i < m->nbases; i++) {
		bytes += arena_bytes(&m->bases[i].arena) + arena_bytes(&m->bases[i].tags.arena);
		for (size_t k = 0; k < m->bases[i].nlists; k++)
			bytes += arena_bytes(&m->bases[i].lists[k].arena);
	}
	return bytes;
}

static bool same_granularity(const struct granularity *a, const struct granularity *b)
{
	return a->inlines == b->inlines && a->function == b->function &&
	       a->filename == b->filename && a->line == b->line && a->column == b->column &&
	       a->address == b->address;
}

static bool fits(const struct base *b, const struct graph_params *params)
{
	const struct base_key *k = &b->key;

	return same_granularity(&k->keep, &params->keep) && k->value == params->value &&
	       k->with_objects == params->with_objects && k->mean == params->mean;
}

/* The base for these params, moved to the front; NULL if there is none. */
static struct base *find_base(struct graph_memo *m, const struct graph_params *params)
{
	for (size_t i = 0; i < m->nbases; i++) {
		struct base found = m->bases[i];

		if (!fits(&found, params))
			continue;
		memmove(m->bases + 1, m->bases, i * sizeof(*m->bases));
		m->bases[0] = found;
		return m->bases;
	}
	return NULL;
}

static struct base *add_base(struct graph_memo *m, const struct graph_params *params)
{
	if (m->nbases == MAX_BASES)
		release_base(&m->bases[--m->nbases]);
	memmove(m->bases + 1, m->bases, m->nbases++ * sizeof(*m->bases));
	m->bases[0] = (struct base){ .key = { params->keep, params->value, params->with_objects,
					      params->mean } };
	return m->bases;
}

static void copy_frames(struct arena *a, struct frames *f, const struct frames *from,
			const struct profile *p, const struct graph_params *params)
{
	size_t n = p->nlocations;

	*f = *from;
	f->first = arena_copy(a, f->first, (n + 1) * sizeof(*f->first));
	f->lists = arena_copy(a, f->lists, ((size_t)f->first[n] + UNROLL_STEP) * sizeof(*f->lists));
	f->places = arena_copy(a, f->places, f->nnodes * sizeof(*f->places));
	f->reader = frame_reader_new(a, p, &params->keep, params->with_objects);
}

/* Makes a new base, whose frames are those of the whole profile if that has them. */
static struct base *make_base(struct graph_memo *m, const struct profile *p,
			      const struct graph_params *params)
{
	const struct base *whole = m->kind == MEMO_SELECTS ? find_base(m->whole, params) : NULL;
	struct base *b = add_base(m, params);

	if (whole)
		copy_frames(&b->arena, &b->frames, &whole->frames, p, params);
	else
		frames_init(&b->arena, &b->frames, p, &params->keep, params->with_objects);
	return b;
}

void memo_frames(struct arena *a, struct frames *f, const struct profile *p,
		 const struct graph_params *params)
{
	struct base *b = params->memo ? find_base(params->memo, params) : NULL;

	if (!params->memo) {
		frames_init(a, f, p, &params->keep, params->with_objects);
		return;
	}
	if (!b)
		b = make_base(params->memo, p, params);
	*f = b->frames;
}

void graph_frames(struct arena *a, struct frames *f, const struct profile *p,
		  const struct graph_params *params)
{
	memo_frames(a, f, p, params);
}

/* The samples of `all` that `p` has not; their number in *n. */
static struct sample *other_samples(struct arena *a, const struct profile *all,
				    const struct profile *p, uint32_t *n)
{
	struct sample *others = arena_many_raw(a, all->nsamples, struct sample);
	uint32_t k = 0;

	*n = 0;
	for (uint32_t i = 0; i < all->nsamples; i++) {
		if (k < p->nsamples &&
		    memcmp(&all->samples[i], &p->samples[k], sizeof(*all->samples)) == 0)
			k++;
		else
			others[(*n)++] = all->samples[i];
	}
	return others;
}

static void subtract_from(const int64_t *all, int64_t *others, uint32_t n)
{
	for (uint32_t i = 0; others && i < n; i++)
		others[i] = int_add(all[i], int_neg(others[i]));
}

static void subtract_locations(const struct weights *all, struct weights *others, uint32_t n)
{
	if (!all->locations)
		others->locations = NULL;
	for (uint32_t i = 0; others->locations && i < n; i++) {
		others->locations[i].cum = all->locations[i].cum - others->locations[i].cum;
		others->locations[i].flat = all->locations[i].flat - others->locations[i].flat;
	}
}

/* Weights are sums over samples: where most of the profile is left, count what is not. False if
 * that is not known, or no less work. */
static bool weights_by_difference(struct arena *a, struct weights *w,
				  const struct weights_walk *walk)
{
	const struct graph_memo *m = walk->params->memo;
	const struct base *whole =
		m->kind == MEMO_SELECTS ? find_base(m->whole, walk->params) : NULL;
	const struct profile *p = walk->p;
	struct profile others = *p;
	struct weights_walk rest = *walk;
	struct arena scratch = { 0 };
	uint32_t n = walk->f->nnodes;
	bool ok;

	if (walk->locations || walk->found_repeats || !whole || !whole->weights.flat ||
	    whole->frames.nnodes != n || p->nsamples <= m->all->nsamples / 2)
		return false;
	others.samples = other_samples(&scratch, m->all, p, &others.nsamples);
	ok = others.nsamples == m->all->nsamples - p->nsamples;
	if (ok) {
		rest.p = &others;
		weights_count(a, w, &rest);
		subtract_locations(&whole->weights, w, p->nlocations);
		subtract_from(whole->weights.flat, w->flat, n);
		subtract_from(whole->weights.flat_div, w->flat_div, n);
		subtract_from(whole->weights.cum, w->cum, n);
		subtract_from(whole->weights.cum_div, w->cum_div, n);
		for (uint32_t i = 0; i < n; i++)
			w->inlined[i] = whole->weights.inlined[i] - w->inlined[i];
	}
	arena_release(&scratch);
	return ok;
}

static bool *new_repeats(const struct profile *p)
{
	uint32_t nrows = 0;

	for (uint32_t i = 0; i < p->nsamples; i++)
		if (p->samples[i].row >= nrows)
			nrows = p->samples[i].row + 1;
	return xcalloc(nrows, sizeof(bool));
}

static const struct location_sum *find_sums(const struct graph_memo *m,
					    const struct graph_params *params)
{
	const struct location_sum *found = NULL;

	for (size_t i = 0; i < m->nbases && !found; i++)
		if (m->bases[i].key.value == params->value)
			found = m->bases[i].weights.locations;
	return found;
}

/* Sums over locations are the same for nodes of any kind, but for those that may come twice. */
static void find_locations(const struct graph_memo *m, struct weights_walk *walk)
{
	if (!walk->repeats || walk->params->mean)
		return;
	walk->locations = find_sums(m, walk->params);
	walk->knows_leaves = walk->locations;
	if (!walk->locations && m->kind == MEMO_HIDES)
		walk->locations = find_sums(m->whole, walk->params);
}

/* No function twice is no line twice, so what is found for functions holds for finer nodes too. */
static void find_repeats(struct graph_memo *m, struct weights_walk *walk)
{
	const struct granularity *keep = &walk->params->keep;

	if (keep->function)
		walk->repeats = m->whole && m->whole->repeats ? m->whole->repeats : m->repeats;
	if (!walk->repeats && keep->function && keep->inlines && !keep->filename && !keep->line &&
	    !keep->address && !walk->params->with_objects)
		m->repeats = walk->found_repeats = new_repeats(walk->p);
}

static void count_once(struct arena *a, struct weights *w, struct weights_walk *walk)
{
	if (!walk->wanted && !walk->params->without_edges)
		walk->found_repeats = arena_adopt(a, new_repeats(walk->p));
	weights_count(a, w, walk);
}

/* Weights that may not be complete are only for this once. */
static void keep_weights(struct arena *a, struct base *b, struct weights *w, struct arena *memory,
			 const struct weights_walk *walk)
{
	struct graph_memo *m = walk->params->memo;

	if (!stop_asked(walk->params->stop)) {
		b->weights = *w;
		arena_join(&b->arena, memory);
		return;
	}
	arena_join(a, memory);
	if (walk->found_repeats) {
		free(m->repeats);
		m->repeats = NULL;
		w->repeats = NULL;
	}
}

void memo_weights(struct arena *a, struct weights *w, const struct profile *p,
		  const struct frames *f, const bool *wanted, const struct graph_params *params)
{
	struct graph_memo *m = params->memo;
	struct base *b = m ? find_base(m, params) : NULL;
	struct weights_walk walk = { .p = p, .f = f, .params = params, .wanted = wanted };
	struct arena memory = { 0 };

	if (!b) {
		count_once(a, w, &walk);
		return;
	}
	if (b->weights.flat) {
		*w = b->weights;
		return;
	}
	find_repeats(m, &walk);
	find_locations(m, &walk);
	if (wanted && (walk.knows_leaves || (!walk.repeats && !walk.found_repeats))) {
		weights_count(a, w, &walk);
		return;
	}
	walk.wanted = NULL;
	walk.with_locations = walk.repeats || walk.found_repeats;
	if (!weights_by_difference(&memory, w, &walk))
		weights_count(&memory, w, &walk);
	keep_weights(a, b, w, &memory, &walk);
}

/* ---- edges */

static bool same_key(const struct edge_key *a, const struct edge_key *b)
{
	return a->nfates == b->nfates && a->near == b->near && a->in_order == b->in_order &&
	       memcmp(a->fates, b->fates, a->nfates * sizeof(*a->fates)) == 0;
}

bool memo_find_edges(struct arena *a, struct graph *g, const struct edge_key *key,
		     const struct graph_params *params)
{
	struct base *b = params->memo ? find_base(params->memo, params) : NULL;

	for (size_t i = 0; b && i < b->nlists; i++) {
		struct edge_list found = b->lists[i];

		if (!same_key(&found.key, key))
			continue;
		memmove(b->lists + 1, b->lists, i * sizeof(*b->lists));
		b->lists[0] = found;
		g->edges = arena_copy(a, found.edges, found.nedges * sizeof(*found.edges));
		g->nedges = found.nedges;
		return true;
	}
	return false;
}

void memo_keep_edges(const struct graph *g, const struct edge_key *key,
		     const struct graph_params *params)
{
	struct base *b = params->memo ? find_base(params->memo, params) : NULL;
	struct edge_list list = { .key = *key, .nedges = g->nedges };

	if (!b || g->nedges > MAX_EDGES || stop_asked(params->stop))
		return;
	list.key.fates = arena_copy(&list.arena, key->fates, key->nfates * sizeof(*key->fates));
	list.edges = arena_copy(&list.arena, g->edges, g->nedges * sizeof(*g->edges));
	if (b->nlists == MAX_EDGE_LISTS)
		arena_release(&b->lists[--b->nlists].arena);
	memmove(b->lists + 1, b->lists, b->nlists++ * sizeof(*b->lists));
	b->lists[0] = list;
}

/* ---- tags */

bool memo_find_tags(struct tag_list *l, const uint32_t *kept, size_t nkept,
		    const struct tag_walk *walk)
{
	struct graph_memo *m = walk->params->memo;
	const struct base *b = m ? find_base(m, walk->params) : NULL;

	if (!b || !b->tags.kept || b->tags.nkept != nkept || b->tags.cut != walk->cut ||
	    !str_eq(b->tags.unit, walk->params->tag_unit) ||
	    memcmp(b->tags.kept, kept, nkept * sizeof(*kept)) != 0)
		return false;
	*l = b->tags.list;
	return true;
}

void memo_keep_tags(const struct tag_list *l, const uint32_t *kept, size_t nkept,
		    const struct tag_walk *walk)
{
	struct graph_memo *m = walk->params->memo;
	struct base *b = m ? find_base(m, walk->params) : NULL;
	struct kept_tags t = { .nkept = nkept, .cut = walk->cut, .unit = walk->params->tag_unit };

	if (!b || l->n > MAX_TAGS || stop_asked(walk->params->stop))
		return;
	t.kept = arena_copy(&t.arena, kept, nkept * sizeof(*kept));
	t.unit.p = arena_copy(&t.arena, t.unit.p, t.unit.n);
	t.list = (struct tag_list){ arena_copy(&t.arena, l->rows, l->n * sizeof(*l->rows)), l->n };
	arena_release(&b->tags.arena);
	b->tags = t;
}
