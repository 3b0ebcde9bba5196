#include "server/routes.h"

#include <time.h>

#include "base/path.h"
#include "server/cors.h"
#include "server/gate.h"
#include "server/log.h"

enum { MAX_LOGGED_URI = 2000 };

const struct route routes[] = {
#define ROUTE(method, path, role, handler, help) { #method, path, ROLE_##role, handler, help },
#include "server/routes.def"
#undef ROUTE
};
const size_t nroutes = sizeof(routes) / sizeof(*routes);

/* ---- which one */

static bool matches(const struct route *r, struct str path, struct str *rest)
{
	struct str own = str_of(r->path);

	if (own.p[own.n - 1] != '*')
		return str_eq(path, own);
	own.n--;
	if (!str_has_prefix(path, own))
		return false;
	*rest = str_from(path, own.n);
	return true;
}

/* NULL: none of that method; *first is then what the path has, or NULL. */
static const struct route *find_route(struct str path, struct str method, struct str *rest,
				      const struct route **first)
{
	if (str_eq(method, STR("HEAD")))
		method = STR("GET");
	*first = NULL;
	for (size_t i = 0; i < nroutes; i++) {
		/* The first path that fits is meant, whatever its methods are. */
		if (*first ? strcmp((*first)->path, routes[i].path) != 0
			   : !matches(&routes[i], path, rest))
			continue;
		if (!*first)
			*first = &routes[i];
		if (str_eq(method, str_of(routes[i].method)))
			return &routes[i];
	}
	return NULL;
}

/* "GET, HEAD, POST" */
static const char *allowed_methods(struct arena *a, const char *path)
{
	struct buf text = { 0 };
	const char *copy;

	for (size_t i = 0; i < nroutes; i++) {
		if (strcmp(routes[i].path, path) != 0)
			continue;
		buf_printf(&text, "%s%s", text.n ? ", " : "", routes[i].method);
		if (strcmp(routes[i].method, "GET") == 0)
			buf_puts(&text, ", HEAD");
	}
	copy = str_dup(a, buf_view(&text));
	buf_release(&text);
	return copy;
}

/* As profefe: without "//", ".." and a slash at its end. */
static struct str clean_path(struct arena *a, struct str path)
{
	struct buf out = { 0 };
	struct str copy;

	path_clean(&out, path);
	copy = (struct str){ str_dup(a, buf_view(&out)), out.n };
	buf_release(&out);
	return copy;
}

/* Where the specification has them: /api/v1/top is /api/1/top. */
static struct str plain_path(struct arena *a, struct str path)
{
	static const struct str v1 = { "/api/v1/", 8 };
	struct buf out = { 0 };

	if (!str_has_prefix(path, v1))
		return path;
	buf_printf(&out, "/api/1/%.*s", STR_ARG(str_from(path, v1.n)));
	path = (struct str){ str_dup(a, buf_view(&out)), out.n };
	buf_release(&out);
	return path;
}

/* ---- the access log */

static void log_call(const struct http_call *h, const struct http_sent *sent)
{
	const struct visit *v = h->user;
	size_t uri_bytes = h->target.raw.n < MAX_LOGGED_URI ? h->target.raw.n : MAX_LOGGED_URI;
	struct buf line = { 0 };
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	log_begin(&line);
	log_put(&line, "method", h->method);
	log_put(&line, "uri", (struct str){ h->target.raw.p, uri_bytes });
	buf_printf(&line, " code=%d bytes=%zu rtime=%.6f ip=%s", sent->status, sent->body_bytes,
		   (double)((int64_t)t.tv_sec * 1000000000 + t.tv_nsec - h->start_ns) / 1e9,
		   h->peer);
	if (v && v->who.n)
		log_put(&line, "user", v->who);
	if (!sent->is_complete)
		buf_puts(&line, " gone=1");
	log_write(&line);
}

/* ---- what http/server.h calls */

static void reply_no_route(struct call *c, struct str path, const struct route *first)
{
	const char *methods = first ? allowed_methods(c->arena, first->path) : "";

	if (first && cors_answer(c, path, methods))
		return;
	if (first) {
		http_reply_header(c->reply, "Allow", methods);
		reply_error(c, 405, "method not allowed");
	} else if (str_has_prefix(path, STR("/api/"))) {
		reply_error(c, 404, "nothing found");
	} else {
		reply_text(c, 404, "404 page not found\n");
	}
}

size_t routes_admit(void *server, struct http_call *http, struct http_reply *reply)
{
	struct call c = { .server = server, .http = http, .reply = reply, .arena = &http->arena };
	struct str path = clean_path(&http->arena, http->target.path);
	struct visit *v = arena_new(&http->arena, struct visit);
	const struct route *first;

	http->user = v;
	v->who = STR("");
	v->route = find_route(path, http->method, &v->rest, &first);
	if (!first)
		v->route =
			find_route(plain_path(&http->arena, path), http->method, &v->rest, &first);
	cors_put_headers(&c, path);
	if (v->route)
		return gate_admit(&c);
	reply_no_route(&c, path, first);
	return 0;
}

void routes_handle(void *server, struct http_call *http, struct http_reply *reply)
{
	const struct visit *v = http->user;
	struct call c = { .server = server,
			  .http = http,
			  .reply = reply,
			  .arena = &http->arena,
			  .rest = v->rest };

	if (gate_enter(&c))
		v->route->run(&c);
	gate_leave(&c);
}

void routes_done(void *server, struct http_call *http, const struct http_sent *sent)
{
	struct server *s = server;

	if (http->method.n && s->options->access_log)
		log_call(http, sent);
	gate_done(s, http, sent);
}
