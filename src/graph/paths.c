/* paths.c - the call tree level by level: callers first, and on with only those samples whose path
 * is heavy enough to be seen. Most paths of a large profile are not, and are never made.
 *
 * Samples are dealt out to the cores once. At each level a core takes its own a frame further and
 * counts where they are; what all of them have counted is then added up, and decides which paths
 * there are. */
#include "graph/graph.h"

#include <math.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/parallel.h"
#include "base/vec.h"

enum {
	MAX_PIECES = 16,
	PIECE_SAMPLES = 20000, /* fewer are not worth a thread */
	BLOCK = 32,	       /* samples whose memory is asked for at once */
	PREFETCH_AHEAD = 24,
};

/* As the frame of a step: the stack ends. */
#define END NONE

/* A sample on its way from one end of its stack to the other. */
struct walker {
	const uint32_t *stack; /* what is left of it */
	uint32_t left;	       /* locations */
	uint32_t frame : 30;   /* frames of the next that are done */
	uint32_t side : 1;
	uint32_t has_loops : 1; /* that are to be left out */
	uint32_t at;		/* step of its piece in the level before */
	uint32_t last;		/* name of the frame that it is at, or NONE */
	int64_t w;
};

/* One more frame on a path. */
struct step {
	uint32_t parent, frame; /* the frame may have FRAME_INLINED, see splits_inlined */
	int64_t now, before;
	int64_t inlined; /* of both: what comes here without a call */
};

struct step_table {
	vec(struct step) steps;
	struct map map;
};

/* The samples of one core. */
struct piece {
	size_t first, end; /* of all samples of both sides */
	vec(struct walker) walkers;
	vec(uint32_t) path_of; /* by step of the level before; NONE: it is too light */
	struct step_table t;   /* of this level */
	double now, before;    /* sums of its samples */
	uint32_t *seen;	       /* by name: the last of its samples that had it, from 1; or NULL */
};

struct builder {
	const struct path_side *sides;
	const struct path_params *params;
	uint32_t
		*singles[2]; /* by side and location: its only frame; NONE: it has another number */
	struct piece pieces[MAX_PIECES];
	size_t npieces;
	double cut;
	size_t level;
	uint32_t ncut;
	uint32_t nnames; /* more than any frame's */
	vec(struct path) paths;
	vec(struct step) all; /* by path: what goes through */
	vec(struct step) own; /* by path: what ends there */
	uint64_t seed;
};

/* ---- walking */

/* The frame by its name. */
static uint32_t named(const struct path_side *side, uint32_t frame)
{
	uint32_t node = frame & FRAME_NODE;

	return (side->name_of ? side->name_of[node] : node) | (frame & FRAME_INLINED);
}

/* One more than the largest, or than others have. */
static uint32_t count_names(const struct path_side *side, uint32_t least)
{
	for (uint32_t node = 0; node < side->frames->nnodes; node++) {
		uint32_t name = named(side, node) & FRAME_NODE;

		least = name < least ? least : name + 1;
	}
	return least;
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

/* The next frame, by its name; END: there is none. */
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
	return END;
}

/* Goes on to the last occurrence of the frame it is at: what lies between is left out. */
static uint32_t skip_loop(const struct builder *b, struct walker *k, uint32_t frame)
{
	struct walker at = *k;
	uint32_t next;

	while ((next = next_frame(b, &at)) != END) {
		if ((next & FRAME_NODE) != (frame & FRAME_NODE))
			continue;
		*k = at;
		frame = next;
	}
	return frame;
}

/* The same, but not the one it is at again if that is to be one frame. */
static uint32_t next_other_frame(const struct builder *b, struct walker *k)
{
	uint32_t frame;

	do
		frame = next_frame(b, k);
	while (frame != END && (frame & FRAME_NODE) == k->last &&
	       (b->params->collapses_recursion || (frame & FRAME_GROUP)));
	if (k->has_loops && frame != END)
		frame = skip_loop(b, k, frame);
	k->last = frame & FRAME_NODE;
	return frame;
}

/* Goes to before the outermost occurrence of the pivot. */
static bool seek_pivot(const struct builder *b, struct walker *k)
{
	struct walker at = *k, before = *k;
	uint32_t frame;
	bool found = false;

	for (; (frame = next_frame(b, &at)) != END; before = at) {
		if ((frame & FRAME_NODE) != b->params->pivot)
			continue;
		*k = before;
		found = true;
		if (!b->params->is_inverted)
			break;
	}
	return found;
}

