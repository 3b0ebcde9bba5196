/* route.c - which part of the site answers a request. */
#include "web/site.h"

#include <stdio.h>
#include <time.h>

#include "base/number.h"
#include "web/assets.h"
#include "web/bundle.h"

enum { LOCK_WAIT_NS = 20 * 1000 * 1000, MAX_SMALL_BODY = 64 << 10 };

#define UI STR("/ui/")
#define API STR("api/v1/")
#define STATIC STR("static/")

/* All of them are one file; its scripts know which it is by the address. */
static const char *const pages[] = { "flamegraph", "top",     "tree",	 "sandwich",
				     "graph",	   "peek",    "source",	 "disasm",
				     "labels",	   "compare", "timeline" };

enum {
	PROFILE = 1, /* works on one, or two */
	KEPT = 2,    /* the answer stays the same */
	SUBPATH = 4,
	NAMED = 8,  /* tells of those that it names, if they come from a source */
	LOCAL = 16, /* has to do with this machine, or changes something: not as a part of others */
	SIDES = 32, /* may compare: tb is the time of side a, tm then that of side b */
	FILES = 64, /* shows files, which come and go while a part of others runs */
};

static const struct route {
	const char *path; /* below /ui/; with SUBPATH, what it starts with */
	const char *method;
	api_handler *run;
	unsigned flags;
} routes[] = {
	{ "api/v1/meta", "GET", api_meta, NAMED },
	{ "api/v1/flame", "GET", api_flame, PROFILE | KEPT | SIDES },
	{ "api/v1/top", "GET", api_top, PROFILE | KEPT | SIDES },
	{ "api/v1/search", "GET", api_search, PROFILE | KEPT },
	{ "api/v1/function", "GET", api_function, PROFILE | KEPT },
	{ "api/v1/graph", "GET", api_graph, PROFILE | KEPT },
	{ "api/v1/peek", "GET", api_peek, PROFILE | KEPT },
	{ "api/v1/source", "GET", api_source, PROFILE | KEPT | FILES },
	{ "api/v1/labels", "GET", api_labels, PROFILE | KEPT },
	{ "api/v1/heat", "GET", api_heat, PROFILE | KEPT },
	{ "api/v1/chart", "GET", api_chart, PROFILE },
	{ "api/v1/diff", "GET", api_diff, PROFILE | KEPT | SIDES },
	{ "api/v1/export/", "GET", api_export, PROFILE | SUBPATH },
	{ "download", "GET", api_download, PROFILE },
	{ "api/v1/profiles", "GET", api_profiles, NAMED },
	{ "api/v1/profiles", "POST", api_add_profile, LOCAL },
	{ "api/v1/profiles", "DELETE", api_remove_profile, LOCAL },
	{ "api/v1/subtract", "POST", api_subtract, PROFILE | LOCAL },
	{ "api/v1/configs", "GET", api_configs, 0 },
	{ "api/v1/saveconfig", "POST", api_save_config, LOCAL },
	{ "api/v1/deleteconfig", "POST", api_delete_config, LOCAL },
	{ "api/v1/deleteconfig", "DELETE", api_delete_config, LOCAL },
	{ "saveconfig", "POST", api_save_config, LOCAL },
	{ "deleteconfig", "POST", api_delete_config, LOCAL },
	{ "deleteconfig", "DELETE", api_delete_config, LOCAL },
};

/* ---- replies */

static void reply_bytes(struct http_reply *r, int status, struct buf *bytes, const char *type)
{
	r->status = status;
	r->content = http_content_new(bytes, type);
	http_reply_header(r, "Cache-Control", "no-cache");
}

static void reply_text(struct http_reply *r, int status, const char *text)
{
	struct buf bytes = { 0 };

	buf_printf(&bytes, "%s\n", text);
	reply_bytes(r, status, &bytes, "text/plain; charset=utf-8");
}

static void reply_error(struct http_reply *r, int status, const char *text)
{
	struct buf bytes = { 0 };

	buf_puts(&bytes, "{\"error\":");
	json_put(&bytes, str_of(text));
	buf_puts(&bytes, "}\n");
	reply_bytes(r, status, &bytes, "application/json");
}

/* To a path relative to that of the request: a proxy may have put us anywhere. */
static void redirect(const struct http_call *call, struct http_reply *r, int status, const char *to)
{
	struct buf where = { 0 };
	struct str query = call->target.raw_query;

	buf_puts(&where, to);
	if (query.n) {
		buf_char(&where, '?');
		buf_str(&where, query);
	}
	r->status = status;
	http_reply_header(r, "Location",
			  str_dup(&((struct http_call *)(uintptr_t)call)->arena, buf_view(&where)));
	buf_release(&where);
}

