/* api_flame.c - the call tree, cut to what can be seen of it, packed in columns.
 *
 * "KFLM", version, flags, a JSON header with the functions, then a column of varints for each thing
 * that is known of a node, in level order: the children of a node follow one another, heaviest
 * first. With in=label, q and re the tree has only samples with a label that is found. */
#include "web/finder.h"
#include "web/names.h"

#include <stdlib.h>

#include "base/number.h"
#include "base/vec.h"

#define DEFAULT_FRACTION 0.00025
enum { VERSION = 1, TWO_COLUMNS = 1, INVERTED = 2, SPLIT = 4 };
enum { MAX_NODES = 60000 };

struct side {
	struct report_run *r;
	struct loaded *l;
	struct frames frames;
	uint32_t *ids; /* by node; with FRAME_GROUP those of groups */
};

/* Where the code of a function is. */
struct place {
	bool is_known;
	struct str module;
	uint64_t offset; /* the lowest */
};

struct flame {
	struct api_call *q;
	struct buf *out;
	struct finder finder;
	struct path_params params;
	const uint32_t *root_numbers; /* of params.root */
	struct side sides[2];
	size_t nsides;
	struct arena *a;
	struct path_tree tree;
	struct str *names;    /* by path: for ties */
	struct place *places; /* by id of functions; NULL: siblings go by their weight */
	uint32_t *order;      /* paths in level order */
	uint32_t *nchild;     /* by path */
	uint32_t *index_of;   /* by id of functions: in the answer, from 1; 0: not there */
	uint32_t *node_of;    /* by id: 1 + a node of the side in side_of */
	unsigned char *side_of;
	uint32_t nids;
	uint32_t *used; /* ids of the answer's functions; the first is the root's */
	uint32_t nused, depth;
	bool has_two;
};

/* ---- parameters */

static bool read_params(struct flame *f, struct err *e)
{
	struct api_call *q = f->q;
	struct str min = api_param(q, "min"), pivot = api_param(q, "pivot");
	struct name_path root;

	f->params =
		(struct path_params){ .fraction = DEFAULT_FRACTION,
				      .drop_negative = q->options.drop_negative,
				      .is_inverted = str_eq(api_param(q, "dir"), STR("callers")),
				      .collapses_recursion = api_flag(q, "rc"),
				      .collapses_loops = str_eq(api_param(q, "rc"), STR("2")),
				      .splits_inlined = api_flag(q, "inl"),
				      .pivot = NONE,
				      .max_paths = MAX_NODES,
				      .stop = q->http->abandoned };
	if (min.n && (number_parse_float(min, &f->params.fraction) != NUMBER_OK ||
		      !(f->params.fraction >= 0 && f->params.fraction <= 1)))
		return err_set(e, ERR_USAGE, "min=%.*s: not a part of 1", STR_ARG(min));
	if (pivot.n)
		f->params.pivot = functions_find(&q->site->functions, pivot);
	if (!f->params.pivot)
		return err_set(e, ERR_NOTFOUND, "there is no function %.*s", STR_ARG(pivot));
	if (!name_path_read(q, "root", &root, e))
		return false;
	f->params.root = root.ids;
	f->params.nroot = root.n;
	f->root_numbers = root.numbers;
	for (size_t i = 0; i < root.n && !f->params.splits_inlined; i++)
		root.ids[i] &= FRAME_NODE;
	return true;
}

/* ---- order */

static uint64_t weight(const struct path *p)
{
	return (uint64_t)(p->now > 0 ? p->now : 0) + (uint64_t)(p->before > 0 ? p->before : 0);
}

static int heavier_first(const void *a, const void *b, void *flame)
{
	const struct flame *f = flame;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	uint64_t x = weight(&f->tree.paths[i]), y = weight(&f->tree.paths[k]);
	int by_name;

	if (x != y)
		return x > y ? -1 : 1;
	by_name = str_cmp(f->names[i], f->names[k]);
	return by_name ? by_name : (i > k) - (i < k);
}

