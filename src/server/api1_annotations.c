/* api1_annotations.c - what is said of a time: deployments, outages, tests. */
#include "server/api1_params.h"
#include "server/log.h"

#define YEAR (INT64_C(366) * 86400 * 1000000000)

static void put_tags(struct buf *out, struct str tags)
{
	bool more = false;

	buf_puts(out, ",\"tags\":[");
	while (tags.n) {
		if (more)
			buf_char(out, ',');
		json_put(out, str_cut(&tags, ','));
		more = true;
	}
	buf_char(out, ']');
}

static void put_annotation(struct buf *out, const struct store_annotation *x)
{
	buf_printf(out, "{\"id\":%lld", (long long)x->id);
	json_time(out, "time", x->time);
	json_time(out, "end", x->end > x->time ? x->end : 0);
	buf_puts(out, ",\"text\":");
	json_put(out, x->text);
	buf_puts(out, ",\"service\":");
	json_put(out, x->service);
	put_tags(out, x->tags);
	buf_puts(out, ",\"who\":");
	json_put(out, x->who);
	buf_char(out, '}');
}

static void put_annotations(const struct request *q, struct buf *out,
			    const struct store_annotations *found)
{
	enum role role = q->c->role;

	buf_printf(out, "{\"more\":%s,\"may_add\":%s,\"may_drop\":%s,\"annotations\":[",
		   found->has_more ? "true" : "false",
		   role_has(role, ROLE_WRITE) ? "true" : "false",
		   role_has(role, ROLE_ADMIN) ? "true" : "false");
	for (size_t i = 0; i < found->n; i++) {
		buf_puts(out, i ? ",\n" : "\n");
		put_annotation(out, &found->at[i]);
	}
	buf_puts(out, "]}\n");
}

/* "deploy, eu" is deploy,eu */
static struct str trim_tags(struct arena *a, struct str tags)
{
	struct buf out = { 0 };
	struct str copy;

	for (bool more = false; tags.n; more = true) {
		if (more)
			buf_char(&out, ',');
		buf_str(&out, str_trim(str_cut(&tags, ',')));
	}
	copy = (struct str){ str_dup(a, buf_view(&out)), out.n };
	buf_release(&out);
	return copy;
}

static bool add(struct request *q, struct buf *out, struct err *e)
{
	const struct value *end = request_param(q, "end");
	struct store_annotation x = { .time = request_int(q, "time"),
				      .text = str_trim(request_text(q, "text")),
				      .service = request_text(q, "service"),
				      .tags = trim_tags(q->a, request_text(q, "tags")),
				      .who = q->c->who };

	x.end = end->is_set ? end->number : x.time;
	if (x.time > q->now + YEAR || x.end > q->now + YEAR)
		return err_set(e, ERR_USAGE, "time: it is more than a year until then");
	if (!store_annotate(q->c->server->store, &x, e))
		return false;
	put_annotations(q, out, &(struct store_annotations){ .at = &x, .n = 1 });
	return true;
}

static bool drop(struct request *q, struct buf *out, struct err *e)
{
	if (!request_param(q, "id")->is_set)
		return err_set(e, ERR_USAGE, "id is missing");
	if (!store_drop_annotation(q->c->server->store, request_int(q, "id"), e))
		return false;
	log_info("%.*s dropped annotation %lld", STR_ARG(q->c->who.n ? q->c->who : STR("somebody")),
		 (long long)request_int(q, "id"));
	put_annotations(q, out, &(struct store_annotations){ 0 });
	return true;
}

static bool list(struct request *q, struct buf *out, struct err *e)
{
	struct store_annotation_query query = { .from = request_int(q, "from"),
						.to = request_int(q, "to"),
						.service = request_text(q, "service"),
						.tag = request_text(q, "tag"),
						.limit = (size_t)request_int(q, "limit") };
	struct store_annotations found;

	if (!request_text(q, "to").n)
		query.to = INT64_MAX;
	if (!store_annotations(q->c->server->store, &query, q->a, &found, e))
		return false;
	put_annotations(q, out, &found);
	return true;
}

static bool run_annotations(struct request *q, struct buf *out, struct err *e)
{
	struct str method = q->c->http->method;

	if (str_eq(method, STR("POST")))
		return add(q, out, e);
	return str_eq(method, STR("DELETE")) ? drop(q, out, e) : list(q, out, e);
}

static const struct param annotation_params[] = {
	PARAM_WINDOW(NULL),
	{ .name = "service",
	  .kind = PARAM_TEXT,
	  .help = "To be added: of which service it is; if it is not given, of all. To be listed: "
		  "those of this service and of all." },
	{ .name = "tag", .kind = PARAM_TEXT, .help = "To be listed: those that have this tag." },
	PARAM_LIMIT(100, 10000, "are listed: the newest"),
	{ .name = "text",
	  .kind = PARAM_TEXT,
	  .help = "To be added: what it says, in 500 bytes at most." },
	{ .name = "time",
	  .kind = PARAM_TIME,
	  .initial = "now",
	  .help = "To be added: when it was, written as the others." },
	{ .name = "end",
	  .kind = PARAM_TIME,
	  .help = "To be added: until when it lasted, if it was more than a moment." },
	{ .name = "tags",
	  .kind = PARAM_TEXT,
	  .help = "To be added: up to 8 words with commas between them, such as deploy,eu." },
	{ .name = "id",
	  .kind = PARAM_INT,
	  .min = 1,
	  .max = 1e15,
	  .help = "To be dropped: which one." },
};

const struct endpoint endpoint_annotations = {
	.path = "/api/1/annotations",
	.details =
		"What was said of times: a deployment, an outage, a test. The timeline shows them. "
		"GET lists those some of whose time is between from and to, the newest first; POST "
		"adds one and answers with it, as in: curl -d service=web -d text='deployed 1.2' "
		"-d tags=deploy URL; DELETE drops one. The 10000 newest are kept, and none for "
		"longer than sums of a day. Parameters may also be sent as a form.",
	ENDPOINT_PARAMS(annotation_params),
	.answer = "Annotations",
	.run = run_annotations,
};