/* From anywhere outside of /ui/. */
static void redirect_to_ui(const struct http_call *call, struct http_reply *r)
{
	struct buf to = { 0 };
	struct str path = call->target.path;

	if (str_eq(path, STR("/ui"))) {
		redirect(call, r, 301, "ui/");
		return;
	}
	for (size_t i = 1; i < path.n; i++)
		if (path.p[i] == '/')
			buf_puts(&to, "../");
	buf_puts(&to, "ui/");
	buf_char(&to, '\0');
	redirect(call, r, 307, to.p);
	buf_release(&to);
}

/* ---- files */

/* What the page starts with comes as one script, so that it need not ask for each of its modules;
 * those who work on it see them as they are. */
static bool read_asset(struct buf *out, const char *dir, struct str name)
{
	if (!*dir && (str_eq(name, STR("app.js")) || str_eq(name, STR("fleet.js"))))
		bundle_script(out, dir, name);
	else if (!*dir && str_has_suffix(name, STR(".css")))
		bundle_style(out, dir, name);
	else
		return asset_read(out, dir, name);
	return out->n;
}

void web_reply_file(struct site *site, struct http_reply *r, struct str name)
{
	const char *dir = site->params.c->options.ui_dir;
	struct buf bytes = { 0 };
	char key[300];

	snprintf(key, sizeof(key), "static/%.*s", STR_ARG(name));
	r->content = *dir ? NULL : answers_find(&site->answers, key);
	if (r->content) {
		r->status = 200;
		http_reply_header(r, "Cache-Control", "no-cache");
	} else if (read_asset(&bytes, dir, name)) {
		reply_bytes(r, 200, &bytes, asset_type(name));
		answers_add(&site->answers, key, r->content);
	} else {
		buf_release(&bytes);
		reply_text(r, 404, "404 page not found");
	}
}

static bool is_page(struct str name)
{
	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
		if (str_eq(name, str_of(pages[i])))
			return true;
	return false;
}

/* ---- the API */

static const struct route *find_route(struct str path, struct str method, bool *has_path)
{
	struct str name = str_eq(method, STR("HEAD")) ? STR("GET") : method;

	*has_path = false;
	for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++) {
		struct str own = str_of(routes[i].path);

		if (!str_eq(path, own) &&
		    !((routes[i].flags & SUBPATH) && str_has_prefix(path, own)))
			continue;
		*has_path = true;
		if (str_eq(name, str_of(routes[i].method)))
			return &routes[i];
	}
	return NULL;
}

/* Everything that an answer depends on. */
static const char *answer_key(struct api_call *q)
{
	const struct http_target *t = &q->http->target;
	struct buf key = { 0 };
	const char *text;

	buf_str(&key, t->path);
	buf_char(&key, '?');
	buf_str(&key, t->raw_query);
	text = str_dup(q->a, buf_view(&key));
	buf_release(&key);
	return text;
}

/* Another may have made it while we waited for the profile. */
static bool reply_kept(struct api_call *q)
{
	struct http_reply *r = q->reply;

	if (r->status)
		return true;
	r->content = q->key ? answers_find(&q->site->answers, q->key) : NULL;
	if (!r->content)
		return false;
	r->status = 200;
	http_reply_header(r, "Cache-Control", "no-cache");
	return true;
}

/* The profile that a parameter names, held. */
static bool open_profile(struct api_call *q, const char *param, struct loaded **out, struct err *e)
{
	struct str text = api_param(q, param);
	uint64_t id = 0;

	if (q->site->source.load)
		return part_open(q, text, out, e);
	if (text.n && (number_parse_uint(text, 10, &id) != NUMBER_OK || id > UINT32_MAX))
		id = UINT32_MAX;
	*out = profiles_hold(&q->site->profiles, (uint32_t)id);
	if (*out)
		return true;
	q->status = 404;
	return err_set(e, ERR_NOTFOUND, "there is no profile %.*s any more", STR_ARG(text));
}

/* Who works ahead goes on only if that is what is asked for. */
static void interrupt_ahead(struct api_call *q, struct loaded *l)
{
	const char *ahead = atomic_load(&l->ahead);

	if (ahead && q->http->abandoned != &l->is_wanted &&
	    !str_eq(str_of(ahead), q->http->target.raw))
		atomic_store(&l->is_wanted, true);
}

bool site_lock(pthread_mutex_t *lock)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOCK_WAIT_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return pthread_mutex_timedlock(lock, &until) == 0;
}

/* False without an error: another has made the answer meanwhile. */
static bool lock_profile(struct api_call *q, struct loaded *l, struct err *e)
{
	for (;;) {
		interrupt_ahead(q, l);
		if (site_lock(&l->lock))
			return true;
		if (reply_kept(q))
			return false;
		if (stop_asked(q->http->abandoned))
			return err_set(e, ERR_IO, "nobody waits for the answer any more");
	}
}

/* The other, if it is another. */
static struct loaded *second_profile(const struct api_call *q)
{
	return q->other == q->profile ? NULL : q->other;
}

void api_unlock(struct api_call *q)
{
	if (q->is_locked && second_profile(q))
		pthread_mutex_unlock(&q->other->lock);
	if (q->is_locked)
		pthread_mutex_unlock(&q->profile->lock);
	q->is_locked = false;
}

