/* print.c - a comparison as text, as Markdown, as JSON. */
#include "compare/compare.h"

#include <math.h>

#include "base/int.h"
#include "base/unit.h"
#include "base/utf8.h"

static const char *verdict_text(const struct comparison *c, enum compare_verdict v)
{
	/* A larger share need not be slower: all others may have become faster. */
	bool is_speed = c->params.mode != COMPARE_SHARE && unit_is_time(c->unit);

	switch (v) {
	case VERDICT_UNKNOWN:
		return "unknown";
	case VERDICT_FEW:
		return "not enough samples";
	case VERDICT_SAME:
		return "same";
	case VERDICT_MORE:
		return is_speed ? "slower" : "more";
	case VERDICT_LESS:
		return is_speed ? "faster" : "less";
	}
	return "";
}

/* ---- cells, each cleared first */

static struct str value_cell(struct buf *b, const struct comparison *c, double value)
{
	b->n = 0;
	unit_label(b, int_from_double(round(value)), c->unit, STR("auto"));
	return buf_view(b);
}

static struct str delta_cell(struct buf *b, const struct comparison *c, double value)
{
	int64_t rounded = int_from_double(round(value));

	b->n = 0;
	if (rounded > 0)
		buf_char(b, '+');
	unit_label(b, rounded, c->unit, STR("auto"));
	return buf_view(b);
}

static struct str percent_cell(struct buf *b, double share)
{
	b->n = 0;
	buf_printf(b, "%.2f%%", 100 * share);
	return buf_view(b);
}

/* Shares differ by percentage points, rates by a percentage of the old total. */
static struct str change_cell(struct buf *b, const struct comparison *c, double change)
{
	b->n = 0;
	buf_printf(b, "%+.2f%s", 100 * change, c->params.mode == COMPARE_SHARE ? "pp" : "%");
	return buf_view(b);
}

/* Six decimals of a ratio help nobody, and a factor of a thousand needs none. */
static void put_ratio(struct buf *b, double ratio)
{
	buf_printf(b, ratio < 10 ? "%.2f" : ratio < 1000 ? "%.0f" : "%.0e", ratio);
}

static struct str ratio_cell(struct buf *b, const struct comparison *c,
			     const struct compare_row *row)
{
	b->n = 0;
	if (row->old <= 0) {
		buf_puts(b, "new");
	} else if (row->new <= 0) {
		buf_puts(b, "gone");
	} else {
		buf_puts(b, "x");
		put_ratio(b, row->ratio);
		if (c->has_events) {
			buf_puts(b, " (");
			put_ratio(b, row->ratio_low);
			buf_puts(b, "..");
			put_ratio(b, row->ratio_high);
			buf_puts(b, ")");
		}
	}
	return buf_view(b);
}

/* ---- what text and Markdown say before and after the table */

static const char *mode_suffix(const struct comparison *c)
{
	static const char *const suffixes[] = { "", "/s", "/run" };

	return suffixes[c->params.mode];
}

static void put_side(struct buf *out, const struct comparison *c, const char *name,
		     const struct compare_side *s)
{
	struct buf cell = { 0 };

	buf_printf(out, "%s: ", name);
	buf_str(out, value_cell(&cell, c, s->total));
	if (c->has_events)
		buf_printf(out, ", %.0f samples", s->nevents);
	if (s->nsources > 1)
		buf_printf(out, ", %zu profiles", s->nsources);
	if (s->duration_s > 0) {
		buf_puts(out, ", ");
		unit_label(out, int_from_double(s->duration_s * 1e9), STR("ns"), STR("auto"));
	}
	buf_release(&cell);
}

