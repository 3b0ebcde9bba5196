/* paths.c - the call tree level by level: callers first, and on with only those samples whose path
 * is heavy enough to be seen. Most paths of a large profile are not, and are never made. */
#include "graph/graph.h"

#include <math.h>

#include "base/map.h"
#include "base/parallel.h"
#include "base/vec.h"

enum { PARALLEL_WALKERS = 1 << 15, PREFETCH_AHEAD = 24 };

/* A sample on its way from one end of its stack to the other. */
struct walker {
	const uint32_t *stack; /* what is left of it */
	uint32_t left;	       /* locations */
	uint32_t frame : 31;   /* frames of the next that are done */
	uint32_t side : 1;
	uint32_t at;   /* path; within a level, step */
	uint32_t last; /* name of the frame that it is at, or NONE */
	int64_t w;
};

/* One more frame on a path. */
struct step {
	uint32_t parent, frame;
	bool is_inline;
	int64_t now, before;
};

struct builder {
	const struct path_side *sides;
	uint32_t
		*singles[2]; /* by side and location: its only frame; NONE: it has another number */
	const struct path_params *params;
	double now, before; /* sums of all */
	double cut;
	size_t level;
	uint32_t ncut;
	vec(struct path) paths;
	vec(struct walker) walkers;
	vec(uint32_t) next;	/* by walker: its next frame, or NONE */
	vec(struct step) steps; /* of this level */
	vec(uint32_t) path_of;	/* by step; NONE: it is too light */
	vec(struct step) own;	/* by path: what ends there */
	struct map map;
	uint64_t seed;
};

/* ---- walking */

/* The frame by its name. */
static uint32_t named(const struct path_side *side, uint32_t frame)
{
	uint32_t node = frame & FRAME_NODE;

	return (side->name_of ? side->name_of[node] : node) | (frame & FRAME_INLINED);
}

/* Most locations have one frame: that takes one look instead of four. */
static uint32_t *find_singles(struct arena *a, const struct path_side *side)
{
	const struct frames *f = side->frames;
	uint32_t *singles = arena_many_raw(a, side->p->nlocations, uint32_t);

	for (uint32_t loc = 0; loc < side->p->nlocations; loc++)
		singles[loc] = f->first[loc + 1] - f->first[loc] == 1
				       ? named(side, f->lists[f->first[loc]])
				       : NONE;
	return singles;
}

static void leave_location(const struct builder *b, struct walker *k)
{
	k->stack += b->params->is_inverted;
	k->left--;
	k->frame = 0;
}

/* The next frame, by its name; NONE: there is none. */
static uint32_t next_frame(const struct builder *b, struct walker *k)
{
	const struct path_side *side = &b->sides[k->side];
	const struct frames *f = side->frames;
	bool is_inverted = b->params->is_inverted;

	for (; k->left; leave_location(b, k)) {
		uint32_t loc = k->stack[is_inverted ? 0 : k->left - 1];
		uint32_t frame = b->singles[k->side][loc], first, end;

		if (frame != NONE) {
			leave_location(b, k);
			return frame;
		}
		first = f->first[loc];
		end = f->first[loc + 1];
		if (k->frame == end - first)
			continue;
		frame = f->lists[is_inverted ? end - 1 - k->frame : first + k->frame];
		k->frame++;
		return named(side, frame);
	}
	return NONE;
}

/* Goes to before the outermost occurrence of the pivot. */
static bool seek_pivot(const struct builder *b, struct walker *k)
{
	struct walker at = *k, before = *k;
	uint32_t frame;
	bool found = false;

	for (; (frame = next_frame(b, &at)) != NONE; before = at) {
		if ((frame & FRAME_NODE) != b->params->pivot)
			continue;
		*k = before;
		found = true;
		if (!b->params->is_inverted)
			break;
	}
	return found;
}

