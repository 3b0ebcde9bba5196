#include "server/routes.h"

#include "base/path.h"
#include "server/log.h"
#include "server/when.h"

enum { MAX_SMALL_BODY = 64 << 10, MAX_BODY = 64 << 20 };

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

/* ---- the access log */

static void log_call(const struct server *s, const struct call *c, int64_t start)
{
	const struct http_call *h = c->http;
	struct buf line = { 0 };

	if (!s->options->access_log)
		return;
	log_begin(&line);
	log_put(&line, "method", h->method);
	log_put(&line, "uri", h->target.raw);
	buf_printf(&line, " code=%d bytes=%zu rtime=%.6f", c->reply->status,
		   c->reply->content ? http_content_bytes(c->reply->content).n : 0,
		   (double)(time_now() - start) / 1e9);
	if (c->who.n)
		log_put(&line, "user", c->who);
	log_write(&line);
}

/* ---- what http/server.h calls */

static const struct route *open_call(struct call *c, struct server *s, struct http_call *http,
				     struct http_reply *reply)
{
	const struct route *route, *first;
	struct str path = clean_path(&http->arena, http->target.path);

	*c = (struct call){ .server = s, .http = http, .reply = reply, .arena = &http->arena };
	route = find_route(path, http->method, &c->rest, &first);
	if (route)
		return route;
	if (first) {
		http_reply_header(reply, "Allow", allowed_methods(c->arena, first->path));
		reply_error(c, 405, "method not allowed");
	} else if (str_has_prefix(path, STR("/api/"))) {
		reply_error(c, 404, "nothing found");
	} else {
		reply_text(c, 404, "404 page not found\n");
	}
	return NULL;
}

size_t routes_admit(void *server, struct http_call *http, struct http_reply *reply)
{
	int64_t start = time_now();
	struct call c;
	const struct route *route = open_call(&c, server, http, reply);

	if (reply->status)
		log_call(server, &c, start);
	return route && (route->role & ROLE_WRITE) ? MAX_BODY : MAX_SMALL_BODY;
}

void routes_handle(void *server, struct http_call *http, struct http_reply *reply)
{
	int64_t start = time_now();
	struct call c;
	const struct route *route = open_call(&c, server, http, reply);

	if (route)
		route->run(&c);
	log_call(server, &c, start);
}