static void put_total(struct buf *out, const struct comparison *c, const char *separator)
{
	struct buf cell = { 0 };

	buf_printf(out, "%sTotal: ", separator);
	buf_str(out, value_cell(&cell, c, c->total.old));
	buf_printf(out, "%s old, ", mode_suffix(c));
	buf_str(out, value_cell(&cell, c, c->total.new));
	buf_printf(out, "%s new, ", mode_suffix(c));
	buf_str(out, ratio_cell(&cell, c, &c->total));
	buf_printf(out, ": %s", verdict_text(c, c->total.verdict));
	buf_release(&cell);
}

static void put_heading(struct buf *out, const struct comparison *c, const char *separator)
{
	static const char *const compared[] = { "shares of the total", "values per second",
						"values per profile" };

	buf_printf(out, "Type: %.*s, %s%s", STR_ARG(c->type),
		   c->params.is_cum ? "cumulative" : "flat", separator);
	put_side(out, c, "Old", &c->old);
	buf_puts(out, separator);
	put_side(out, c, "New", &c->new);
	buf_printf(out, "%sCompared: %s", separator, compared[c->params.mode]);
	if (c->dispersion > 0)
		buf_printf(out, "; profiles of a side vary %.1f times as much as by chance",
			   c->dispersion);
	else if (c->has_events)
		buf_puts(out, "; of one profile a side, only the noise of sampling is known");
	if (!c->has_events)
		buf_printf(
			out,
			"%sNo verdicts: how many samples are behind the values of %.*s cannot be "
			"told from these profiles",
			separator, STR_ARG(c->type));
	if (c->params.mode != COMPARE_SHARE)
		put_total(out, c, separator);
}

static size_t count_verdicts(const struct comparison *c, size_t n, enum compare_verdict v)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += c->rows[i].verdict == v;
	return count;
}

static void put_summary(struct buf *out, const struct comparison *c)
{
	size_t more = count_verdicts(c, c->nrows, VERDICT_MORE);
	size_t less = count_verdicts(c, c->nrows, VERDICT_LESS);
	size_t hidden = c->nrows - c->nshown;
	size_t hidden_changed = c->nchanged - count_verdicts(c, c->nshown, VERDICT_MORE) -
				count_verdicts(c, c->nshown, VERDICT_LESS);

	buf_printf(out, "%zu function%s", c->nrows, c->nrows == 1 ? "" : "s");
	if (c->has_events)
		buf_printf(
			out,
			": %zu %s, %zu %s, %zu same, %zu not enough samples (at most %g%% of the "
			"changes found are chance)",
			more, verdict_text(c, VERDICT_MORE), less, verdict_text(c, VERDICT_LESS),
			count_verdicts(c, c->nrows, VERDICT_SAME),
			count_verdicts(c, c->nrows, VERDICT_FEW), 100 * c->params.fdr);
	if (hidden)
		buf_printf(out, "; %zu not shown, %zu of them changed", hidden, hidden_changed);
	buf_char(out, '\n');
}

/* ---- text */

static void put_text_row(struct buf *out, const struct comparison *c, const struct compare_row *row,
			 struct buf *cell)
{
	buf_pad_left(out, value_cell(cell, c, row->old), 10);
	buf_pad_left(out, percent_cell(cell, row->old_share), 8);
	buf_pad_left(out, value_cell(cell, c, row->new), 11);
	buf_pad_left(out, percent_cell(cell, row->new_share), 8);
	buf_pad_left(out, delta_cell(cell, c, row->new - row->old), 11);
	buf_pad_left(out, change_cell(cell, c, row->change), 10);
	buf_puts(out, "  ");
	buf_pad_right(out, ratio_cell(cell, c, row), 19);
	buf_puts(out, "  ");
	buf_pad_right(out, str_of(verdict_text(c, row->verdict)), 18);
	buf_puts(out, "  ");
	buf_str(out, row->name);
	buf_char(out, '\n');
}

static struct str title_cell(struct buf *b, const struct comparison *c, const char *title)
{
	b->n = 0;
	buf_printf(b, "%s%s", title, mode_suffix(c));
	return buf_view(b);
}