/* Is any frame there twice? Most stacks need not be searched for loops. */
static bool has_repeats(const struct builder *b, struct piece *x, struct walker at)
{
	uint32_t sample = (uint32_t)x->walkers.n + 1, frame;

	while ((frame = next_frame(b, &at)) != END) {
		uint32_t *seen = &x->seen[frame & FRAME_NODE];

		if (*seen == sample)
			return true;
		*seen = sample;
	}
	return false;
}

static void start_sample(struct builder *b, struct piece *x, uint32_t index, const struct sample *s)
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
	k.has_loops = x->seen && has_repeats(b, x, k);
	if (side->is_before)
		k.w = k.w > 0 ? -k.w : k.w;
	*(k.w > 0 ? &x->now : &x->before) += fabs((double)k.w);
	vec_push(&x->walkers, k);
}

static void start_piece(void *ctx, size_t index)
{
	struct builder *b = ctx;
	struct piece *x = &b->pieces[index];
	uint32_t nfirst = b->sides[0].p->nsamples;

	if (b->params->collapses_loops)
		x->seen = xcalloc(b->nnames, sizeof(*x->seen));
	vec_reserve(&x->walkers, x->end - x->first);
	vec_push(&x->path_of, 0);
	for (size_t i = x->first; i < x->end && !stop_asked_at(b->params->stop, i); i++) {
		if (i < nfirst)
			start_sample(b, x, 0, &b->sides[0].p->samples[i]);
		else
			start_sample(b, x, 1, &b->sides[1].p->samples[i - nfirst]);
	}
}

/* ---- counting */

static void add_weight(struct step *to, int64_t w, bool is_inlined)
{
	int64_t size = w > 0 ? w : int_neg(w);

	if (w > 0)
		to->now = int_add(to->now, size);
	else
		to->before = int_add(to->before, size);
	if (is_inlined)
		to->inlined = int_add(to->inlined, size);
}

static bool same_step(const void *ctx, uint32_t index)
{
	const struct step_table *t = ((const void *const *)ctx)[0];
	const struct step *want = ((const void *const *)ctx)[1], *s = &t->steps.at[index];

	return s->parent == want->parent && s->frame == want->frame;
}

static uint64_t hash_step(const struct builder *b, uint32_t parent, uint32_t frame)
{
	return hash_mix(b->seed, (uint64_t)parent << 32 | frame);
}

/* What of a frame tells steps apart. */
static uint32_t step_frame(const struct builder *b, uint32_t frame)
{
	uint32_t kept = FRAME_NODE | (b->params->splits_inlined ? FRAME_INLINED : 0);

	return frame == END ? END : frame & kept;
}

/* The step in the table, which is added if it is new. */
static uint32_t put_step(struct step_table *t, uint64_t hash, uint32_t parent, uint32_t frame)
{
	struct step step = { .parent = parent, .frame = frame };
	const void *ctx[2] = { t, &step };
	uint32_t at = map_put(&t->map, hash, t->steps.n, same_step, ctx);

	if (at == t->steps.n)
		vec_push(&t->steps, step);
	return at;
}

static void clear_table(struct step_table *t)
{
	t->steps.n = 0;
	map_release(&t->map);
}

static void release_table(struct step_table *t)
{
	vec_release(&t->steps);
	map_release(&t->map);
}

/* Some walkers on their way: each where it comes from, and where it goes. */
struct block {
	size_t n;
	struct walker walkers[BLOCK];
	uint32_t parents[BLOCK], frames[BLOCK];
	uint64_t hashes[BLOCK];
};

/* Takes walkers from *i on; those on paths that are too light are left behind. */
static void fill_block(const struct builder *b, struct piece *x, size_t *i, struct block *to)
{
	for (to->n = 0; *i < x->walkers.n && to->n < BLOCK; ++*i) {
		struct walker *k = &to->walkers[to->n];
		uint32_t parent, frame;

		if (*i + PREFETCH_AHEAD < x->walkers.n) {
			const struct walker *later = &x->walkers.at[*i + PREFETCH_AHEAD];

			__builtin_prefetch(later->stack +
					   (b->params->is_inverted ? 0 : later->left));
		}
		*k = x->walkers.at[*i];
		parent = x->path_of.at[k->at];
		if (parent == NONE)
			continue;
		frame = next_other_frame(b, k);
		to->parents[to->n] = parent;
		to->frames[to->n] = frame;
		to->hashes[to->n] = hash_step(b, parent, step_frame(b, frame));
		map_prefetch(&x->t.map, to->hashes[to->n++]);
	}
}

