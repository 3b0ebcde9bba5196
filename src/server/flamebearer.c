#include "server/flamebearer.h"

#include <stdlib.h>

#include "base/escape.h"
#include "base/vec.h"
#include "profile/wire.h"

enum { TOTAL_NAME = 0 };

/* Callees of each path, by name. */
struct callees {
	const struct flame *f;
	uint32_t *first; /* of path i: paths[first[i]] up to paths[first[i + 1]] */
	uint32_t *paths;
};

static int by_name(const void *a, const void *b, void *ctx)
{
	const struct flame *f = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = str_cmp(f->names[f->name_of[x]], f->names[f->name_of[y]]);

	return c ? c : (x > y) - (x < y);
}

/* Boxes without width would be anybody's callees. */
static bool has_width(const struct path *p)
{
	return p->now || p->before;
}

static void find_callees(struct arena *a, struct callees *c, const struct flame *f)
{
	uint32_t n = f->tree.npaths;
	uint32_t *next = arena_many(a, n + 2, uint32_t);

	c->f = f;
	c->first = arena_many(a, n + 2, uint32_t);
	c->paths = arena_many(a, n + 1, uint32_t);
	for (uint32_t i = 1; i < n; i++)
		c->first[f->tree.paths[i].parent + 1] += has_width(&f->tree.paths[i]);
	for (uint32_t i = 0; i < n; i++)
		next[i + 1] = c->first[i + 1] += c->first[i];
	for (uint32_t i = 1; i < n; i++)
		if (has_width(&f->tree.paths[i]))
			c->paths[next[f->tree.paths[i].parent]++] = i;
	for (uint32_t i = 0; i < n; i++)
		qsort_r(c->paths + c->first[i], c->first[i + 1] - c->first[i], sizeof(*c->paths),
			by_name, (void *)(uintptr_t)f);
}

/* ---- levels */

/* One side of a box. */
struct extent {
	int64_t at, width, self;
};

struct box {
	uint32_t path; /* NONE: what was cut */
	uint32_t name;
	struct extent now, before;
};
typedef vec(struct box) box_vec;

struct maker {
	struct callees callees;
	struct flamebearer *b;
	vec(int64_t) values;
	vec(size_t) ends;
	uint32_t other_name;
	bool has_other;
};

static void note_self(struct flamebearer *b, int64_t self)
{
	if (self > b->max_self)
		b->max_self = self;
}

static void put_extent(struct maker *m, const struct extent *x, int64_t *end)
{
	vec_push(&m->values, int_add(x->at, int_neg(*end)));
	vec_push(&m->values, x->width);
	vec_push(&m->values, x->self);
	*end = int_add(x->at, x->width);
	note_self(m->b, x->self);
}

static void put_level(struct maker *m, const struct box *boxes, size_t n)
{
	int64_t end_now = 0, end_before = 0;

	for (size_t i = 0; i < n; i++) {
		if (m->b->is_diff)
			put_extent(m, &boxes[i].before, &end_before);
		put_extent(m, &boxes[i].now, &end_now);
		vec_push(&m->values, boxes[i].name);
	}
	vec_push(&m->ends, m->values.n);
}

static struct box box_of(const struct flame *f, uint32_t path, int64_t now_at, int64_t before_at)
{
	const struct path *p = &f->tree.paths[path];

	return (struct box){ .path = path,
			     .name = path ? f->name_of[path] + 1 : TOTAL_NAME,
			     .now = { now_at, p->now, f->own_now[path] },
			     .before = { before_at, p->before, f->own_before[path] } };
}

static void push_cut(struct maker *m, const struct path *p, const struct box *after, box_vec *to)
{
	if (!p->lost_now && !p->lost_before)
		return;
	m->has_other = true;
	vec_push(to,
		 (struct box){ .path = NONE,
			       .name = m->other_name,
			       .now = { after->now.at, p->lost_now, p->lost_now },
			       .before = { after->before.at, p->lost_before, p->lost_before } });
}

static void push_callees(struct maker *m, const struct box *caller, box_vec *to)
{
	const struct callees *c = &m->callees;
	struct box next = { .now.at = int_add(caller->now.at, caller->now.self),
			    .before.at = int_add(caller->before.at, caller->before.self) };

	for (uint32_t i = c->first[caller->path]; i < c->first[caller->path + 1]; i++) {
		struct box box = box_of(c->f, c->paths[i], next.now.at, next.before.at);

		vec_push(to, box);
		next.now.at = int_add(next.now.at, box.now.width);
		next.before.at = int_add(next.before.at, box.before.width);
	}
	push_cut(m, &c->f->tree.paths[caller->path], &next, to);
}

