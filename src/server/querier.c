/* querier.c - calls of Pyroscope's querier.v1.QuerierService, one line each, by which Grafana's
 * data source asks. */
#include "server/querier.h"

#include "profile/wire.h"
#include "server/connect.h"
#include "server/routes.h"

static const struct rpc {
	const char *name;
	const struct wire_message *request, *answer;
	querier_call *run;
} rpcs[] = {
	{ "ProfileTypes", &ask_profile_types, &answer_profile_types, querier_profile_types },
	{ "LabelNames", &ask_label_names, &answer_names, querier_label_names },
	{ "LabelValues", &ask_label_values, &answer_names, querier_label_values },
	{ "Series", &ask_label_sets, &answer_label_sets, querier_label_sets },
	{ "SelectSeries", &ask_series, &answer_series, querier_select_series },
	{ "SelectMergeStacktraces", &ask_merge_stacktraces, &answer_merge,
	  querier_merge_stacktraces },
	{ "SelectMergeSpanProfile", &ask_merge_span_profile, &answer_merge,
	  querier_merge_stacktraces },
	{ "SelectMergeProfile", &ask_merge_profile, &answer_profile, querier_merge_profile },
	{ "Diff", &ask_diff, &answer_diff, querier_diff },
	{ "GetProfileStats", &ask_stats, &answer_stats, querier_stats },
};

bool querier_stats(const struct querier *q, const void *request, struct buf *out, struct err *e)
{
	struct store_stats stats;

	(void)request, (void)e;
	store_stats(q->store, &stats);
	put_nonzero(out, 1, stats.nprofiles > 0);
	put_nonzero(out, 2, (uint64_t)(stats.oldest / 1000000));
	put_nonzero(out, 3, (uint64_t)(stats.newest / 1000000));
	return true;
}

static const struct rpc *find_rpc(struct str name)
{
	for (size_t i = 0; i < sizeof(rpcs) / sizeof(*rpcs); i++)
		if (str_eq(name, str_of(rpcs[i].name)))
			return &rpcs[i];
	return NULL;
}

/* NULL: failed. */
static void *read_request(struct arena *a, const struct rpc *rpc, const struct connect_body *body,
			  struct err *e)
{
	void *request = arena_alloc(a, rpc->request->bytes);
	struct str bytes = body->bytes;
	struct buf proto = { 0 };
	bool ok = true;

	if (body->is_json) {
		ok = wire_from_json(&proto, rpc->request, bytes, e);
		bytes = (struct str){ arena_copy(a, proto.p, proto.n), proto.n };
		buf_release(&proto);
	}
	return ok && wire_read(a, rpc->request, bytes, request, e) ? request : NULL;
}

static void reply(struct call *c, const struct rpc *rpc, const struct connect_body *body,
		  struct buf *out)
{
	struct buf json = { 0 };

	if (!body->is_json)
		connect_reply(c, body, out);
	else if (wire_to_json(&json, rpc->answer, buf_view(out)))
		connect_reply(c, body, &json);
	else
		connect_error(c, CONNECT_INTERNAL, "the answer cannot be written as JSON");
	buf_release(&json);
}

static void answer(struct call *c, const struct rpc *rpc, const struct connect_body *body)
{
	struct strings strings;
	struct querier q = { .c = c,
			     .a = c->arena,
			     .store = c->server->store,
			     .stop = c->http->abandoned,
			     .strings = &strings };
	struct buf out = { 0 };
	struct err e = { 0 };
	const void *request = read_request(c->arena, rpc, body, &e);
	bool ok;

	strings_init(&strings);
	ok = request && rpc->run(&q, request, &out, &e);
	if (!c->reply->status) { /* it may have been refused */
		if (ok)
			reply(c, rpc, body, &out);
		else
			reply_failure(c, &e);
	}
	strings_release(&strings);
	buf_release(&out);
}

void querier_answer(struct call *c)
{
	const struct rpc *rpc = find_rpc(c->rest);
	struct connect_body body;

	if (!rpc) {
		connect_error(c, CONNECT_UNIMPLEMENTED,
			      "querier.v1.QuerierService has no %.*s here", STR_ARG(c->rest));
		return;
	}
	if (connect_read(c, &body))
		answer(c, rpc, &body);
}