/* Takes the samples of a piece one frame further. */
static void advance_piece(void *ctx, size_t index)
{
	struct builder *b = ctx;
	struct piece *x = &b->pieces[index];
	size_t kept = 0;
	struct block block;

	clear_table(&x->t);
	for (size_t i = 0; i < x->walkers.n && !stop_asked(b->params->stop);) {
		fill_block(b, x, &i, &block);
		for (size_t k = 0; k < block.n; k++) {
			uint32_t frame = block.frames[k];

			block.walkers[k].at = put_step(&x->t, block.hashes[k], block.parents[k],
						       step_frame(b, frame));
			add_weight(&x->t.steps.at[block.walkers[k].at], block.walkers[k].w,
				   frame & FRAME_INLINED);
			x->walkers.at[kept] = block.walkers[k];
			kept += frame != END;
		}
	}
	x->walkers.n = kept;
}

/* ---- levels */

static void add_step(struct step *to, const struct step *s)
{
	to->now = int_add(to->now, s->now);
	to->before = int_add(to->before, s->before);
	to->inlined = int_add(to->inlined, s->inlined);
}

/* Adds up what the pieces have counted. Their path_of become steps of the sum. */
static void join_pieces(struct builder *b, struct step_table *sum)
{
	for (size_t i = 0; i < b->npieces; i++) {
		struct piece *x = &b->pieces[i];

		x->path_of.n = 0;
		for (size_t k = 0; k < x->t.steps.n; k++) {
			const struct step *s = &x->t.steps.at[k];
			uint32_t at = NONE;

			if (s->frame == END) {
				add_step(&b->own.at[s->parent], s);
			} else {
				at = put_step(sum, hash_step(b, s->parent, s->frame), s->parent,
					      s->frame);
				add_step(&sum->steps.at[at], s);
			}
			vec_push(&x->path_of, at);
		}
	}
}

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

static double weight_of(const struct step *s)
{
	return (double)s->now + (double)s->before;
}

/* Some is more than none, and less than all. */
static unsigned char inlined_percent(const struct step *s)
{
	double share = (double)s->inlined / weight_of(s);

	if (!s->inlined || s->inlined == int_add(s->now, s->before))
		return s->inlined ? 100 : 0;
	return share >= 0.01 ? share < 0.99 ? (unsigned char)(100 * share) : 99 : 1;
}

static void add_path(struct builder *b, const struct step *s)
{
	vec_push(&b->paths, ((struct path){ .parent = s->parent,
					    .frame = s->frame & FRAME_NODE,
					    .inlined = inlined_percent(s) }));
	vec_push(&b->own, (struct step){ 0 });
	vec_push(&b->all, *s);
}

/* Is there a path for this step? One is no wider than both sides together. */
static bool is_kept(const struct builder *b, const struct step *s)
{
	if (b->level < b->params->nroot)
		return s->frame == b->params->root[b->level];
	return weight_of(s) >= b->cut;
}

/* Makes paths of the heavy steps; step -> path, or NONE. */
static uint32_t *keep_heavy(struct builder *b, const struct step_table *sum)
{
	uint32_t *to = xcalloc(sum->steps.n, sizeof(*to));

	for (size_t i = 0; i < sum->steps.n; i++) {
		const struct step *s = &sum->steps.at[i];
		bool kept = is_kept(b, s);

		to[i] = kept ? (uint32_t)b->paths.n : NONE;
		if (kept)
			add_path(b, s);
		else
			cut_off(b, s);
		if (kept && b->level + 1 == b->params->nroot)
			b->cut = fmax((double)s->now, (double)s->before) * b->params->fraction;
	}
	return to;
}

static void rename_paths(struct builder *b, const uint32_t *to)
{
	for (size_t i = 0; i < b->npieces; i++) {
		struct piece *x = &b->pieces[i];

		for (size_t k = 0; k < x->path_of.n; k++)
			if (x->path_of.at[k] != NONE)
				x->path_of.at[k] = to[x->path_of.at[k]];
	}
}

static void go_one_level_on(struct builder *b)
{
	struct step_table sum = { 0 };
	uint32_t *to;

	parallel_for((int)b->npieces, b->npieces, advance_piece, b);
	if (!stop_asked(b->params->stop)) {
		join_pieces(b, &sum);
		to = keep_heavy(b, &sum);
		rename_paths(b, to);
		free(to);
	}
	b->level++;
	release_table(&sum);
}

/* ---- no more paths than asked for */

static int heavier_first(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x < y) - (x > y);
}

/* The weight of the lightest path that stays, and how many of just that weight do. */
static double find_limit(const struct builder *b, uint32_t max, uint32_t *nequal)
{
	double *weights = xcalloc(b->all.n, sizeof(*weights)), limit;

	for (size_t i = 1; i < b->all.n; i++)
		weights[i - 1] = weight_of(&b->all.at[i]);
	qsort(weights, b->all.n - 1, sizeof(*weights), heavier_first);
	limit = weights[max - 1];
	*nequal = 0;
	for (uint32_t i = 0; i < max; i++)
		*nequal += weights[i] == limit;
	free(weights);
	return limit;
}

