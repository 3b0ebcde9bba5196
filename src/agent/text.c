/* text.c - a record as Go's debug=1 text, which pprof reads too. Go aligns what is printed of
 * functions with its text/tabwriter, and so do we. */
#include "agent/record.h"

#include <stdio.h>
#include <string.h>

#include "agent/label.h"
#include "agent/sort.h"
#include "agent/symbols.h"

enum { TAB = 8, NAME_SIZE = 4096, COLUMNS = 3 };

/* ---- columns */

/* A line of cells; the last one is not padded. */
struct line {
	const char *cells[COLUMNS];
	unsigned n;
};

static size_t width_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80; /* UTF-8: one for each character */
	return n;
}

/* A column is as wide as its widest cell among the lines around that have it too. */
static size_t column_width(const struct line *lines, size_t n, size_t at, unsigned column)
{
	size_t widest = 0;

	while (at > 0 && lines[at - 1].n > column + 1)
		at--;
	for (; at < n && lines[at].n > column + 1; at++) {
		size_t width = width_of(lines[at].cells[column]);

		widest = width > widest ? width : widest;
	}
	return (widest + TAB) / TAB * TAB;
}

/* Widths are kept from line to line: they change only where lines have more or less cells. */
static void write_lines(struct out *o, const struct line *lines, size_t n)
{
	size_t widths[COLUMNS] = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (i == 0 || lines[i].n != lines[i - 1].n)
			for (unsigned c = 0; c < COLUMNS; c++)
				widths[c] = column_width(lines, n, i, c);
		out_text(o, "#\t");
		for (unsigned c = 0; c < lines[i].n; c++) {
			size_t width = width_of(lines[i].cells[c]);

			out_text(o, lines[i].cells[c]);
			for (; c + 1 < lines[i].n && width < widths[c];
			     width = width / TAB * TAB + TAB)
				out_text(o, "\t");
		}
		out_text(o, "\n");
	}
}

/* ---- stacks */

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static const char *keep(struct region *r, const char *s)
{
	char *kept = region_text(r, s, strlen(s));

	return kept ? kept : "";
}

static void describe_code(struct region *memory, struct line *line, frame_t f)
{
	const struct module *m = frame_module(f) ? module_get(frame_module(f)) : NULL;
	char name[NAME_SIZE], cell[NAME_SIZE + 32];
	uint64_t offset = f & FRAME_OFFSET;

	snprintf(cell, sizeof(cell), "%#lx", (unsigned long)frame_address(f));
	line->cells[line->n++] = keep(memory, cell);
	if (!symbol_name(f, name, sizeof(name), &offset)) {
		if (!m)
			return;
		snprintf(name, sizeof(name), "%s", file_name(m->path));
	}
	snprintf(cell, sizeof(cell), "%s+%#lx", name, (unsigned long)offset);
	line->cells[line->n++] = keep(memory, cell);
	line->cells[line->n++] = m ? m->path : "";
}

void record_write_stack(struct out *o, const frame_t *frames, uint32_t n)
{
	struct region memory = { 0 };
	struct line *lines = region_alloc(&memory, (n + 1) * sizeof(*lines));

	if (!lines) {
		o->has_failed = true;
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		const char *special = frame_special_name(frames[i]);

		if (special)
			lines[i] = (struct line){ { "0x0", special }, 2 };
		else
			describe_code(&memory, &lines[i], frame_again(frames[i]));
	}
	if (n == 0)
		lines[n++] = (struct line){ { "0x0" }, 1 };
	write_lines(o, lines, n);
	region_release(&memory);
}

/* ---- labels, quoted as Go does */

static void write_quoted(struct out *o, const char *s)
{
	static const char plain[] = "\a\b\f\n\r\t\v\"\\", names[] = "abfnrtv\"\\";

	out_text(o, "\"");
	for (; *s; s++) {
		const char *escape = strchr(plain, *s);

		if (escape)
			out_format(o, "\\%c", names[escape - plain]);
		else if ((unsigned char)*s < ' ' || *s == 0x7f)
			out_format(o, "\\x%02x", (unsigned)(unsigned char)*s);
		else
			out_add(o, s, 1);
	}
	out_text(o, "\"");
}

static void write_label(struct out *o, bool *has_any, const char *key, const char *value)
{
	out_text(o, *has_any ? ", " : "# labels: {");
	*has_any = true;
	write_quoted(o, key);
	out_text(o, ":");
	write_quoted(o, value);
}

void record_write_labels(struct out *o, const struct record_row *row)
{
	uint32_t n = labels_count(row->labels);
	bool has_any = false;
	char number[32];

	for (uint32_t i = 0; i < n; i++) {
		struct label l = labels_at(row->labels, i);

		write_label(o, &has_any, l.key, l.value);
	}
	for (uint32_t i = 0; i < row->ntags; i++) {
		const struct tag *t = &row->tags[i];

		snprintf(number, sizeof(number), "%lld", (long long)t->number);
		write_label(o, &has_any, t->key, t->text ? t->text : number);
	}
	if (has_any)
		out_text(o, "}\n");
}

/* ---- all of it */

struct counted {
	const struct record_row *row;
	int64_t count;
};

/* The largest first, then by address, or output would depend on the order of threads. */
static int compare(const void *a, const void *b)
{
	const struct counted *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	for (uint32_t i = 0; i < x->row->nframes && i < y->row->nframes; i++)
		if (x->row->frames[i] != y->row->frames[i])
			return x->row->frames[i] < y->row->frames[i] ? -1 : 1;
	if (x->row->nframes != y->row->nframes)
		return x->row->nframes < y->row->nframes ? -1 : 1;
	return x->row->labels < y->row->labels ? -1 : x->row->labels > y->row->labels;
}

void record_write_addresses(struct out *o, const struct record_row *row)
{
	out_text(o, "@");
	for (uint32_t i = 0; i < row->nframes; i++)
		if (!frame_special_name(row->frames[i]))
			out_format(o, " %#lx", (unsigned long)frame_address(row->frames[i]) + 1);
	out_text(o, "\n");
}

static void write_rows(struct out *o, struct counted *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		out_format(o, "%lld ", (long long)rows[i].count);
		record_write_addresses(o, rows[i].row);
		record_write_labels(o, rows[i].row);
		record_write_stack(o, rows[i].row->frames, rows[i].row->nframes);
		out_text(o, "\n");
	}
}

void record_write_text(struct out *o, const struct agent_profile *p, struct record *r, int debug)
{
	struct region memory = { 0 };
	struct counted *rows;
	struct joined j;
	int64_t total = 0;

	(void)debug;
	rows = record_join(&memory, r, &j) ? region_alloc(&memory, (j.n + 1) * sizeof(*rows))
					   : NULL;
	if (!rows) {
		o->has_failed = true;
		region_release(&memory);
		return;
	}
	for (size_t i = 0; i < j.n; i++) {
		rows[i] = (struct counted){ &r->rows[j.rows[i]], j.values[i][0] };
		total += rows[i].count;
	}
	sort(rows, j.n, sizeof(*rows), compare);
	out_format(o, "%s profile: total %lld\n", p->name, (long long)total);
	write_rows(o, rows, j.n);
	region_release(&memory);
}