/* Both, always in the same order. */
static bool lock_profiles(struct api_call *q, struct err *e)
{
	struct loaded *first = q->profile, *second = second_profile(q);

	if (second && second->id < first->id) {
		first = q->other;
		second = q->profile;
	}
	if (!lock_profile(q, first, e))
		return false;
	if (second && !lock_profile(q, second, e)) {
		pthread_mutex_unlock(&first->lock);
		return false;
	}
	q->is_locked = true;
	return true;
}

static void close_profiles(struct api_call *q)
{
	api_unlock(q);
	profiles_drop(&q->site->profiles, q->other);
	profiles_drop(&q->site->profiles, q->profile);
}

static bool open_profiles(struct api_call *q, struct err *e)
{
	struct str a = api_param(q, "a"), b = api_param(q, "b");

	if (!open_profile(q, "a", &q->profile, e))
		return false;
	if (b.n && !str_eq(a.n ? a : STR("0"), b))
		return open_profile(q, "b", &q->other, e);
	return !q->base_time.to || open_profile(q, "a", &q->other, e);
}

static int status_of(const struct api_call *q, const struct err *e)
{
	if (q->status)
		return q->status;
	if (q->site->source.load && e->kind == ERR_NOTFOUND)
		return 404;
	return e->kind == ERR_IO ? 500 : 400;
}

static void run_route(struct api_call *q, const struct route *route)
{
	struct buf out = { 0 };
	struct err e = { 0 };
	bool ok = url_options(&q->http->target, q->a, &q->options, &e) &&
		  url_time(&q->http->target, "tm", &q->time, &e);

	if (ok && (route->flags & SIDES))
		ok = url_time(&q->http->target, "tb", &q->base_time, &e);
	if (ok && (route->flags & (q->site->source.load ? PROFILE | NAMED : PROFILE)))
		ok = open_profiles(q, &e);
	if (ok && (route->flags & PROFILE))
		ok = lock_profiles(q, &e);
	if (ok && !reply_kept(q)) {
		ok = route->run(q, &out, &e) &&
		     (!stop_asked(q->http->abandoned) ||
		      err_set(&e, ERR_IO, "nobody waits for the answer any more"));
		if (ok)
			reply_bytes(q->reply, 200, &out, q->type);
		if (ok && q->key)
			answers_add(&q->site->answers, q->key, q->reply->content);
	}
	close_profiles(q); /* not before others can find the answer */
	if (!q->reply->status)
		reply_error(q->reply, status_of(q, &e), e.text);
	buf_release(&out);
}

static void serve_route(struct site *site, struct http_call *call, struct http_reply *r,
			const struct route *route)
{
	struct api_call q = { .site = site,
			      .http = call,
			      .reply = r,
			      .a = &call->arena,
			      .options = site->params.c->options,
			      .type = "application/json" };

	if (route->flags & KEPT && !(route->flags & FILES && site->source.load))
		q.key = answer_key(&q);
	if (!reply_kept(&q))
		run_route(&q, route);
	buf_release(&q.warnings);
}

/* ---- all of it */

size_t site_admit(void *ctx, struct http_call *call, struct http_reply *reply)
{
	const struct site *site = ctx;
	const char *why;
	int status;

	if (!guard_allows(site, call, &status, &why)) {
		reply_text(reply, status, why);
		return 0;
	}
	if (str_eq(call->method, STR("POST")) &&
	    str_eq(call->target.path, STR("/ui/api/v1/profiles")))
		return site->params.c->max_profile_bytes;
	return MAX_SMALL_BODY;
}

void site_handle(void *ctx, struct http_call *call, struct http_reply *reply)
{
	struct site *site = ctx;
	struct str path = call->target.path;
	const struct route *route;
	bool has_path;

	if (!str_has_prefix(path, UI)) {
		redirect_to_ui(call, reply);
		return;
	}
	path = str_from(path, UI.n);
	route = find_route(path, call->method, &has_path);
	if (route && (route->flags & LOCAL) && site->source.load)
		reply_error(reply, 403,
			    "this server takes no profiles here, and keeps no settings");
	else if (route)
		serve_route(site, call, reply, route);
	else if (has_path ||
		 !(str_eq(call->method, STR("GET")) || str_eq(call->method, STR("HEAD"))))
		reply_text(reply, 405, "method not allowed");
	else if (is_page(path))
		web_reply_file(site, reply, STR("index.html"));
	else if (str_has_prefix(path, STATIC))
		web_reply_file(site, reply, str_from(path, STATIC.n));
	else if (!path.n || str_eq(path, STR("flamegraph2")) || str_eq(path, STR("flamegraphold")))
		redirect(call, reply, 301, "flamegraph");
	else if (str_has_prefix(path, API))
		reply_error(reply, 404, "there is no such request");
	else
		reply_text(reply, 404, "404 page not found");
}
