/* tags.c - how much of the profile has which label: -tags. */
#include "report/report.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/unit.h"
#include "base/vec.h"

struct tag_row {
	uint32_t key, name; /* strings */
	int64_t value;
};

struct tag_table {
	vec(struct tag_row) rows;
	struct map map;
	uint64_t seed;
};

static bool same_row(const void *ctx, uint32_t index)
{
	const struct tag_table *t = ((const void *const *)ctx)[0];
	const struct tag_row *want = ((const void *const *)ctx)[1], *r = &t->rows.at[index];

	return r->key == want->key && r->name == want->name;
}

static void add_tag(struct tag_table *t, uint32_t key, uint32_t name, int64_t v)
{
	struct tag_row row = { key, name, 0 };
	const void *ctx[2] = { t, &row };
	uint64_t hash = hash_mix(t->seed, (uint64_t)key << 32 | name);
	uint32_t at = map_put(&t->map, hash, t->rows.n, same_row, ctx);

	if (at == t->rows.n)
		vec_push(&t->rows, row);
	t->rows.at[at].value = int_add(t->rows.at[at].value, v);
}

static uint32_t number_name(struct report_run *r, const struct label *l)
{
	r->text->n = 0;
	unit_label(r->text, l->number, label_unit(r->p, r->params->units, l->key), r->params->unit);
	return strings_add(r->p->strings, buf_view(r->text));
}

static void collect(struct report_run *r, struct tag_table *t)
{
	const struct profile *p = r->p;
	int64_t *weights = arena_many(r->a, p->nlabel_sets, int64_t);
	bool *is_used = arena_many(r->a, p->nlabel_sets, bool);

	for (uint32_t i = 0; i < p->nsamples; i++) {
		const struct sample *s = &p->samples[i];

		weights[s->labels] =
			int_add(weights[s->labels], sample_values(p, s)[r->params->value]);
		is_used[s->labels] = true;
	}
	for (uint32_t set = 0; set < p->nlabel_sets; set++) {
		const struct label_set *s = &p->label_sets[set];
		const struct label *l = set_labels(p, set);

		for (uint32_t i = 0; is_used[set] && i < s->nstrings + s->nnumbers; i++)
			add_tag(t, l[i].key, i < s->nstrings ? l[i].text : number_name(r, &l[i]),
				weights[set]);
	}
}

static int compare_rows(const void *x, const void *y, void *ctx)
{
	const struct tag_row *a = x, *b = y;
	const struct profile *p = ctx;
	int64_t v = int_abs(a->value), w = int_abs(b->value);

	if (a->key != b->key)
		return str_cmp(profile_str(p, a->key), profile_str(p, b->key));
	if (v != w)
		return v > w ? -1 : 1;
	return str_cmp(profile_str(p, a->name), profile_str(p, b->name));
}

/* A line: two cells that are aligned to the right, and the rest. */
struct tag_line {
	struct str cell[2], rest;
};

typedef vec(struct tag_line) tag_lines;

static struct str keep_text(struct arena *a, struct buf *text)
{
	struct str s = { arena_copy(a, text->p, text->n), text->n };

	text->n = 0;
	return s;
}

static struct str text_copy(struct arena *a, struct str s)
{
	return (struct str){ arena_copy(a, s.p, s.n), s.n };
}

static void total_line(struct report_run *r, tag_lines *lines, struct buf *text, uint32_t key,
		       int64_t total)
{
	struct tag_line l = { 0 };

	buf_str(text, profile_str(r->p, key));
	buf_char(text, ':');
	l.cell[0] = keep_text(r->a, text);
	buf_puts(text, " Total ");
	report_value(text, r, total);
	buf_puts(text, " of ");
	report_value(text, r, r->params->total);
	if (r->params->total > 0) {
		buf_puts(text, " (");
		report_percent(text, r, total);
		buf_char(text, ')');
	}
	l.rest = keep_text(r->a, text);
	vec_push(lines, l);
}

static void value_line(struct report_run *r, tag_lines *lines, struct buf *text,
		       const struct tag_row *row)
{
	struct tag_line l = { .cell[0] = text_copy(r->a, STR(" ")) };

	report_value(text, r, row->value);
	if (r->params->total > 0) {
		buf_puts(text, " (");
		report_percent(text, r, row->value);
		buf_char(text, ')');
	}
	buf_char(text, ':');
	l.cell[1] = keep_text(r->a, text);
	buf_char(text, ' ');
	buf_str(text, profile_str(r->p, row->name));
	l.rest = keep_text(r->a, text);
	vec_push(lines, l);
}

/* Width of the column in the run of lines from i on that have it. */
static size_t column_width(const tag_lines *lines, size_t i, int column)
{
	size_t width = 0;

	for (; i < lines->n && lines->at[i].cell[column].p; i++) {
		size_t w = str_width(lines->at[i].cell[column]) + 1;

		width = w > width ? w : width;
	}
	return width;
}

static void write_lines(struct buf *out, const tag_lines *lines)
{
	size_t width[2] = { 0 };

	for (size_t i = 0; i < lines->n; i++) {
		const struct tag_line *l = &lines->at[i];

		for (int c = 0; c < 2; c++) {
			if (i == 0 || !lines->at[i - 1].cell[c].p)
				width[c] = column_width(lines, i, c);
			if (l->cell[c].p)
				buf_pad_left(out, l->cell[c], width[c]);
		}
		buf_str(out, l->rest);
		buf_char(out, '\n');
	}
}

static bool run(struct buf *out, struct report_run *r, struct err *e)
{
	struct tag_table t = { .seed = map_seed() };
	struct buf text = { 0 };
	tag_lines lines = { 0 };

	(void)e;
	collect(r, &t);
	if (t.rows.n)
		qsort_r(t.rows.at, t.rows.n, sizeof(*t.rows.at), compare_rows,
			(void *)(uintptr_t)r->p);
	for (size_t i = 0, end; i < t.rows.n; i = end) {
		int64_t total = 0;

		for (end = i; end < t.rows.n && t.rows.at[end].key == t.rows.at[i].key; end++)
			total = int_add(total, t.rows.at[end].value);
		total_line(r, &lines, &text, t.rows.at[i].key, total);
		for (size_t k = i; k < end; k++)
			value_line(r, &lines, &text, &t.rows.at[k]);
		vec_push(&lines, (struct tag_line){ 0 });
	}
	write_lines(out, &lines);
	vec_release(&lines);
	buf_release(&text);
	vec_release(&t.rows);
	map_release(&t.map);
	return true;
}

const struct report report_tags = {
	.name = "tags",
	.flags = REPORT_NO_STACKS,
	.run = run,
};
