/* viewer.c - profiles of the store for the pages below /ui/, which are those of kiln -http.
 *
 * Its parameters a and b, the two sides of a comparison, are selections: what /api/1/merge takes as
 * a query, escaped once more, or id=ID of a single profile. Times in them must be fixed, so that a
 * page means the same tomorrow; the pages themselves are redirected to where they are. */
#include "server/viewer.h"

#include "server/api1_params.h"
#include "server/code.h"
#include "server/gate.h"
#include "server/limits.h"
#include "server/routes.h"

enum { ANSWERS_PART = 16 }; /* of the memory for requests */

static const struct param selection_params[] = {
	PARAM_SELECT,
	{ .name = "from", .kind = PARAM_TIME, .help = "The window's start." },
	{ .name = "to", .kind = PARAM_TIME, .help = "The window's end." },
	PARAM_AGGREGATE,
	{ .name = "id", .kind = PARAM_TEXT, .help = "One profile." },
};
static const struct endpoint selection = { .path = "a selection",
					   ENDPOINT_PARAMS(selection_params) };

/* ---- selections */

/* The target keeps what it is made of. */
static bool parse_key(struct arena *a, struct str key, struct http_target *t, struct err *e)
{
	struct str text = { NULL, key.n + 2 };
	char *copy = arena_alloc(a, text.n);

	memcpy(copy, "/?", 2);
	memcpy(copy + 2, key.p, key.n);
	text.p = copy;
	return http_target_parse(a, text, t, e);
}

static bool is_relative(const struct http_target *t, const char *name)
{
	struct str time = http_target_param(t, name);

	return !time.n || str_has_prefix(time, STR("now"));
}

static bool is_fixed(const struct http_target *t)
{
	return http_target_param(t, "id").n || (!is_relative(t, "from") && !is_relative(t, "to"));
}

static void put_param(struct buf *out, struct str name, struct str value)
{
	buf_puts(out, out->n ? "&" : "");
	http_put_escaped(out, name);
	buf_char(out, '=');
	http_put_escaped(out, value);
}

static bool put_time(struct buf *out, const struct http_target *t, const char *name,
		     const char *usual, struct err *e)
{
	struct str text = http_target_param(t, name);
	struct buf fixed = { 0 };
	int64_t ns;

	if (!time_parse(text.n ? text : str_of(usual), time_now(), &ns, e))
		return err_wrap(e, "%s", name);
	time_print(&fixed, ns / 1000000 * 1000000);
	put_param(out, str_of(name), buf_view(&fixed));
	buf_release(&fixed);
	return true;
}

/* The selection with times instead of now. */
static bool put_fixed(struct buf *out, const struct http_target *t, struct err *e)
{
	for (size_t i = 0; i < t->nparams; i++)
		if (!str_eq(t->params[i].name, STR("from")) &&
		    !str_eq(t->params[i].name, STR("to")))
			put_param(out, t->params[i].name, t->params[i].value);
	return put_time(out, t, "from", "now-1h", e) && put_time(out, t, "to", "now", e);
}

/* ---- loading */

/* A profile on its way from the store. */
struct loading {
	struct request *q;
	struct session *s;
	struct buf *name, *notes;
};

static void put_name_part(struct buf *name, struct str text)
{
	if (!text.n)
		return;
	buf_puts(name, name->n ? ", " : "");
	buf_str(name, text);
}

static void put_window(struct buf *name, int64_t from, int64_t to)
{
	buf_puts(name, name->n ? ", " : "");
	time_print(name, from / 1000000000 * 1000000000);
	buf_puts(name, " to ");
	time_print(name, to / 1000000000 * 1000000000);
}

static bool load_one(struct loading *l, struct err *e)
{
	struct str text = request_text(l->q, "id"), bytes;
	struct session *s = l->s;
	struct store_meta meta;
	struct store_id id;

	if (!store_id_parse(text, &id))
		return err_set(e, ERR_NOTFOUND, "\"%.*s\" is no id of a profile", STR_ARG(text));
	if (!store_get(l->q->c->server->store, &id, &s->arena, &s->strings, &meta, &s->profile,
		       &bytes, e))
		return false;
	if (!s->profile.strings)
		return err_set(e, ERR_USAGE, "it is no profile but bytes of type %.*s",
			       STR_ARG(meta.type));
	store_name_profile(l->q->c->server->store, &s->arena, &s->profile);
	put_name_part(l->name, meta.service);
	put_name_part(l->name, meta.type);
	buf_puts(l->name, ", ");
	time_print(l->name, meta.created / 1000000000 * 1000000000);
	return true;
}

static bool load_merged(struct loading *l, struct err *e)
{
	struct request *q = l->q;
	struct store_query query;
	struct store_merged merged;

	if (!request_query(q, &query, e) ||
	    !store_merge(q->c->server->store, &query, request_aggregate(q), &l->s->arena,
			 &l->s->strings, &merged, e))
		return false;
	l->s->profile = merged.profile;
	if (merged.left_out.why.n)
		buf_printf(l->notes, "%.*s\n", STR_ARG(merged.left_out.why));
	put_name_part(l->name, request_text(q, "service"));
	put_name_part(l->name, request_text(q, "type"));
	put_name_part(l->name, request_text(q, "query"));
	put_window(l->name, query.from, query.to);
	return true;
}