static void put_levels(struct maker *m)
{
	box_vec level = { 0 }, below = { 0 }, swap;

	vec_push(&level, box_of(m->callees.f, 0, 0, 0));
	while (level.n) {
		put_level(m, level.at, level.n);
		below.n = 0;
		for (size_t i = 0; i < level.n; i++)
			if (level.at[i].path != NONE)
				push_callees(m, &level.at[i], &below);
		swap = level;
		level = below;
		below = swap;
	}
	vec_release(&level);
	vec_release(&below);
}

static void make_names(struct arena *a, struct maker *m)
{
	const struct flame *f = m->callees.f;
	struct flamebearer *b = m->b;

	b->names = arena_many(a, f->nnames + 2, struct str);
	b->names[TOTAL_NAME] = STR("total");
	memcpy(b->names + 1, f->names, f->nnames * sizeof(*f->names));
	b->names[m->other_name] = STR("other");
	b->nnames = f->nnames + 1 + m->has_other;
}

void flamebearer_make(struct arena *a, struct flamebearer *b, const struct flame *f, bool is_diff)
{
	struct maker m = { .b = b, .other_name = f->nnames + 1 };
	const struct path *all = &f->tree.paths[0];

	*b = (struct flamebearer){ .is_diff = is_diff,
				   .left = all->before,
				   .right = all->now,
				   .total = is_diff ? int_add(all->before, all->now) : all->now };
	find_callees(a, &m.callees, f);
	put_levels(&m);
	b->nlevels = m.ends.n;
	b->values = vec_adopt(a, &m.values);
	b->ends = vec_adopt(a, &m.ends);
	make_names(a, &m);
}

/* ---- as bytes and text */

void flamebearer_put(struct buf *out, const struct flamebearer *b)
{
	struct buf level = { 0 }, packed = { 0 };

	for (uint32_t i = 0; i < b->nnames; i++)
		put_utf8(out, 1, b->names[i]);
	for (size_t i = 0, at = 0; i < b->nlevels; i++) {
		for (; at < b->ends[i]; at++)
			put_varint(&packed, (uint64_t)b->values[at]);
		put_message(&level, 1, &packed);
		put_message(out, 2, &level);
	}
	put_nonzero(out, 3, (uint64_t)b->total);
	put_nonzero(out, 4, (uint64_t)b->max_self);
	if (b->is_diff) {
		put_nonzero(out, 5, (uint64_t)b->left);
		put_nonzero(out, 6, (uint64_t)b->right);
	}
	buf_release(&level);
	buf_release(&packed);
}

void flamebearer_json(struct buf *out, const struct flamebearer *b)
{
	buf_puts(out, "{\"names\":[");
	for (uint32_t i = 0; i < b->nnames; i++) {
		buf_puts(out, i ? "," : "");
		json_put(out, b->names[i]);
	}
	buf_puts(out, "],\"levels\":[");
	for (size_t i = 0, at = 0; i < b->nlevels; i++) {
		buf_puts(out, i ? ",\n[" : "\n[");
		for (bool more = false; at < b->ends[i]; at++, more = true) {
			buf_puts(out, more ? "," : "");
			buf_int(out, b->values[at]);
		}
		buf_char(out, ']');
	}
	buf_printf(out, "],\"numTicks\":%lld,\"maxSelf\":%lld}", (long long)b->total,
		   (long long)b->max_self);
}

static void put_node(struct buf *out, struct str name, int64_t self, uint32_t ncallees)
{
	put_varint(out, name.n);
	buf_str(out, name);
	put_varint(out, (uint64_t)self);
	put_varint(out, ncallees);
}

void flamebearer_put_tree(struct buf *out, const struct flame *f)
{
	struct arena scratch = { 0 };
	struct callees c;
	vec(uint32_t) left = { 0 }; /* NONE: what was cut of the path before it */

	find_callees(&scratch, &c, f);
	vec_push(&left, 0);
	while (left.n) {
		uint32_t path = left.at[--left.n], ncallees;

		if (path == NONE) {
			put_node(out, STR("other"), f->tree.paths[left.at[--left.n]].lost_now, 0);
			continue;
		}
		ncallees = c.first[path + 1] - c.first[path];
		put_node(out, path ? f->names[f->name_of[path]] : STR(""), f->own_now[path],
			 ncallees + (f->tree.paths[path].lost_now != 0));
		if (f->tree.paths[path].lost_now) {
			vec_push(&left, path);
			vec_push(&left, NONE);
		}
		for (uint32_t i = ncallees; i-- > 0;)
			vec_push(&left, c.paths[c.first[path] + i]);
	}
	vec_release(&left);
	arena_release(&scratch);
}
