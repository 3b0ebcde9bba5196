/* list.c - the source lines of functions with their weights: -list. */
#include "report/report.h"

#include <stdlib.h>

#include "base/vec.h"
#include "report/sources.h"

/* Lines shown before the first and after the last one that has a weight. */
#define MARGIN 5

/* A node whose function was asked for. */
struct match {
	struct str name, file;
	const struct node *node;
};

struct matches {
	struct match *at;
	size_t n;
};

static int by_name_file_line(const void *a, const void *b)
{
	const struct match *x = a, *y = b;
	int64_t line_x = x->node->info.line, line_y = y->node->info.line;
	int order = str_cmp(x->name, y->name);

	if (order == 0)
		order = str_cmp(x->file, y->file);
	return order ? order : (line_x > line_y) - (line_x < line_y);
}

static struct matches find_matches(struct report_run *r)
{
	enum { UNKNOWN, YES, NO };
	unsigned char *verdicts = arena_alloc(r->a, r->p->strings->n);
	vec(struct match) matches = { 0 };
	size_t n;

	for (uint32_t i = 0; i < r->g.norder; i++) {
		const struct node *node = &r->g.nodes[r->g.order[i]];
		struct match m = { profile_str(r->p, node->info.name),
				   profile_str(r->p, node->info.file), node };
		unsigned char *verdict = &verdicts[node->info.name];

		if (*verdict == UNKNOWN)
			*verdict = regex_match(r->params->regex, m.name) ? YES : NO;
		if (*verdict == YES)
			vec_push(&matches, m);
	}
	if (matches.n)
		qsort(matches.at, matches.n, sizeof(*matches.at), by_name_file_line);
	n = matches.n;
	return (struct matches){ vec_adopt(r->a, &matches), n };
}

static void value_cell(struct buf *out, const struct report_run *r, int64_t v)
{
	char room[64];
	struct buf text = { .p = room, .cap = sizeof(room) };

	report_value(&text, r, v);
	buf_pad_left(out, buf_view(&text), 10);
}

static void value_or_dot(struct buf *out, const struct report_run *r, int64_t v)
{
	if (v)
		value_cell(out, r, v);
	else
		buf_puts(out, "         .");
}

/* Sums are plain: -mean does not divide here. */
static void write_lines(struct buf *out, const struct report_run *r, const struct source_file *f,
			const struct matches *routine)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	size_t k = 0;

	for (size_t i = 0; i < routine->n; i++) {
		const struct node_info *info = &routine->at[i].node->info;
		int64_t start = info->start_line ? info->start_line : int_add(info->line, -MARGIN);
		int64_t end = int_add(info->line, MARGIN);

		first = start < first ? start : first;
		last = end > last ? end : last;
	}
	first = first < 1 ? 1 : first;
	for (int64_t line = first; line <= last && (uint64_t)line <= f->nlines; line++) {
		int64_t flat = 0, cum = 0;

		while (k < routine->n && routine->at[k].node->info.line < line)
			k++;
		for (; k < routine->n && routine->at[k].node->info.line == line; k++) {
			flat = int_add(flat, routine->at[k].node->flat);
			cum = int_add(cum, routine->at[k].node->cum);
		}
		value_or_dot(out, r, flat);
		buf_char(out, ' ');
		value_or_dot(out, r, cum);
		buf_char(out, ' ');
		buf_int_pad(out, line, 6);
		buf_char(out, ':');
		buf_str(out, f->lines[line - 1]);
		buf_char(out, '\n');
	}
}

/* One function in one file. */
static void write_routine(struct buf *out, const struct report_run *r, struct sources *sources,
			  const struct matches *routine)
{
	const struct match *m = &routine->at[0];
	const struct source *source = sources_find(sources, m->file);
	int64_t flat = 0, cum = 0;

	for (size_t i = 0; i < routine->n; i++) {
		flat = int_add(flat, routine->at[i].node->flat);
		cum = int_add(cum, routine->at[i].node->cum);
	}
	buf_puts(out, "ROUTINE ======================== ");
	buf_str(out, m->name);
	buf_puts(out, " in ");
	buf_str(out, m->file);
	buf_char(out, '\n');
	value_cell(out, r, flat);
	buf_char(out, ' ');
	value_cell(out, r, cum);
	buf_puts(out, " (flat, cum) ");
	report_percent(out, r, cum);
	buf_puts(out, " of Total\n");
	if (source->error.n) {
		buf_puts(out, " Error: ");
		buf_str(out, source->error);
		buf_char(out, '\n');
	} else {
		write_lines(out, r, &source->file, routine);
	}
}

/* Nodes without a file come first among those of their function, and do not count if others have
 * one. */
static void write_matches(struct buf *out, const struct report_run *r, struct sources *sources,
			  const struct matches *m)
{
	size_t end;

	for (size_t i = 0; i < m->n; i = end) {
		uint32_t name = m->at[i].node->info.name, file = m->at[i].node->info.file;

		for (end = i + 1; end < m->n && m->at[end].node->info.name == name &&
				  m->at[end].node->info.file == file;
		     end++)
			;
		if (file) {
			write_routine(out, r, sources, &(struct matches){ m->at + i, end - i });
		} else if (end == m->n || m->at[end].node->info.name != name) {
			buf_puts(out, "No source information for ");
			buf_str(out, m->at[i].name);
			buf_char(out, '\n');
		}
	}
}

static bool run(struct buf *out, struct report_run *r, struct err *e)
{
	struct matches matches = find_matches(r);
	struct sources sources;

	if (!matches.n)
		return err_set(e, ERR_NOTFOUND, "no matches found for regexp: %s",
			       r->params->argument);
	if (!sources_open(&sources, r, e))
		return false;
	buf_puts(out, "Total: ");
	report_value(out, r, r->params->total);
	buf_char(out, '\n');
	write_matches(out, r, &sources, &matches);
	sources_close(&sources);
	return true;
}

const struct report report_list = {
	.name = "list",
	.flags = REPORT_GRAPH | REPORT_NO_EDGES | REPORT_UNTRIMMED | REPORT_LINES | REPORT_OBJECTS |
		 REPORT_OWN_UNITS | REPORT_ONLY_NAMED,
	.run = run,
};