static int compare_places(const struct place *a, const struct place *b)
{
	int by_module = str_cmp(a->module, b->module);

	return by_module ? by_module : (a->offset > b->offset) - (a->offset < b->offset);
}

static int lower_first(const void *a, const void *b, void *flame)
{
	const struct flame *f = flame;
	const struct path *x = &f->tree.paths[*(const uint32_t *)a];
	const struct path *y = &f->tree.paths[*(const uint32_t *)b];
	int by_place = compare_places(&f->places[x->frame], &f->places[y->frame]);

	return by_place ? by_place : heavier_first(a, b, flame);
}

static struct place place_of(const struct profile *p, const struct location *l)
{
	const struct mapping *m = l->mapping == NONE ? NULL : &p->mappings[l->mapping];

	return (struct place){ true, m ? profile_str(p, m->file) : STR(""),
			       m ? l->address - m->start + m->offset : l->address };
}

static void find_places(struct flame *f, const struct side *s)
{
	const struct profile *p = s->r->p;

	for (uint32_t loc = 0; loc < p->nlocations; loc++) {
		struct place at = place_of(p, &p->locations[loc]);

		for (uint32_t i = s->frames.first[loc]; i < s->frames.first[loc + 1]; i++) {
			uint32_t id = s->ids[s->frames.lists[i] & FRAME_NODE] & FRAME_NODE;
			struct place *known = &f->places[id];

			if (!known->is_known || compare_places(&at, known) < 0)
				*known = at;
		}
	}
}

/* Texts of the functions by path, which do not move while others are added. */
static void name_paths(struct flame *f)
{
	struct functions *t = &f->q->site->functions;

	f->names = arena_many(f->a, f->tree.npaths, struct str);
	pthread_mutex_lock(&t->lock);
	f->nids = (uint32_t)t->n;
	for (uint32_t i = 1; i < f->tree.npaths; i++)
		f->names[i] = t->at[f->tree.paths[i].frame].text;
	pthread_mutex_unlock(&t->lock);
}

static void put_in_order(struct flame *f)
{
	uint32_t n = f->tree.npaths, done = 1;
	uint32_t *first = arena_many(f->a, n + 1, uint32_t), *children;

	f->nchild = arena_many(f->a, n, uint32_t);
	f->order = arena_many(f->a, n, uint32_t);
	children = arena_many(f->a, n, uint32_t);
	for (uint32_t i = 1; i < n; i++)
		first[f->tree.paths[i].parent + 1]++;
	for (uint32_t i = 0; i < n; i++)
		first[i + 1] += first[i];
	for (uint32_t i = 1; i < n; i++) {
		uint32_t parent = f->tree.paths[i].parent;

		children[first[parent] + f->nchild[parent]++] = i;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = f->order[i], count = f->nchild[at];

		if (count > 1)
			qsort_r(children + first[at], count, sizeof(*children),
				f->places ? lower_first : heavier_first, f);
		for (uint32_t k = 0; k < count; k++)
			f->order[done++] = children[first[at] + k];
	}
}

static void measure_depth(struct flame *f)
{
	uint32_t *depth = arena_many(f->a, f->tree.npaths, uint32_t);

	for (uint32_t i = 1; i < f->tree.npaths; i++) {
		depth[i] = depth[f->tree.paths[i].parent] + 1;
		f->depth = depth[i] > f->depth ? depth[i] : f->depth;
	}
}

/* ---- functions */

static void find_used(struct flame *f)
{
	f->index_of = arena_many(f->a, f->nids, uint32_t);
	f->node_of = arena_many(f->a, f->nids, uint32_t);
	f->side_of = arena_many(f->a, f->nids, unsigned char);
	f->used = arena_many(f->a, f->tree.npaths, uint32_t);
	for (size_t s = 0; s < f->nsides; s++) {
		for (uint32_t node = 0; node < f->sides[s].frames.nnodes; node++) {
			uint32_t id = f->sides[s].ids[node] & FRAME_NODE;

			if (f->node_of[id])
				continue;
			f->node_of[id] = node + 1;
			f->side_of[id] = (unsigned char)s;
		}
	}
	f->nused = 1;
	for (uint32_t i = 1; i < f->tree.npaths; i++) {
		uint32_t id = f->tree.paths[f->order[i]].frame;

		if (f->index_of[id])
			continue;
		f->index_of[id] = f->nused;
		f->used[f->nused++] = id;
	}
}

