/* api0_get.c - profefe's API: profiles go out, one or many in one. */
#include "base/vec.h"
#include "server/api0.h"
#include "server/routes.h"

enum { MAX_IDS = 1000 };

typedef vec(struct store_id) id_list;

/* ---- merge */

/* "can't merge profiles of trace type" */
static bool check_mergeable(struct call *c, struct str type)
{
	bool is_unknown = !type.n || str_eq(type, STR("unknown"));

	if (!is_unknown && !str_eq(type, STR("trace")))
		return true;
	http_reply_header(c->reply, "Allow", "GET, HEAD"); /* which a 405 must have */
	reply_error(c, 405, "can't merge profiles of %s type", is_unknown ? "unknown" : "trace");
	return false;
}

/* All that the query finds or, with ids, those. */
static void merge(struct call *c, const struct store_query *query, const id_list *ids,
		  const char *filename)
{
	struct store *store = c->server->store;
	struct store_merged merged;
	struct strings strings;
	struct arena a = { 0 };
	struct err e;
	bool ok;

	strings_init(&strings);
	ok = ids ? store_merge_ids(store, ids->at, ids->n, c->http->abandoned, &a, &strings,
				   &merged, &e)
		 : store_merge(store, query, STORE_AS_TYPE, &a, &strings, &merged, &e);
	if (ok)
		reply_profile(c, &merged.profile, filename);
	else if (e.kind == ERR_NOTFOUND)
		reply_error(c, 404, "nothing found");
	else
		reply_failure(c, &e);
	strings_release(&strings);
	arena_release(&a);
}

void api0_merge(struct call *c)
{
	struct api0_series series;
	struct store_query query;

	c->gives_profile = true;
	if (api0_read_series(c, &series) && check_mergeable(c, series.type) &&
	    api0_read_query(c, &series, &query)) {
		query.is_whole = true; /* as profefe has it: clients of pprof see no headers */
		merge(c, &query, NULL, str_dup(c->arena, series.type));
	}
}

/* ---- by id */

/* "id+id+id"; false: something in it is no id. */
static bool read_ids(struct str text, id_list *ids)
{
	do {
		struct store_id id;

		if (!store_id_parse(str_cut(&text, '+'), &id) || ids->n == MAX_IDS)
			return false;
		vec_push(ids, id);
	} while (text.p);
	return true;
}

static void reply_stored(struct call *c, const struct profile *p, struct str bytes,
			 const char *filename)
{
	struct buf copy = { 0 };

	if (p->strings) {
		reply_profile(c, p, filename);
		return;
	}
	buf_str(&copy, bytes);
	reply_file(c, &copy, filename);
}

static void get_one(struct call *c, const struct store_id *id, const char *filename)
{
	struct store_meta meta;
	struct strings strings;
	struct arena a = { 0 };
	struct profile p;
	struct str bytes;
	struct err e;

	strings_init(&strings);
	if (store_get(c->server->store, id, &a, &strings, &meta, &p, &bytes, &e))
		reply_stored(c, &p, bytes, filename);
	else if (e.kind == ERR_NOTFOUND)
		reply_error(c, 404, "nothing found");
	else
		reply_failure(c, &e);
	strings_release(&strings);
	arena_release(&a);
}

void api0_get(struct call *c)
{
	const char *filename = str_dup(c->arena, c->rest);
	id_list ids = { 0 };

	c->gives_profile = true;
	if (!c->rest.n)
		reply_error(c, 400, "no profile id");
	else if (!read_ids(c->rest, &ids))
		reply_error(c, 404, "nothing found");
	else if (ids.n == 1)
		get_one(c, &ids.at[0], filename);
	else
		merge(c, NULL, &ids, filename);
	vec_release(&ids);
}