/* Others that nobody looks at go first. */
bool viewer_take(struct server *s, uint64_t bytes)
{
	while (!budget_take(&s->limits->memory, bytes, 0, NULL))
		if (!web_site_shed(s->site))
			return false;
	return true;
}

static bool take_memory(struct call *c, uint64_t bytes)
{
	uint64_t total = c->server->limits->memory.total;

	if (viewer_take(c->server, bytes))
		return true;
	gate_refuse(c, bytes > total ? 413 : 503, "max-memory",
		    "to show this takes some %s of memory, and --max-memory leaves %s to all "
		    "requests; %s",
		    gate_bytes_text(c, bytes), gate_bytes_text(c, total),
		    bytes > total ? "choose a shorter window" : "try again");
	return false;
}

static bool load_into(struct loading *l, uint64_t *bytes, struct err *e)
{
	struct call *c = l->q->c;
	bool ok = request_param(l->q, "id")->is_set ? load_one(l, e) : load_merged(l, e);

	*bytes = ok ? web_session_bytes(l->s) : 0;
	return ok && (take_memory(c, *bytes) || err_set(e, ERR_LIMIT, "max-memory"));
}

static bool load(void *server, struct http_call *http, struct http_reply *reply, struct str key,
		 struct web_loaded *to, struct err *e)
{
	struct call c = { .server = server, .http = http, .reply = reply, .arena = &http->arena };
	struct request q = { .c = &c,
			     .a = &http->arena,
			     .endpoint = &selection,
			     .values = arena_many(&http->arena, selection.nparams, struct value),
			     .now = time_now(),
			     .stop = http->abandoned };
	struct loading l = { &q, &to->session, &to->name, &to->notes };
	struct http_target t;
	bool ok = parse_key(&http->arena, key, &t, e) && request_read(&q, &t, e);

	if (ok && !is_fixed(&t))
		ok = err_set(e, ERR_USAGE,
			     "from and to must be fixed times here, not now; /ui/flamegraph makes "
			     "them so");
	ok = ok && load_into(&l, &to->bytes, e);
	selector_release(&q.selector);
	return ok;
}

static void give(void *server, uint64_t bytes)
{
	budget_give(&((struct server *)server)->limits->memory, bytes);
}

static bool take_listing(void *server, struct http_call *http, struct http_reply *reply)
{
	struct call c = { .server = server, .http = http, .reply = reply, .arena = &http->arena };

	return gate_take(&c, code_listing_bytes(server));
}

void viewer_open(struct server *s)
{
	enum { SOURCES_PART = 4 }; /* of a listing's memory */
	struct budget *memory = &s->limits->memory;
	uint64_t answers = memory->total / ANSWERS_PART;

	memory->total -= answers; /* for good: no request runs yet */
	s->site = web_site_new(&(struct web_source){
		.load = load,
		.give = give,
		.ctx = s,
		.answer_bytes = (size_t)answers,
		.take_listing = take_listing,
		.code = code_reader_of(s),
		.source_path = s->options->source_path,
		.source_bytes = (size_t)code_listing_bytes(s) / SOURCES_PART,
	});
}

/* ---- pages */

/* Where the page is with fixed times; false if it is there, or has something wrong that it will
 * tell. */
static bool put_location(struct call *c, struct buf *to)
{
	const struct http_target *t = &c->http->target;
	struct buf query = { 0 }, key = { 0 };
	bool is_other = false;

	for (size_t i = 0; i < t->nparams; i++) {
		bool is_side =
			str_eq(t->params[i].name, STR("a")) || str_eq(t->params[i].name, STR("b"));
		struct http_target side;
		struct err e;

		key.n = 0;
		if (is_side && parse_key(c->arena, t->params[i].value, &side, &e) &&
		    !is_fixed(&side) && put_fixed(&key, &side, &e)) {
			put_param(&query, t->params[i].name, buf_view(&key));
			is_other = true;
		} else {
			put_param(&query, t->params[i].name, t->params[i].value);
		}
	}
	buf_printf(to, "%.*s?%.*s", STR_ARG(c->rest), STR_ARG(buf_view(&query)));
	buf_release(&query);
	buf_release(&key);
	return is_other;
}

void page_viewer(struct call *c)
{
	bool is_page = str_find_char(c->rest, '/') == STR_NONE;
	struct buf to = { 0 };

	if (is_page && put_location(c, &to)) {
		c->reply->status = 307;
		http_reply_header(c->reply, "Location", str_dup(c->arena, buf_view(&to)));
	} else {
		web_reply(c->server->site, c->http, c->reply);
	}
	buf_release(&to);
}
