/* html.c - the page as one file that needs no server: -html, and export of the page.
 *
 * Modules become one script, in an order in which each comes after those it imports; answers to
 * what the page will ask for first are part of the file. What it asks for later is not there. */
#include "web/html.h"

#include "base/base64.h"
#include "base/version.h"
#include "web/assets.h"
#include "web/bundle.h"
#include "web/names.h"

/* Only this file: no request to anywhere. */
#define POLICY                                                                                   \
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src " \
	"'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "     \
	"form-action 'none'\">\n"

struct page {
	struct buf *out;
	const char *dir; /* of the assets; "": the program's own */
};

/* ---- data */

/* What the page asks for, without `min`, of which a file knows nothing. */
static const struct {
	const char *key, *target;
	api_handler *run;
	bool is_binary;
} requests[] = {
	{ "meta", "/meta", api_meta, false },
	{ "flame", "/flame?min=0.0002", api_flame, true },
	{ "flame?dir=callers", "/flame?min=0.0005&dir=callers", api_flame, true },
	{ "flame?rc=1", "/flame?min=0.0005&rc=1", api_flame, true },
	{ "top", "/top", api_top, false },
	{ "labels", "/labels", api_labels, false },
	{ "configs", "/configs", api_configs, false },
};

static bool put_answer(struct buf *out, struct api_call *q, size_t i, struct err *e)
{
	struct buf answer = { 0 };
	bool ok = http_target_parse(q->a, str_of(requests[i].target), &q->http->target, e) &&
		  requests[i].run(q, &answer, e);

	buf_printf(out, "%s\"%s\":", i ? ",\n" : "", requests[i].key);
	if (ok && requests[i].is_binary) {
		buf_char(out, '"');
		base64_put(out, buf_view(&answer));
		buf_char(out, '"');
	} else if (ok) {
		buf_str(out, buf_view(&answer)); /* escape_json leaves no '<' in it */
	}
	buf_release(&answer);
	return ok;
}

static bool put_data(struct buf *out, struct api_call *q, struct err *e)
{
	bool ok = true;

	buf_puts(out, "window.__KILN_DATA__ = {");
	for (size_t i = 0; ok && i < sizeof(requests) / sizeof(*requests); i++)
		ok = put_answer(out, q, i, e);
	buf_puts(out, "};\n");
	return ok;
}

/* ---- the document */

/* The file that the line takes from static/, as in href="static/app.css"; empty if none. */
static struct str file_of(struct str line)
{
	size_t at = str_find(line, STR("\"static/"));
	struct str name = { 0 };

	if (at == STR_NONE)
		return name;
	name = str_from(line, at + sizeof("\"static/") - 1);
	return str_cut(&name, '"');
}

static void put_style(struct page *p, struct str name)
{
	struct buf text = { 0 };

	bundle_style(&text, p->dir, name);
	buf_puts(p->out, "<style>\n");
	bundle_put_inline(p->out, buf_view(&text));
	buf_puts(p->out, "</style>\n");
	buf_release(&text);
}

/* Scripts go to the end: unlike modules they do not wait for the document. */
static void put_document(struct page *p, struct str index, struct str data)
{
	struct buf scripts = { 0 };

	while (index.n) {
		struct str line = str_cut(&index, '\n');
		struct str name = file_of(line);

		if (str_has_suffix(name, STR(".css"))) {
			put_style(p, name);
		} else if (str_has_suffix(name, STR(".js"))) {
			bundle_script(&scripts, p->dir, name);
		} else if (str_contains(line, STR("</body>"))) {
			buf_puts(p->out, "<script>\n");
			buf_str(p->out, data);
			bundle_put_inline(p->out, buf_view(&scripts));
			buf_puts(p->out, "</script>\n</body>\n");
		} else {
			buf_str(p->out, line);
			buf_char(p->out, '\n');
			if (str_contains(line, STR("<meta charset")))
				buf_puts(p->out, POLICY);
		}
	}
	buf_release(&scripts);
}

/* ---- the report */

/* A site of its own, whose only profile is what the report is given. */
static bool collect_data(struct report_run *r, const struct html_params *params, struct buf *data,
			 struct err *e)
{
	struct command_line line = { .options = analyze_defaults };
	struct site site = { .params = { .c = &line, .version = KILN_VERSION } };
	struct http_call http = { .abandoned = r->params->stop };
	struct http_reply reply = { 0 };
	struct api_call q = { .site = &site,
			      .http = &http,
			      .reply = &reply,
			      .a = r->a,
			      .options = analyze_defaults,
			      .run = r };
	bool ok;

	if (r->p->ntypes)
		line.options.sample_index =
			str_dup(r->a, profile_str(r->p, r->p->types[r->params->value].type));
	q.options.drop_negative = r->params->drop_negative;
	line.options.divide_by = r->params->divide_by;
	functions_init(&site.functions, false);
	profiles_init(&site.profiles, &site.functions);
	q.profile = profiles_lend(&site.profiles, r->p, r->params->threads, params->name,
				  &line.options);
	ok = put_data(data, &q, e);
	buf_release(&q.warnings);
	profiles_drop(&site.profiles, q.profile);
	profiles_release(&site.profiles);
	functions_release(&site.functions);
	arena_release(&http.arena);
	return ok;
}

static bool run_html(struct buf *out, struct report_run *r, struct err *e)
{
	static const struct html_params usual = { "", "profile" };
	const struct html_params *params = r->params->into ? r->params->into : &usual;
	struct page p = { .out = out, .dir = params->dir };
	struct buf index = { 0 }, data = { 0 };
	bool ok = asset_read(&index, params->dir, STR("index.html")) ||
		  err_set(e, ERR_NOTFOUND, "%s/index.html cannot be read", params->dir);

	ok = ok && collect_data(r, params, &data, e);
	if (ok)
		put_document(&p, buf_view(&index), buf_view(&data));
	buf_release(&index);
	buf_release(&data);
	return ok;
}

const struct report report_html = {
	.name = "html",
	.flags = REPORT_ALL_NODES | REPORT_UNTRIMMED | REPORT_PATHS | REPORT_NO_STACKS |
		 REPORT_BINARY,
	.extension = "html",
	.run = run_html,
};
