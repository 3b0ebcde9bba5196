/* paths.c - the call tree level by level: callers first, and on with only those samples whose path
 * is heavy enough to be seen. Most paths of a large profile are not, and are never made. */
#include "graph/graph.h"

#include <math.h>

#include "base/map.h"
#include "base/vec.h"

/* A sample on its way from the root to its leaf. */
struct walker {
	const uint32_t *stack;
	uint32_t left; /* locations of it */
	uint32_t done; /* frames of the last of those */
	uint32_t at;   /* path; within a level, step */
	int64_t w;
};

/* One more frame on a path. */
struct step {
	uint32_t parent, frame;
	bool is_inline;
	int64_t now, before;
};

struct builder {
	const struct frames *f;
	bool drop_negative;
	double cut;
	vec(struct path) paths;
	vec(struct walker) walkers;
	vec(struct step) steps; /* of this level */
	vec(uint32_t) path_of;	/* by step; NONE: it is too light */
	vec(struct step) own;	/* by path: what ends there */
	struct map map;
	uint64_t seed;
};

static void start_walkers(struct builder *b, const struct profile *p,
			  const struct graph_params *params, bool *has_base)
{
	double now = 0, before = 0;

	vec_reserve(&b->walkers, p->nsamples);
	for (uint32_t i = 0; i < p->nsamples; i++) {
		const struct sample *s = &p->samples[i];
		const int64_t *values = sample_values(p, s);
		int64_t w = divided(values[params->value], params->mean ? values[0] : 0);

		if (!w)
			continue;
		*(w > 0 ? &now : &before) += fabs((double)w);
		b->walkers.at[b->walkers.n++] =
			(struct walker){ p->stacks + s->stack, s->nstack, 0, 0, w };
	}
	*has_base = before > 0;
	b->cut = fmax(now, before) * params->node_fraction;
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

/* Takes the sample one frame further, or tells that there is none. */
static bool advance(struct builder *b, struct walker *k)
{
	const struct frames *f = b->f;
	uint32_t loc, frame, at;
	struct step step;
	const void *ctx[2] = { b, &step };

	if (!k->left)
		return false;
	loc = k->stack[k->left - 1];
	frame = f->lists[f->first[loc] + k->done++];
	if (k->done == f->first[loc + 1] - f->first[loc]) {
		k->left--;
		k->done = 0;
	}
	step = (struct step){ k->at, frame & FRAME_NODE, frame & FRAME_INLINED, 0, 0 };
	at = map_put(&b->map, hash_mix(b->seed, (uint64_t)step.parent << 32 | step.frame),
		     b->steps.n, same_step, ctx);
	if (at == b->steps.n)
		vec_push(&b->steps, step);
	b->steps.at[at].is_inline &= step.is_inline;
	add_weight(&b->steps.at[at], k->w);
	k->at = at;
	return true;
}

/* What ends at a path: a sample's leaf, or callees that are too light. */
static void end_at(struct builder *b, uint32_t path, int64_t now, int64_t before)
{
	struct path *p = &b->paths.at[path];

	if (now < 0 || before < 0 || (b->drop_negative && before > now))
		return; /* below 0: the sum of hostile values has wrapped */
	p->now = int_add(p->now, now);
	p->before = int_add(p->before, before);
	p->width += (double)(now > before ? now : before);
}

static void add_path(struct builder *b, const struct step *s)
{
	vec_push(&b->paths, (struct path){ s->parent, s->frame, 0, 0, 0, s->is_inline });
	vec_push(&b->own, (struct step){ 0 });
}

/* The heavy steps become paths. A path is no wider than both sides together. */
static void keep_heavy(struct builder *b)
{
	b->path_of.n = 0;
	for (size_t i = 0; i < b->steps.n; i++) {
		const struct step *s = &b->steps.at[i];
		bool is_heavy = (double)s->now + (double)s->before >= b->cut;

		vec_push(&b->path_of, is_heavy ? (uint32_t)b->paths.n : NONE);
		if (is_heavy)
			add_path(b, s);
		else
			end_at(b, s->parent, s->now, s->before);
	}
}

static void go_one_level_up(struct builder *b)
{
	size_t n = 0;

	b->steps.n = 0;
	for (size_t i = 0; i < b->walkers.n; i++) {
		struct walker k = b->walkers.at[i];

		if (advance(b, &k))
			b->walkers.at[n++] = k;
		else
			add_weight(&b->own.at[k.at], k.w);
	}
	map_release(&b->map);
	keep_heavy(b);
	b->walkers.n = n;
	n = 0;
	for (size_t i = 0; i < b->walkers.n; i++) {
		struct walker k = b->walkers.at[i];

		k.at = b->path_of.at[k.at];
		if (k.at != NONE)
			b->walkers.at[n++] = k;
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

void path_tree_build(struct arena *a, struct path_tree *t, const struct profile *p,
		     const struct graph_params *params)
{
	struct builder b = { .f = &t->frames,
			     .drop_negative = params->drop_negative,
			     .seed = map_seed() };

	*t = (struct path_tree){ .npaths = 0 };
	frames_init(a, &t->frames, p, &params->keep, false);
	start_walkers(&b, p, params, &t->has_base);
	add_path(&b, &(struct step){ .parent = NONE });
	while (b.walkers.n)
		go_one_level_up(&b);
	sum_up(&b);
	t->npaths = (uint32_t)b.paths.n;
	t->paths = vec_adopt(a, &b.paths);
	vec_release(&b.walkers);
	vec_release(&b.steps);
	vec_release(&b.path_of);
	vec_release(&b.own);
	map_release(&b.map);
}
