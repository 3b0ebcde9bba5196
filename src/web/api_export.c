/* api_export.c - files to take away: what is shown, in other programs' formats. */
#include "web/names.h"

#include "web/html.h"

static void attach(struct api_call *q, const char *file, const char *type)
{
	struct buf value = { 0 };

	buf_printf(&value, "attachment; filename=\"%s\"", file);
	http_reply_header(q->reply, "Content-Disposition", str_dup(q->a, buf_view(&value)));
	buf_release(&value);
	q->type = type;
}

bool api_peek(struct api_call *q, struct buf *out, struct err *e)
{
	struct str fn = api_param(q, "fn"), f = api_param(q, "f");
	const char *pattern = ".*";

	if (fn.n)
		pattern = api_quoted(q->a, functions_text(&q->site->functions, q->a, fn));
	else if (f.n)
		pattern = str_dup(q->a, f);
	q->type = "text/plain; charset=utf-8";
	return api_report(q, &q->profile->session, report_find("peek"), pattern, NULL, out, e);
}

bool api_download(struct api_call *q, struct buf *out, struct err *e)
{
	(void)e;
	profile_encode_unless(out, &q->profile->session.profile, q->http->abandoned);
	attach(q, "profile.pb.gz", "application/vnd.google.protobuf+gzip");
	return true;
}

/* ---- a table for spreadsheets */

static void put_cell(struct buf *out, struct str text)
{
	buf_char(out, '"');
	/* Else a spreadsheet may take it for a formula. */
	if (text.n && strchr("=+-@", text.p[0]))
		buf_char(out, '\'');
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '"')
			buf_char(out, '"');
		buf_char(out, text.p[i]);
	}
	buf_char(out, '"');
}

static bool run_csv(struct buf *out, struct report_run *r, struct err *e)
{
	struct str unit = r->sample_unit;

	(void)e;
	buf_printf(out, "function,flat (%.*s),flat%%,cum (%.*s),cum%%\r\n", STR_ARG(unit),
		   STR_ARG(unit));
	for (uint32_t i = 0; i < r->g.norder; i++) {
		const struct node *n = &r->g.nodes[r->g.order[i]];
		double total = (double)r->params->total;

		put_cell(out, n->text);
		buf_printf(out, ",%lld,%.4f,%lld,%.4f\r\n",
			   (long long)report_divided(r, node_flat(n)),
			   total != 0 ? 100 * (double)node_flat(n) / total : 0,
			   (long long)report_divided(r, node_cum(n)),
			   total != 0 ? 100 * (double)node_cum(n) / total : 0);
	}
	return true;
}

static const struct report report_csv = {
	.name = "csv",
	.flags = REPORT_GRAPH | REPORT_ALL_NODES | REPORT_UNTRIMMED | REPORT_NO_EDGES |
		 REPORT_OWN_UNITS,
	.run = run_csv,
};

/* ---- all formats */

#define TEXT "text/plain; charset=utf-8"

static const struct format {
	const char *name, *report, *file, *type;
} formats[] = {
	{ "csv", "", "profile.csv", "text/csv; charset=utf-8" },
	{ "dot", "dot", "profile.dot", "text/vnd.graphviz" },
	{ "html", "html", "profile.html", "text/html; charset=utf-8" },
	{ "folded", "folded", "profile.folded", TEXT },
	{ "pprof", "proto", "profile.pb.gz", "application/vnd.google.protobuf+gzip" },
	{ "raw", "raw", "profile.txt", TEXT },
	{ "speedscope", "speedscope", "profile.speedscope.json", "application/json" },
	{ "svg", "flamegraph", "flamegraph.svg", "image/svg+xml" },
	{ "text", "top", "top.txt", TEXT },
};

bool api_export(struct api_call *q, struct buf *out, struct err *e)
{
	struct str path = q->http->target.path;
	struct str name = str_from(path, str_rfind_char(path, '/') + 1);
	struct html_params html = { q->site->params.c->options.ui_dir, q->profile->name };

	if (str_eq(name, STR("original")))
		return api_download(q, out, e);
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		const struct format *f = &formats[i];

		if (!str_eq(name, str_of(f->name)))
			continue;
		attach(q, f->file, f->type);
		return api_report(q, &q->profile->session,
				  *f->report ? report_find(f->report) : &report_csv, "", &html, out,
				  e);
	}
	q->status = 404;
	return err_set(e, ERR_NOTFOUND, "there is no format %.*s", STR_ARG(name));
}