static void put_functions(struct flame *f, struct buf *out)
{
	buf_puts(out, ",\"functions\":[[0,\"root\",\"\",0,\"\",0]");
	for (uint32_t i = 1; i < f->nused; i++) {
		uint32_t id = f->used[i];
		const struct side *s = &f->sides[f->side_of[id]];
		uint32_t node = f->node_of[id] - 1;
		struct node_info info;

		frames_info(&s->frames, s->r->p, node, &info);
		buf_puts(out, ",\n");
		if (s->ids[node] & FRAME_GROUP)
			name_put_group(out, s->l, s->r, id, &info);
		else
			name_put(out, s->l, s->r, id, &info);
	}
	buf_char(out, ']');
}

/* ---- columns */

static void put_varint(struct buf *out, uint64_t v)
{
	char *at = buf_room(out, 10);
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		at[n++] = (char)(v | 0x80);
	at[n++] = (char)v;
	out->n += n;
}

static uint64_t positive(int64_t v)
{
	return v > 0 ? (uint64_t)v : 0;
}

static void put_side(struct flame *f, bool before)
{
	const int64_t *own = path_tree_own(f->a, &f->tree, before);

	for (uint32_t i = 0; i < f->tree.npaths; i++)
		put_varint(f->out, positive(own[f->order[i]]));
	for (uint32_t i = 0; i < f->tree.npaths; i++) {
		const struct path *p = &f->tree.paths[f->order[i]];

		put_varint(f->out, positive(before ? p->lost_before : p->lost_now));
	}
}

static void put_columns(struct flame *f)
{
	uint32_t n = f->tree.npaths;

	for (uint32_t i = 0; i < n; i++)
		put_varint(f->out, i ? f->index_of[f->tree.paths[f->order[i]].frame] : 0);
	for (uint32_t i = 0; i < n; i++)
		put_varint(f->out, f->nchild[f->order[i]]);
	put_side(f, f->has_two);
	if (f->has_two)
		put_side(f, false);
	for (uint32_t i = 0; i < n; i++)
		put_varint(f->out, f->tree.paths[f->order[i]].inlined);
}

/* ---- the header */

static void put_cut(struct flame *f, struct buf *out)
{
	int64_t lost = 0;

	for (uint32_t i = 0; i < f->tree.npaths; i++)
		lost = int_add(lost,
			       int_add(f->tree.paths[i].lost_now, f->tree.paths[i].lost_before));
	buf_printf(out, ",\"cut\":{\"nodes\":%u,\"weight\":%lld}", f->tree.ncut, (long long)lost);
}

static void put_header(struct flame *f, struct buf *out)
{
	const struct report_run *r = f->sides[0].r;
	const struct path *all = &f->tree.paths[0];
	int64_t total = r->params->total;

	if (r->params->mean) /* means of samples do not add up to the mean of all, but to this */
		total = f->has_two ? all->before : all->now;
	buf_char(out, '{');
	api_put_type(out, r);
	buf_printf(out, ",\"total\":%lld", (long long)total);
	if (f->has_two)
		buf_printf(out, ",\"total_b\":%lld",
			   (long long)(f->nsides > 1 ? f->sides[1].r->params->total : all->now));
	buf_printf(out, ",\"nodes\":%u,\"depth\":%u,\"root\":[", f->tree.npaths, f->depth);
	for (size_t i = 0; i < f->params.nroot; i++)
		buf_printf(out, "%s%u", i ? "," : "", f->root_numbers[i]);
	buf_char(out, ']');
	put_cut(f, out);
	put_functions(f, out);
	api_put_warnings(f->q, out);
	buf_char(out, '}');
}

