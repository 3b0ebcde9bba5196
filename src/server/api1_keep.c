/* api1_keep.c - how much there is, and less of it. */
#include "server/api1_params.h"

#include "server/log.h"

/* What is gone should not be a riddle. */
static void log_deletion(const struct request *q, uint64_t n)
{
	struct buf what = { 0 };

	selector_print(&what, &q->selector);
	log_info("%.*s deleted %llu profiles: %.*s",
		 STR_ARG(q->c->who.n ? q->c->who : STR("somebody")), (unsigned long long)n,
		 STR_ARG(buf_view(&what)));
	buf_release(&what);
}

/* Everything is deleted only by who says so. */
static bool run_delete(struct request *q, struct buf *out, struct err *e)
{
	bool is_dry = request_int(q, "dry_run");
	struct store_query query;
	uint64_t n;

	if (!q->selector.matchers.n && !request_int(q, "all"))
		return err_set(e, ERR_USAGE,
			       "query selects everything; if that is meant, say all=true");
	if (!request_query(q, &query, e) ||
	    !store_delete(q->c->server->store, &query, is_dry, &n, e))
		return false;
	if (!is_dry)
		log_deletion(q, n);
	buf_printf(out, "{\"dry_run\":%s,\"profiles\":%llu}\n", is_dry ? "true" : "false",
		   (unsigned long long)n);
	return true;
}

static bool run_stats(struct request *q, struct buf *out, struct err *e)
{
	struct store_stats s;

	(void)e;
	store_stats(q->c->server->store, &s);
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {
		{ "services", s.nservices },
		{ "series", s.nseries },
		{ "profiles", s.nprofiles },
		{ "samples", s.nsamples },
		{ "bytes_on_disk", s.bytes_on_disk },
		{ "bytes_of_profiles", s.bytes_of_profiles },
		{ "free_bytes", s.free_bytes },
		{ "memory", s.memory },
		{ "puts", s.nputs },
		{ "commits", s.ncommits },
		{ "deleted", s.ndeleted },
		{ "thinned", s.nthinned },
		{ "waiting", s.nwaiting },
	};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		buf_printf(out, "%s\"%s\":%llu", i ? "," : "{", numbers[i].name,
			   (unsigned long long)numbers[i].value);
	json_time(out, "oldest", s.oldest);
	json_time(out, "newest", s.newest);
	json_time(out, "started", q->c->server->started);
	buf_printf(out, ",\"full\":%s}\n", s.is_full ? "true" : "false");
	return true;
}

static const struct param delete_params[] = {
	PARAM_SELECT,
	PARAM_WINDOW(NULL),
	{ .name = "dry_run",
	  .kind = PARAM_FLAG,
	  .initial = "false",
	  .help = "Only count what would be deleted." },
	{ .name = "all",
	  .kind = PARAM_FLAG,
	  .initial = "false",
	  .help = "A query that selects everything is meant so." },
};

const struct endpoint endpoint_delete = {
	.path = "/api/1/delete",
	.details =
		"Deletes what the query finds, at all times unless from or to are given, and what "
		"was summed up of it. Parameters may also be sent as a form.",
	ENDPOINT_PARAMS(delete_params),
	.answer = "Deleted",
	.run = run_delete,
};
const struct endpoint endpoint_stats = {
	.path = "/api/1/stats",
	.details =
		"How much is stored, and how much room that takes. Bytes and numbers are of now; "
		"puts, commits, deleted and thinned are since the start.",
	.answer = "Stats",
	.run = run_stats,
};
