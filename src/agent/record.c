#include "agent/record.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/index.h"
#include "agent/sort.h"
#include "agent/stack.h"

enum { ROWS_FIRST = 256 };

static bool make_room(struct record *r)
{
	size_t cap = r->cap ? r->cap * 2 : ROWS_FIRST;
	struct record_row *rows = pages_grow(r->rows, r->cap * sizeof(*rows), cap * sizeof(*rows));

	if (!rows)
		return false;
	r->rows = rows;
	r->cap = cap;
	return true;
}

struct record_row *record_add(struct record *r)
{
	if (r->n == r->cap && (r->n >= UINT32_MAX - 1 || !make_room(r))) {
		r->has_failed = true;
		return NULL;
	}
	r->rows[r->n] = (struct record_row){ 0 };
	return &r->rows[r->n++];
}

struct record_row *record_add_stack(struct record *r, const frame_t *frames, uint32_t n)
{
	frame_t *copy = region_alloc(&r->memory, n * sizeof(*copy));
	struct record_row *row = copy ? record_add(r) : NULL;

	r->has_failed |= !row;
	if (!row)
		return NULL;
	if (n)
		memcpy(copy, frames, n * sizeof(*copy));
	row->frames = copy;
	row->nframes = n;
	return row;
}

static int compare_stacks(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

void record_add_counts(struct record *r, uint32_t *stacks, size_t n)
{
	size_t first = 0;

	sort(stacks, n, sizeof(*stacks), compare_stacks);
	for (size_t i = 1; i <= n; i++) {
		struct record_row *row;

		if (i < n && stacks[i] == stacks[first])
			continue;
		row = record_add(r);
		if (!row)
			return;
		row->frames = stack_frames(stacks[first], &row->nframes);
		row->values[0] = (int64_t)(i - first);
		first = i;
	}
}

void record_comment(struct record *r, const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	out_text(&r->comments, line);
	out_add(&r->comments, "\n", 1);
}

void record_release(struct record *r)
{
	pages_unmap(r->rows, r->cap * sizeof(*r->rows));
	region_release(&r->memory);
	out_release(&r->comments);
	*r = (struct record){ 0 };
}

/* ---- rows that are the same */

static bool is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same_tag(const struct tag *a, const struct tag *b)
{
	if (!is_same_text(a->key, b->key))
		return false;
	return a->is_average || (a->number == b->number && is_same_text(a->text, b->text) &&
				 is_same_text(a->unit, b->unit));
}

static bool is_same_row(const struct record_row *a, const struct record_row *b)
{
	if (a->nframes != b->nframes || a->labels != b->labels || a->ntags != b->ntags)
		return false;
	if (a->frames != b->frames &&
	    memcmp(a->frames, b->frames, a->nframes * sizeof(*a->frames)) != 0)
		return false;
	for (uint32_t i = 0; i < a->ntags; i++)
		if (!is_same_tag(&a->tags[i], &b->tags[i]))
			return false;
	return true;
}

static uint32_t hash_row(const struct record_row *row)
{
	uint32_t h = hash_bytes(row->frames, row->nframes * sizeof(*row->frames)) ^ row->labels;

	for (uint32_t i = 0; i < row->ntags; i++)
		if (!row->tags[i].is_average)
			h ^= hash_number((uint64_t)row->tags[i].number + i);
	return h;
}

/* Which of the joined ones is the same; those->n if none is. */
static size_t find_row(const struct joined *those, const struct index *x,
		       const struct record_row *row, uint32_t hash)
{
	for (struct slot *s = index_first(x, hash); s; s = index_next(x, s))
		if (is_same_row(&those->record->rows[those->rows[s->value - 1]], row))
			return s->value - 1;
	return those->n;
}

static bool join(struct joined *j, struct index *x)
{
	const struct record *r = j->record;

	j->rows = region_alloc(x->memory, (r->n + 1) * sizeof(*j->rows));
	j->values = region_alloc(x->memory, (r->n + 1) * sizeof(*j->values));
	if (!j->rows || !j->values)
		return false;
	for (uint32_t i = 0; i < r->n; i++) {
		uint32_t hash = hash_row(&r->rows[i]);
		size_t to = find_row(j, x, &r->rows[i], hash);

		if (to == j->n) {
			j->rows[j->n++] = i;
			if (!index_add(x, hash, (uint32_t)j->n))
				return false;
		}
		for (unsigned v = 0; v < VALUES_MAX; v++)
			j->values[to][v] += r->rows[i].values[v];
	}
	return true;
}

bool record_join(struct region *memory, const struct record *r, struct joined *j)
{
	struct index x = { .memory = memory };

	*j = (struct joined){ .record = r };
	return join(j, &x);
}

/* ---- difference */

/* A copy of `row`, whose record goes away, without its values. */
static struct record_row *add_copy(struct record *to, const struct record_row *row)
{
	struct record_row *copy = record_add_stack(to, row->frames, row->nframes);
	const frame_t *frames;

	if (!copy)
		return NULL;
	frames = copy->frames;
	*copy = *row;
	copy->frames = frames;
	memset(copy->values, 0, sizeof(copy->values));
	for (uint32_t i = 0; i < copy->ntags; i++)
		if (row->tags[i].text)
			copy->tags[i].text = region_text(&to->memory, row->tags[i].text,
							 strlen(row->tags[i].text));
	return copy;
}

/* Keeps just the rows that stand for others, with their sums. */
static void keep_joined(struct record *r, struct joined *j)
{
	for (uint32_t i = 0; i < j->n; i++) {
		r->rows[i] = r->rows[j->rows[i]];
		memcpy(r->rows[i].values, j->values[i], sizeof(j->values[i]));
		j->rows[i] = i;
	}
	r->n = j->n;
}

static bool subtract(struct record *now, struct region *memory, const struct joined *before)
{
	struct index x = { .memory = memory };
	struct joined j = { .record = now };

	if (!join(&j, &x))
		return false;
	keep_joined(now, &j);
	for (size_t i = 0; i < before->n; i++) {
		const struct record_row *was = &before->record->rows[before->rows[i]];
		size_t same = find_row(&j, &x, was, hash_row(was));
		struct record_row *row = same < j.n ? &now->rows[same] : add_copy(now, was);

		if (!row)
			return false;
		for (unsigned v = 0; v < VALUES_MAX; v++)
			row->values[v] -= before->values[i][v];
	}
	return true;
}

static bool is_zero(const struct record_row *row)
{
	for (unsigned v = 0; v < VALUES_MAX; v++)
		if (row->values[v])
			return false;
	return true;
}

bool record_subtract(struct record *now, const struct record *before)
{
	struct region memory = { 0 };
	struct joined j;
	bool ok = record_join(&memory, before, &j) && subtract(now, &memory, &j);
	size_t n = 0;

	region_release(&memory);
	for (size_t i = 0; i < now->n; i++)
		if (!is_zero(&now->rows[i]))
			now->rows[n++] = now->rows[i];
	now->n = n;
	now->duration = now->time - before->time;
	return ok && !now->has_failed && !before->has_failed;
}
