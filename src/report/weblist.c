/* weblist.c - source with its instructions and their weights, as a page: -weblist. */
#include "report/report.h"

#include "base/escape.h"
#include "base/path.h"
#include "report/annotate.h"
#include "report/sources.h"

#define TAB 8
/* Columns of a line's code, and of one more call that it came through. */
#define CODE_WIDTH 80
#define CODE_INDENT 4

static const char style[] = "body { font-family: sans-serif; }\n"
			    "pre { line-height: 1.3; }\n"
			    ".legend { font-size: 120%; }\n"
			    ".line, .nop, .unimportant { color: #999; }\n"
			    ".inlinesrc { color: #036; }\n"
			    ".livesrc { cursor: pointer; }\n"
			    ".livesrc:hover { background: #eee; }\n"
			    ".asm { color: #060; display: none; }\n"
			    ".asm.open { display: block; }\n";

/* The instructions of a line follow it, and come and go by a click on it. */
static const char script[] = "function pprof_toggle_asm(event) {\n"
			     "  const line = event.target.closest('.livesrc');\n"
			     "  const code = line && line.nextElementSibling;\n"
			     "  if (code && code.classList.contains('asm')) {\n"
			     "    code.classList.toggle('open');\n"
			     "    event.preventDefault();\n"
			     "  }\n"
			     "}\n";

/* A page in the making. */
struct page {
	struct buf *out;
	struct report_run *r;
	struct annotation annotation;
	struct sources sources;
	struct buf text; /* scratch */
};

static void value_cell(struct page *p, int64_t v)
{
	if (v)
		report_value_cell(p->out, p->r, v, 10);
	else
		buf_puts(p->out, "         .");
}

static size_t after_tab(size_t column)
{
	return (column / TAB + 1) * TAB;
}

/* How far the text of a line is from its left end. */
static size_t indentation(struct str line)
{
	size_t column = 0;

	for (size_t i = 0; i < line.n && (line.p[i] == ' ' || line.p[i] == '\t'); i++)
		column = line.p[i] == '\t' ? after_tab(column) : column + 1;
	return column;
}

/* Text without tabs, from `indent` on, filled up to CODE_WIDTH. */
static void code_cell(struct page *p, size_t indent, struct str text)
{
	size_t column = indent;

	p->text.n = 0;
	buf_fill(&p->text, ' ', indent);
	for (size_t i = 0; i < text.n; i++) {
		bool is_continuation = (text.p[i] & 0xc0) == 0x80; /* of a UTF-8 sequence */

		if (text.p[i] == '\t') {
			buf_fill(&p->text, ' ', after_tab(column) - column);
			column = after_tab(column);
		} else {
			buf_char(&p->text, text.p[i]);
			column += !is_continuation;
		}
	}
	if (column < CODE_WIDTH)
		buf_fill(&p->text, ' ', CODE_WIDTH - column);
	escape_html(p->out, buf_view(&p->text));
}

/* "file.c:12", or nothing if the file is not known. */
static void place_cell(struct page *p, const struct source_place *place)
{
	buf_puts(p->out, " <span class=unimportant>");
	if (place->file.n) {
		escape_html(p->out, path_base(place->file));
		buf_char(p->out, ':');
		buf_int(p->out, place->line);
	}
	buf_puts(p->out, "</span>\n");
}

/* False if the file has no such line. */
static bool source_line(struct page *p, struct str file, int64_t line, struct str *text)
{
	const struct source *s = sources_find(&p->sources, file);

	*text = STR("");
	if (line < 1 || (uint64_t)line > s->file.nlines)
		return false;
	*text = s->file.lines[line - 1];
	return true;
}

static bool same_place(const struct source_place *a, const struct source_place *b)
{
	return a->line == b->line && str_eq(a->file, b->file);
}

/* Calls that the instruction before came through already are not shown again. */
static void write_calls(struct page *p, const struct annotated_use *use,
			const struct annotated_use *before, size_t indent)
{
	const struct source_place *calls = p->annotation.calls;
	uint32_t same = 0;

	while (before && same < use->ncalls && same < before->ncalls &&
	       same_place(&calls[use->first_call + same], &calls[before->first_call + same]))
		same++;
	for (uint32_t i = same; i < use->ncalls; i++) {
		const struct source_place *call = &calls[use->first_call + i];
		struct str text;

		source_line(p, call->file, call->line, &text);
		buf_fill(p->out, ' ', 42);
		buf_puts(p->out, "<span class=inlinesrc>");
		code_cell(p, indent + CODE_INDENT * (i + 1), str_trim(text));
		buf_puts(p->out, "</span>");
		place_cell(p, call);
	}
}

static void write_use(struct page *p, const struct annotated_use *use,
		      const struct annotated_use *before, size_t indent)
{
	const struct annotated_instruction *all = p->annotation.instructions;
	const struct annotated_instruction *i = &all[use->instruction];

	if (before &&
	    i->runtime != all[before->instruction].runtime + all[before->instruction].length) {
		buf_fill(p->out, ' ', 37);
		buf_puts(p->out, "\xe2\x8b\xae\n"); /* U+22EE: something is left out */
	}
	write_calls(p, use, before, indent);
	if (!i->text.n)
		return;
	buf_fill(p->out, ' ', 10);
	value_cell(p, i->flat);
	buf_char(p->out, ' ');
	value_cell(p, i->cum);
	buf_printf(p->out, " %8jx: ", (uintmax_t)i->address);
	code_cell(p, indent + CODE_INDENT * (use->ncalls + 1), i->text);
	place_cell(p, &i->place);
}