static void start_sample(struct builder *b, uint32_t index, const struct sample *s)
{
	const struct path_side *side = &b->sides[index];
	const int64_t *values = sample_values(side->p, s);
	struct walker k = { .stack = side->p->stacks + s->stack,
			    .left = s->nstack,
			    .last = NONE,
			    .side = index & 1,
			    .w = divided(values[side->value], side->mean ? values[0] : 0) };

	if (!k.w || (b->params->pivot != NONE && !seek_pivot(b, &k)))
		return;
	if (side->is_before)
		k.w = k.w > 0 ? -k.w : k.w;
	*(k.w > 0 ? &b->now : &b->before) += fabs((double)k.w);
	vec_push(&b->walkers, k);
}

static void start_walkers(struct builder *b, uint32_t index)
{
	const struct profile *p = b->sides[index].p;

	vec_reserve(&b->walkers, p->nsamples);
	for (uint32_t i = 0; i < p->nsamples; i++) {
		if (stop_asked_at(b->params->stop, i))
			return;
		start_sample(b, index, &p->samples[i]);
	}
}

static void add_weight(struct step *to, int64_t w)
{
	if (w > 0)
		to->now = int_add(to->now, w);
	else
		to->before = int_add(to->before, int_neg(w));
}

static bool same_step(const void *ctx, uint32_t index)
{
	const struct builder *b = ((const void *const *)ctx)[0];
	const struct step *want = ((const void *const *)ctx)[1], *s = &b->steps.at[index];

	return s->parent == want->parent && s->frame == want->frame;
}

/* Finds the next frame of each of some walkers. */
static void find_next(void *ctx, size_t piece)
{
	struct builder *b = ctx;
	size_t first = piece * PARALLEL_WALKERS, end = first + PARALLEL_WALKERS;

	if (stop_asked(b->params->stop))
		return;
	end = end < b->walkers.n ? end : b->walkers.n;
	for (size_t i = first; i < end; i++) {
		struct walker *k = &b->walkers.at[i];
		uint32_t frame;

		if (i + PREFETCH_AHEAD < end) {
			const struct walker *later = &b->walkers.at[i + PREFETCH_AHEAD];

			__builtin_prefetch(later->stack +
					   (b->params->is_inverted ? 0 : later->left));
		}
		do
			frame = next_frame(b, k);
		while (b->params->collapses_recursion && frame != NONE &&
		       (frame & FRAME_NODE) == k->last);
		k->last = frame & FRAME_NODE;
		b->next.at[i] = frame;
	}
}

/* Takes the sample one frame further. */
static void advance(struct builder *b, struct walker *k, uint32_t frame)
{
	struct step step = { k->at, frame & FRAME_NODE, frame & FRAME_INLINED, 0, 0 };
	const void *ctx[2] = { b, &step };
	uint32_t at = map_put(&b->map, hash_mix(b->seed, (uint64_t)step.parent << 32 | step.frame),
			      b->steps.n, same_step, ctx);

	if (at == b->steps.n)
		vec_push(&b->steps, step);
	b->steps.at[at].is_inline &= step.is_inline;
	add_weight(&b->steps.at[at], k->w);
	k->at = at;
}

/* ---- levels */

/* What ends at a path: a sample's leaf, or callees that are too light. */
static bool end_at(struct builder *b, uint32_t path, int64_t now, int64_t before)
{
	struct path *p = &b->paths.at[path];

	if (now < 0 || before < 0 || (b->params->drop_negative && before > now))
		return false; /* below 0: the sum of hostile values has wrapped */
	p->now = int_add(p->now, now);
	p->before = int_add(p->before, before);
	p->width += (double)(now > before ? now : before);
	return true;
}

static void cut_off(struct builder *b, const struct step *s)
{
	struct path *p = &b->paths.at[s->parent];

	if (!end_at(b, s->parent, s->now, s->before))
		return;
	p->lost_now = int_add(p->lost_now, s->now);
	p->lost_before = int_add(p->lost_before, s->before);
	b->ncut++;
}

static void add_path(struct builder *b, const struct step *s)
{
	vec_push(
		&b->paths,
		(struct path){ .parent = s->parent, .frame = s->frame, .is_inline = s->is_inline });
	vec_push(&b->own, (struct step){ 0 });
}