void compare_text(struct buf *out, const struct comparison *c)
{
	struct buf cell = { 0 };

	put_heading(out, c, "\n");
	buf_char(out, '\n');
	buf_pad_left(out, title_cell(&cell, c, "old"), 10);
	buf_puts(out, "    old%");
	buf_pad_left(out, title_cell(&cell, c, "new"), 11);
	buf_printf(out, "    new%%      delta    change  %-19s  %-18s  function\n", "ratio (95%)",
		   "verdict");
	for (size_t i = 0; i < c->nshown; i++)
		put_text_row(out, c, &c->rows[i], &cell);
	put_summary(out, c);
	buf_release(&cell);
}

/* ---- Markdown */

/* Inside <code>, which keeps "@plt" from being a person and "#1" an issue. Everything else that
 * means something to Markdown or HTML is escaped; line ends would end the table. */
static void put_markdown_code(struct buf *out, struct str text)
{
	buf_puts(out, "<code>");
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (c == '<')
			buf_puts(out, "&lt;");
		else if (c == '>')
			buf_puts(out, "&gt;");
		else if (c == '&')
			buf_puts(out, "&amp;");
		else if (c == ':')
			buf_puts(out, "&#58;"); /* or http: would become a link */
		else if ((unsigned char)c < ' ')
			buf_char(out, ' ');
		else if (c && strchr("\\`*_[]~|$!", c))
			buf_printf(out, "\\%c", c);
		else
			buf_char(out, c);
	}
	buf_puts(out, "</code>");
}

static void put_markdown_cell(struct buf *out, struct str text)
{
	buf_str(out, text);
	buf_puts(out, " | ");
}

static void put_markdown_row(struct buf *out, const struct comparison *c,
			     const struct compare_row *row, struct buf *cell)
{
	const char *strong = row->is_over ? "**" : "";

	buf_puts(out, "| ");
	put_markdown_code(out, row->name);
	buf_puts(out, " | ");
	put_markdown_cell(out, value_cell(cell, c, row->old));
	put_markdown_cell(out, percent_cell(cell, row->old_share));
	put_markdown_cell(out, value_cell(cell, c, row->new));
	put_markdown_cell(out, percent_cell(cell, row->new_share));
	put_markdown_cell(out, delta_cell(cell, c, row->new - row->old));
	put_markdown_cell(out, change_cell(cell, c, row->change));
	put_markdown_cell(out, ratio_cell(cell, c, row));
	buf_printf(out, "%s%s%s |\n", strong, verdict_text(c, row->verdict), strong);
}

void compare_markdown(struct buf *out, const struct comparison *c)
{
	struct buf cell = { 0 };

	put_heading(out, c, "  \n"); /* two blanks are a line break */
	buf_puts(out, "\n\n| function | ");
	put_markdown_cell(out, title_cell(&cell, c, "old"));
	buf_puts(out, "old% | ");
	put_markdown_cell(out, title_cell(&cell, c, "new"));
	buf_puts(out, "new% | delta | change | ratio (95%) | verdict |\n"
		      "|---|--:|--:|--:|--:|--:|--:|:--|:--|\n");
	for (size_t i = 0; i < c->nshown; i++)
		put_markdown_row(out, c, &c->rows[i], &cell);
	buf_char(out, '\n');
	put_summary(out, c);
	buf_release(&cell);
}

/* ---- JSON */

static void put_json_string(struct buf *out, struct str s)
{
	buf_char(out, '"');
	while (s.n) {
		uint32_t rune;
		size_t n = utf8_decode(s, &rune);

		if (rune == '"' || rune == '\\')
			buf_printf(out, "\\%c", (char)rune);
		else if (rune < ' ' || (rune == UTF8_INVALID && n == 1))
			buf_printf(out, "\\u%04x", (unsigned)rune);
		else
			buf_add(out, s.p, n);
		s = str_from(s, n);
	}
	buf_char(out, '"');
}