static bool has_details(const struct page *p, const struct annotated_use *uses, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (uses[i].ncalls || p->annotation.instructions[uses[i].instruction].text.n)
			return true;
	return false;
}

static void write_line(struct page *p, int64_t line, struct str source,
		       const struct annotated_use *uses, size_t n)
{
	bool is_live = has_details(p, uses, n);
	size_t indent = indentation(source);
	int64_t flat = 0, cum = 0;

	for (size_t i = 0; i < n; i++) {
		flat = int_add(flat, p->annotation.instructions[uses[i].instruction].flat);
		cum = int_add(cum, p->annotation.instructions[uses[i].instruction].cum);
	}
	buf_printf(p->out, "\n<span class=line> %6jd</span> <span class=%s>  ", (intmax_t)line,
		   is_live ? "livesrc"
		   : n	   ? "deadsrc"
			   : "nop");
	value_cell(p, flat);
	buf_char(p->out, ' ');
	value_cell(p, cum);
	buf_fill(p->out, ' ', 11);
	escape_html(p->out, source);
	buf_puts(p->out, " </span>");
	if (!is_live)
		return;
	buf_puts(p->out, "<span class=asm>");
	for (size_t i = 0; i < n; i++)
		write_use(p, &uses[i], i ? &uses[i - 1] : NULL, indent);
	buf_puts(p->out, "</span>");
}

static void write_lines(struct page *p, const struct annotated_function *f)
{
	const struct annotated_use *uses = p->annotation.uses;
	size_t at = f->use, end;

	for (int64_t line = f->begin; line < f->end; line++, at = end) {
		struct str source;

		for (end = at; end < f->end_use && uses[end].line == line; end++)
			;
		if (!source_line(p, f->file, line, &source)) {
			if (end == at)
				continue;
			source =
				line ? STR("???") : STR("<instructions with unknown line numbers>");
		}
		write_line(p, line, source, uses + at, end - at);
	}
}

static void write_function(struct page *p, const struct annotated_function *f)
{
	buf_puts(p->out, "<h2>");
	escape_html(p->out, f->name);
	buf_puts(p->out, "</h2><p class=\"filename\">");
	escape_html(p->out, f->file);
	buf_puts(p->out, "</p>\n<pre onClick=\"pprof_toggle_asm(event)\">\n  Total:  ");
	report_value_cell(p->out, p->r, f->flat, 10);
	buf_char(p->out, ' ');
	report_value_cell(p->out, p->r, f->cum, 10);
	buf_puts(p->out, " (flat, cum) ");
	report_percent(p->out, p->r, f->cum);
	write_lines(p, f);
	buf_puts(p->out, "\n</pre>\n");
}

static void write_title(struct page *p, struct str labels, struct str prefix)
{
	while (labels.p) {
		struct str line = str_cut(&labels, '\n');

		if (str_has_prefix(line, prefix)) {
			escape_html(p->out, str_from(line, prefix.n));
			return;
		}
	}
	buf_puts(p->out, "unknown");
}

static void write_head(struct page *p, struct str labels)
{
	buf_puts(p->out, "<!DOCTYPE html>\n<html>\n<head>\n  <meta charset=\"utf-8\">\n  <title>");
	write_title(p, labels, STR("File: "));
	buf_char(p->out, ' ');
	write_title(p, labels, STR("Type: "));
	buf_puts(p->out, "</title>\n  \n  <style type=\"text/css\">\n");
	buf_puts(p->out, style);
	buf_puts(p->out, "</style>\n  <script type=\"text/javascript\">\n");
	buf_puts(p->out, script);
	buf_puts(p->out, "</script>\n</head>\n");
}

static void write_legend(struct page *p, struct str labels)
{
	buf_puts(p->out, "<div class=\"legend\">");
	while (labels.p) {
		escape_html(p->out, str_cut(&labels, '\n'));
		buf_puts(p->out, labels.p ? "<br>\n" : "<br>");
	}
	buf_puts(p->out, "Total: ");
	p->text.n = 0;
	report_value(&p->text, p->r, p->r->params->total);
	escape_html(p->out, buf_view(&p->text));
	buf_puts(p->out, "</div>");
}

static void write_page(struct page *p)
{
	struct buf labels = { 0 };

	report_profile_labels(&labels, p->r);
	write_head(p, buf_view(&labels));
	buf_puts(p->out, "<body>\n\n");
	write_legend(p, buf_view(&labels));
	for (size_t i = 0; i < p->annotation.nfunctions; i++)
		if (p->annotation.functions[i].cum)
			write_function(p, &p->annotation.functions[i]);
	buf_puts(p->out, "\n</body>\n</html>\n");
	buf_release(&labels);
}

static bool run(struct buf *out, struct report_run *r, struct err *e)
{
	struct page p = { .out = out, .r = r };
	bool ok = annotate(r, &(struct annotate_params){ 0 }, &p.annotation, e);

	if (ok && (ok = sources_open(&p.sources, r, e))) {
		write_page(&p);
		sources_close(&p.sources);
	}
	annotation_release(&p.annotation);
	buf_release(&p.text);
	return ok;
}

const struct report report_weblist = {
	.name = "weblist",
	.flags = REPORT_UNTRIMMED | REPORT_ADDRESSES | REPORT_OWN_UNITS,
	.run = run,
};