/* Keeps the heaviest paths. Callers are no lighter than their callees, and come before them, so
 * that they stay if these do. */
static void keep_most(struct builder *b, uint32_t max)
{
	uint32_t *to = xcalloc(b->paths.n, sizeof(*to)), n = 1, nequal;
	double limit = find_limit(b, max, &nequal);

	for (size_t i = 1; i < b->paths.n; i++) {
		struct step *s = &b->all.at[i];
		double weight = weight_of(s);
		bool is_equal = weight == limit && nequal;

		nequal -= is_equal;
		s->parent = to[s->parent];
		to[i] = weight > limit || is_equal ? n : NONE;
		if (to[i] == NONE) {
			if (s->parent != NONE)
				cut_off(b, s);
			continue;
		}
		b->paths.at[n] = b->paths.at[i];
		b->paths.at[n].parent = s->parent;
		b->own.at[n] = b->own.at[i];
		b->all.at[n++] = *s;
	}
	b->paths.n = b->own.n = b->all.n = n;
	b->cut = fmax(b->cut, limit);
	rename_paths(b, to);
	free(to);
}

/* ---- all of it */

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

/* Deals the samples out, and tells what all of them weigh. */
static double start(struct builder *b, size_t nsides)
{
	size_t n = b->sides[0].p->nsamples + (nsides > 1 ? b->sides[1].p->nsamples : 0);
	size_t most = n / PIECE_SAMPLES + 1, threads = (size_t)b->params->threads;
	double now = 0, before = 0;

	b->npieces = threads < most ? threads : most;
	b->npieces = b->npieces < 1 ? 1 : b->npieces > MAX_PIECES ? MAX_PIECES : b->npieces;
	for (size_t i = 0; i < b->npieces; i++) {
		b->pieces[i].first = n * i / b->npieces;
		b->pieces[i].end = n * (i + 1) / b->npieces;
	}
	parallel_for((int)b->npieces, b->npieces, start_piece, b);
	for (size_t i = 0; i < b->npieces; i++) {
		now += b->pieces[i].now;
		before += b->pieces[i].before;
	}
	b->cut = fmax(now, before) * b->params->fraction;
	return before;
}

static bool goes_on(const struct builder *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->npieces; i++)
		n += b->pieces[i].walkers.n;
	return n && !stop_asked(b->params->stop);
}

static void release(struct builder *b)
{
	for (size_t i = 0; i < b->npieces; i++) {
		vec_release(&b->pieces[i].walkers);
		vec_release(&b->pieces[i].path_of);
		free(b->pieces[i].seen);
		release_table(&b->pieces[i].t);
	}
	vec_release(&b->own);
	vec_release(&b->all);
}

void path_tree_grow(struct arena *a, struct path_tree *t, const struct path_side *sides,
		    size_t nsides, const struct path_params *params)
{
	struct builder b = { .sides = sides, .params = params, .seed = map_seed() };
	uint32_t max = params->max_paths;

	*t = (struct path_tree){ .frames = t->frames };
	for (size_t i = 0; i < nsides; i++) {
		b.singles[i] = find_singles(a, &sides[i]);
		b.nnames = count_names(&sides[i], b.nnames);
	}
	t->has_base = start(&b, nsides) > 0;
	add_path(&b, &(struct step){ .parent = NONE });
	while (goes_on(&b)) {
		go_one_level_on(&b);
		if (max && b.paths.n / 2 > max)
			keep_most(&b, max);
	}
	if (max && b.paths.n - 1 > max)
		keep_most(&b, max);
	sum_up(&b);
	t->ncut = b.ncut;
	t->npaths = (uint32_t)b.paths.n;
	t->paths = vec_adopt(a, &b.paths);
	release(&b);
}

int64_t *path_tree_own(struct arena *a, const struct path_tree *t, bool before)
{
	int64_t *own = arena_many(a, t->npaths, int64_t);

	for (uint32_t i = t->npaths; i-- > 0;) {
		const struct path *p = &t->paths[i];
		int64_t all = before ? p->before : p->now;
		int64_t lost = before ? p->lost_before : p->lost_now;

		own[i] = int_add(own[i], int_add(all, int_neg(lost)));
		if (i)
			own[p->parent] = int_add(own[p->parent], int_neg(all));
	}
	return own;
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
					      .threads = params->threads,
					      .stop = params->stop });
}
