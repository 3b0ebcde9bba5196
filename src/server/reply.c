/* reply.c - the forms that answers have. */
#include <stdarg.h>
#include <stdio.h>

#include "server/connect.h"
#include "server/gate.h"
#include "server/otlp.h"

void reply_as(struct call *c, int status, struct buf *bytes, const char *type)
{
	c->reply->status = status;
	http_content_drop(c->reply->content);
	c->reply->content = http_content_new(bytes, type);
	http_reply_header(c->reply, "Cache-Control", "no-cache");
}

void reply_json(struct call *c, int status, struct buf *json)
{
	reply_as(c, status, json, "application/json");
}

void reply_text(struct call *c, int status, const char *text)
{
	struct buf bytes = { 0 };

	buf_puts(&bytes, text);
	reply_as(c, status, &bytes, "text/plain; charset=utf-8");
}

/* Names of services are any bytes. */
static const char *header_text(struct arena *a, struct str text)
{
	char *copy = str_dup(a, text);

	for (char *p = copy; p < copy + text.n; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return copy;
}

void reply_left_out(struct call *c, const struct store_left_out *x)
{
	static const char name[] = "X-Kiln-Left-Out";

	for (size_t i = 0; i < c->reply->nheaders; i++)
		if (c->reply->headers[i][0] == name)
			return;
	if (x->why.n)
		http_reply_header(c->reply, name, header_text(c->arena, x->why));
}

/* `go tool pprof` shows an error's text only if it says that it is meant for it and is plain text.
 * Nothing tells it from other programs in Go, which read the same JSON whatever its type. */
static bool is_pprof(const struct call *c)
{
	struct str agent = http_call_header(c->http, "User-Agent");

	return c->gives_profile && (str_has_prefix(agent, STR("Go-http-client/")) ||
				    str_has_prefix(agent, STR("kiln")));
}

/* Somebody at a browser, who asked for a page. */
static bool is_person(const struct call *c)
{
	const struct visit *v = c->http->user;

	return !(v->route && str_has_prefix(str_of(v->route->path), STR("/api/"))) &&
	       str_contains(http_call_header(c->http, "Accept"), STR("text/html"));
}

static void say_as_page(struct call *c, int status, struct str text)
{
	struct buf html = { 0 };

	buf_puts(&html, "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
			"<meta name=\"color-scheme\" content=\"light dark\"><title>kiln</title>\n");
	buf_printf(&html, "<main><h1>%s</h1>\n<p>",
		   status == 401 ? "Log in" : "This cannot be shown");
	escape_html(&html, text);
	buf_puts(&html, "</p>\n");
	if (status == 401)
		buf_puts(&html, "<p>A token goes where the browser asks for the password; any user "
				"name will do. <a href=\"\">Try again</a></p>\n");
	buf_puts(&html, "</main></html>\n");
	reply_as(c, status, &html, "text/html; charset=utf-8");
}

static void say_as_profefe(struct call *c, int status, struct str text)
{
	struct buf json = { 0 };

	buf_printf(&json, "{\"code\":%d,\"error\":", status);
	json_put(&json, text);
	buf_puts(&json, "}\n");
	if (is_pprof(c)) {
		http_reply_header(c->reply, "X-Go-Pprof", "1");
		reply_as(c, status, &json, "text/plain; charset=utf-8");
	} else {
		reply_json(c, status, &json);
	}
}

/* Errors as a route's clients understand them. */
static const struct error_form {
	const char *prefix; /* of the route's path */
	void (*say)(struct call *c, int status, struct str text);
} error_forms[] = {
	{ "/push.v1.", connect_say },	{ "/querier.v1.", connect_say }, { "/ingest", connect_say },
	{ "/pyroscope/", connect_say }, { "/v1development/", otlp_say },
};

static void say(struct call *c, int status, struct str text)
{
	const struct visit *v = c->http->user;
	struct str path = str_of(v->route ? v->route->path : "");

	for (size_t i = 0; i < sizeof(error_forms) / sizeof(*error_forms); i++)
		if (str_has_prefix(path, str_of(error_forms[i].prefix))) {
			error_forms[i].say(c, status, text);
			return;
		}
	if (is_person(c))
		say_as_page(c, status, text);
	else
		say_as_profefe(c, status, text);
}

void reply_refused(struct call *c, int status, const char *text)
{
	char all[1200];

	if (c->part)
		snprintf(all, sizeof(all), "%.200s: %.990s", c->part, text);
	say(c, status, str_of(c->part ? all : text));
}

void reply_error(struct call *c, int status, const char *fmt, ...)
{
	char text[1000];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	gate_count_service(c, status < 500 ? "format" : "error", text);
	reply_refused(c, status, text);
}

static int status_of(const struct err *e)
{
	switch (e->kind) {
	case ERR_NOTFOUND:
		return 404;
	case ERR_LIMIT:
		return 429;
	case ERR_IO:
		return 500;
	case ERR_NONE:
	case ERR_USAGE:
	case ERR_FORMAT:
	case ERR_UNRECOGNIZED:
		break;
	}
	return 400;
}

static int limit_status(struct str limit)
{
	static const struct {
		const char *limit;
		int status;
	} known[] = {
		{ "max-memory", 503 },	     { "max-disk", 507 },   { "min-free", 507 },
		{ "max-debuginfo", 413 },    { "max-labels", 422 }, { "max-label-bytes", 422 },
		{ "request-profiles", 413 }, { "utf-8", 400 },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (str_eq(limit, str_of(known[i].limit)))
			return known[i].status;
	return 429;
}

/* "limit: why" */
static void reply_limit(struct call *c, const struct err *e)
{
	struct str why = str_of(e->text), limit = str_cut(&why, ':');
	int status = limit_status(limit);

	if (!why.n)
		limit = STR("store");
	why = str_trim(why.n ? why : str_of(e->text));
	gate_refuse(c, status, str_dup(c->arena, limit), "%.*s", STR_ARG(why));
}

void reply_failure(struct call *c, const struct err *e)
{
	if (e->kind == ERR_LIMIT)
		reply_limit(c, e);
	else if (e->kind == ERR_IO && strstr(e->text, "disk is full"))
		gate_refuse(c, 507, "disk", "%s", e->text);
	else
		reply_error(c, status_of(e), "%s", e->text);
}

void reply_profile(struct call *c, const struct profile *p, const char *filename)
{
	struct buf bytes = { 0 };

	profile_encode_unless(&bytes, p, c->http->abandoned);
	reply_file(c, &bytes, filename);
}

void reply_file(struct call *c, struct buf *bytes, const char *filename)
{
	struct buf header = { 0 };

	buf_puts(&header, "attachment; filename=\"");
	for (const char *at = filename; *at; at++)
		buf_char(&header,
			 *at == '"' || *at == '\\' || (unsigned char)*at < ' ' ? '_' : *at);
	buf_char(&header, '"');
	http_reply_header(c->reply, "Content-Disposition", str_dup(c->arena, buf_view(&header)));
	buf_release(&header);
	reply_as(c, 200, bytes, "application/octet-stream");
}