/* Is there a path for this step? One is no wider than both sides together. */
static bool is_kept(const struct builder *b, const struct step *s)
{
	if (b->level < b->params->nroot)
		return s->frame == b->params->root[b->level];
	return (double)s->now + (double)s->before >= b->cut;
}

static void keep_heavy(struct builder *b)
{
	b->path_of.n = 0;
	for (size_t i = 0; i < b->steps.n; i++) {
		const struct step *s = &b->steps.at[i];
		bool kept = is_kept(b, s);

		vec_push(&b->path_of, kept ? (uint32_t)b->paths.n : NONE);
		if (kept)
			add_path(b, s);
		else
			cut_off(b, s);
		if (kept && b->level + 1 == b->params->nroot)
			b->cut = fmax((double)s->now, (double)s->before) * b->params->fraction;
	}
	b->level++;
}

static void go_one_level_on(struct builder *b)
{
	size_t n = 0, npieces = (b->walkers.n + PARALLEL_WALKERS - 1) / PARALLEL_WALKERS;

	b->steps.n = b->next.n = 0;
	vec_reserve(&b->next, b->walkers.n);
	parallel_for(b->params->threads, npieces, find_next, b);
	if (stop_asked(b->params->stop))
		return;
	for (size_t i = 0; i < b->walkers.n; i++) {
		struct walker k = b->walkers.at[i];

		if (b->next.at[i] == NONE) {
			add_weight(&b->own.at[k.at], k.w);
			continue;
		}
		advance(b, &k, b->next.at[i]);
		b->walkers.at[n++] = k;
	}
	map_release(&b->map);
	keep_heavy(b);
	b->walkers.n = n;
	n = 0;
	for (size_t i = 0; i < b->walkers.n; i++) {
		uint32_t path = b->path_of.at[b->walkers.at[i].at];

		if (path == NONE)
			continue;
		b->walkers.at[n] = b->walkers.at[i];
		b->walkers.at[n++].at = path;
	}
	b->walkers.n = n;
}

/* Callees are part of their callers. */
static void sum_up(struct builder *b)
{
	for (size_t i = 0; i < b->paths.n; i++)
		end_at(b, (uint32_t)i, b->own.at[i].now, b->own.at[i].before);
	for (size_t i = b->paths.n; i-- > 1;) {
		const struct path *p = &b->paths.at[i];
		struct path *parent = &b->paths.at[p->parent];

		parent->now = int_add(parent->now, p->now);
		parent->before = int_add(parent->before, p->before);
		parent->width += p->width;
	}
}

void path_tree_grow(struct arena *a, struct path_tree *t, const struct path_side *sides,
		    size_t nsides, const struct path_params *params)
{
	struct builder b = { .sides = sides, .params = params, .seed = map_seed() };

	*t = (struct path_tree){ .frames = t->frames };
	for (uint32_t i = 0; i < nsides; i++) {
		b.singles[i] = find_singles(a, &sides[i]);
		start_walkers(&b, i);
	}
	t->has_base = b.before > 0;
	b.cut = fmax(b.now, b.before) * params->fraction;
	add_path(&b, &(struct step){ .parent = NONE });
	while (b.walkers.n && !stop_asked(params->stop))
		go_one_level_on(&b);
	sum_up(&b);
	t->ncut = b.ncut;
	t->npaths = (uint32_t)b.paths.n;
	t->paths = vec_adopt(a, &b.paths);
	vec_release(&b.walkers);
	vec_release(&b.next);
	vec_release(&b.steps);
	vec_release(&b.path_of);
	vec_release(&b.own);
	map_release(&b.map);
}

void path_tree_build(struct arena *a, struct path_tree *t, const struct profile *p,
		     const struct graph_params *params)
{
	frames_init(a, &t->frames, p, &params->keep, false);
	path_tree_grow(a, t,
		       &(struct path_side){ .p = p,
					    .frames = &t->frames,
					    .value = params->value,
					    .mean = params->mean },
		       1,
		       &(struct path_params){ .fraction = params->node_fraction,
					      .drop_negative = params->drop_negative,
					      .pivot = NONE,
					      .threads = params->threads });
}