static void put_answer(struct flame *f)
{
	struct buf header = { 0 };
	unsigned flags = (f->has_two ? TWO_COLUMNS : 0) | (f->params.is_inverted ? INVERTED : 0) |
			 (f->params.splits_inlined ? SPLIT : 0);

	put_header(f, &header);
	buf_puts(f->out, "KFLM");
	buf_char(f->out, VERSION);
	buf_char(f->out, (char)flags);
	buf_add(f->out, "\0", 2);
	for (int shift = 0; shift < 32; shift += 8)
		buf_char(f->out, (char)(header.n >> shift));
	buf_str(f->out, buf_view(&header));
	put_columns(f);
	buf_release(&header);
}

/* ---- one profile or two */

static bool build(struct flame *f, struct err *e)
{
	struct path_side sides[2];

	for (size_t i = 0; i < f->nsides; i++) {
		const struct side *s = &f->sides[i];

		sides[i] = (struct path_side){ .p = s->r->p,
					       .frames = &s->frames,
					       .name_of = s->ids,
					       .value = s->r->params->value,
					       .mean = s->r->params->mean,
					       .is_before = f->nsides > 1 && i == 0 };
	}
	f->params.threads = f->sides[0].r->params->threads;
	path_tree_grow(f->a, &f->tree, sides, f->nsides, &f->params);
	if (stop_asked(f->params.stop))
		return true;
	/* That no sample with a label comes by is an answer. */
	if (f->tree.npaths <= f->params.nroot && f->finder.scope != IN_LABELS)
		return err_set(e, ERR_NOTFOUND, "there is no such path here: root=%.*s",
			       STR_ARG(api_param(f->q, "root")));
	f->has_two = f->nsides > 1 || f->tree.has_base;
	name_paths(f);
	if (str_eq(api_param(f->q, "ord"), STR("address")))
		f->places = arena_many(f->a, f->nids, struct place);
	for (size_t i = 0; f->places && i < f->nsides; i++)
		find_places(f, &f->sides[i]);
	put_in_order(f);
	measure_depth(f);
	find_used(f);
	put_answer(f);
	return true;
}

static bool run_flame(struct buf *out, struct report_run *r, struct err *e);

static const struct report report_flame = {
	.name = "flame",
	.flags = REPORT_ALL_NODES | REPORT_UNTRIMMED | REPORT_PATHS | REPORT_NO_STACKS,
	.run = run_flame,
};

/* What has no name becomes part of its module's group. */
static void group_unnamed(const struct flame *f, struct side *s)
{
	for (uint32_t node = 0; node < s->frames.nnodes; node++) {
		struct node_info info;
		uint32_t group;

		frames_info(&s->frames, s->r->p, node, &info);
		group = name_group(f->q->site, s->l, s->r, &info);
		if (group)
			s->ids[node] = group | FRAME_GROUP;
	}
}

/* The second profile's report runs within that of the first, as the tree needs both. */
static bool run_flame(struct buf *out, struct report_run *r, struct err *e)
{
	struct flame *f = r->params->into;
	struct api_call *q = f->q;
	struct side *s = &f->sides[f->nsides++];

	*s = (struct side){ .r = r, .l = f->nsides > 1 ? q->other : q->profile };
	name_graph_frames(r, &s->frames);
	if (f->finder.scope == IN_LABELS)
		finder_keep(r, finder_label_sets(&f->finder, r));
	s->ids = name_frames(q->site, s->l, r, &s->frames);
	if (api_flag(q, "group"))
		group_unnamed(f, s);
	if (q->other && f->nsides == 1)
		return api_report_other(q, &report_flame, f, out, e);
	f->a = r->a;
	return build(f, e);
}

bool api_flame(struct api_call *q, struct buf *out, struct err *e)
{
	struct flame f = { .q = q, .out = out };
	bool ok;

	q->type = "application/x-flame";
	ok = finder_open(&f.finder, q, e) && read_params(&f, e) &&
	     api_report(q, loaded_session(q->profile), &report_flame, "", &f, out, e);
	finder_close(&f.finder);
	return ok;
}