/* There is no infinity in JSON. */
static void put_json_number(struct buf *out, const char *name, double v)
{
	if (isfinite(v))
		buf_printf(out, "\"%s\":%.10g,", name, v);
	else
		buf_printf(out, "\"%s\":null,", name);
}

static void put_json_side(struct buf *out, const struct comparison *c, const char *name,
			  const struct compare_side *s)
{
	buf_printf(out, "\"%s\":{", name);
	put_json_number(out, "total", s->total);
	put_json_number(out, "samples", c->has_events ? s->nevents : INFINITY);
	put_json_number(out, "seconds", s->duration_s);
	buf_printf(out, "\"profiles\":%zu},\n", s->nsources);
}

static void put_json_row(struct buf *out, const struct comparison *c, const struct compare_row *row,
			 bool has_interval)
{
	bool is_tested = row->verdict != VERDICT_UNKNOWN;

	buf_puts(out, "{\"name\":");
	put_json_string(out, row->name);
	buf_char(out, ',');
	put_json_number(out, "old", row->old);
	put_json_number(out, "new", row->new);
	put_json_number(out, "delta", row->new - row->old);
	put_json_number(out, "old_share", row->old_share);
	put_json_number(out, "new_share", row->new_share);
	put_json_number(out, "change", row->change);
	put_json_number(out, "ratio", row->ratio);
	put_json_number(out, "ratio_low", has_interval ? row->ratio_low : INFINITY);
	put_json_number(out, "ratio_high", has_interval ? row->ratio_high : INFINITY);
	put_json_number(out, "p", is_tested ? row->p : INFINITY);
	put_json_number(out, "q", is_tested ? row->q : INFINITY);
	buf_printf(out, "\"verdict\":\"%s\",\"over_limit\":%s}", verdict_text(c, row->verdict),
		   row->is_over ? "true" : "false");
}

void compare_json(struct buf *out, const struct comparison *c)
{
	static const char *const modes[] = { "share", "per-second", "per-run" };

	buf_puts(out, "{\"type\":");
	put_json_string(out, c->type);
	buf_puts(out, ",\"unit\":");
	put_json_string(out, c->unit);
	buf_printf(out, ",\"measure\":\"%s\",\"compared\":\"%s\",\"fdr\":%g,\n",
		   c->params.is_cum ? "cum" : "flat", modes[c->params.mode], c->params.fdr);
	put_json_side(out, c, "old", &c->old);
	put_json_side(out, c, "new", &c->new);
	put_json_number(out, "dispersion", c->dispersion > 0 ? c->dispersion : INFINITY);
	if (c->params.mode != COMPARE_SHARE) { /* of which all of it is always 1 */
		buf_puts(out, "\n\"total\":");
		put_json_row(out, c, &c->total, c->has_events);
		buf_char(out, ',');
	}
	buf_printf(out, "\n\"functions_in_all\":%zu,\"functions\":[", c->nrows);
	for (size_t i = 0; i < c->nshown; i++) {
		buf_puts(out, i ? ",\n" : "\n");
		put_json_row(out, c, &c->rows[i], c->has_events);
	}
	buf_puts(out, "]}\n");
}

/* ---- the limit */

static void put_over(struct buf *out, const struct comparison *c, const struct compare_row *row)
{
	struct buf cell = { 0 };

	if (!row->is_over)
		return;
	buf_str(out, row->name);
	buf_puts(out, ": ");
	buf_str(out, change_cell(&cell, c, row->change));
	buf_printf(out, " of the %stotal, the limit is %g%%\n",
		   c->params.mode == COMPARE_SHARE ? "" : "old ", 100 * c->params.fail_over);
	buf_release(&cell);
}

void compare_list_over(struct buf *out, const struct comparison *c)
{
	put_over(out, c, &c->total);
	for (size_t i = 0; i < c->nrows; i++)
		put_over(out, c, &c->rows[i]);
}
