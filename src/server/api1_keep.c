/* api1_keep.c - how much there is, and less of it. */
#include "server/api1_params.h"

#include "base/amount.h"
#include "server/debuginfo.h"
#include "server/keep_rules.h"
#include "server/log.h"
#include "server/names.h"
#include "server/owners.h"

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

static void put_debuginfo(struct buf *out, struct server *s)
{
	struct debuginfo_stats files;
	struct names_stats names;

	debuginfo_stats(s->debuginfo, &files);
	names_stats(s->names, &names);
	buf_printf(out,
		   ",\"debuginfo\":{\"files\":%llu,\"bytes\":%llu,\"dropped\":%llu,"
		   "\"addresses\":%llu,\"named\":%llu,\"fetched\":%llu}",
		   (unsigned long long)files.nfiles, (unsigned long long)files.bytes,
		   (unsigned long long)files.nexpired, (unsigned long long)names.naddresses,
		   (unsigned long long)names.nnamed, (unsigned long long)names.nfetched);
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
	buf_printf(out, ",\"full\":%s,\"version_label\":", s.is_full ? "true" : "false");
	json_put(out, str_of(q->c->server->options->regression_version));
	buf_printf(out, ",\"owners\":%zu", owners_nrules(q->c->server->owners));
	put_debuginfo(out, q->c->server);
	buf_puts(out, "}\n");
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

/* ---- for how long */

static const char *const tiers[] = { "raw", "minute", "hour", "day" };
enum { NTIERS = sizeof(tiers) / sizeof(*tiers) };

/* null: as for all. */
static void put_ages(struct buf *out, struct store_rule *rule)
{
	for (size_t i = 0; i < NTIERS; i++) {
		int64_t age = *keep_rule_age(rule, str_of(tiers[i]));

		buf_printf(out, "%s\"%s\":", i ? "," : "", tiers[i]);
		if (age < 0) {
			buf_puts(out, "null");
			continue;
		}
		buf_char(out, '"');
		amount_print_time(out, age);
		buf_char(out, '"');
	}
}

static void put_foreseen(struct buf *out, const struct store_foreseen *x)
{
	buf_printf(out, "\"dry_run\":{\"thinned\":%llu,\"dropped\":%llu,\"series\":%llu},",
		   (unsigned long long)x->nthinned, (unsigned long long)x->ndropped,
		   (unsigned long long)x->nseries);
}

/* `foreseen` or NULL. */
static void put_rules(struct request *q, const struct store_foreseen *foreseen, struct buf *out)
{
	const struct server_options *o = q->c->server->options;
	struct store_rule all = { .raw_ns = o->keep_raw,
				  .minute_ns = o->keep_minute,
				  .hour_ns = o->keep_hour,
				  .day_ns = o->keep_day };
	struct store_rule *rules;
	size_t n;

	store_rules(q->c->server->store, q->a, &rules, &n);
	buf_char(out, '{');
	if (foreseen)
		put_foreseen(out, foreseen);
	buf_puts(out, "\"all\":{");
	put_ages(out, &all);
	buf_puts(out, "},\"services\":[");
	for (size_t i = 0; i < n; i++) {
		buf_puts(out, i ? ",{\"service\":" : "{\"service\":");
		json_put(out, rules[i].service);
		buf_printf(out, ",\"stored\":%s,", rules[i].is_stored ? "true" : "false");
		put_ages(out, &rules[i]);
		buf_char(out, '}');
	}
	buf_puts(out, "]}\n");
}

static bool read_ages(const struct request *q, struct store_rule *rule, size_t *n, struct err *e)
{
	*rule = keep_rule_new(request_text(q, "service"));
	*n = 0;
	for (size_t i = 0; i < NTIERS; i++) {
		const struct value *v = request_param(q, tiers[i]);

		if (!v->is_set)
			continue;
		++*n;
		if (!amount_parse_time(v->text, keep_rule_age(rule, str_of(tiers[i])), e))
			return err_wrap(e, "%s", tiers[i]);
	}
	return true;
}

static bool read_rule(const struct request *q, bool is_drop, struct store_rule *rule, struct err *e)
{
	size_t n;

	if (!read_ages(q, rule, &n, e))
		return false;
	if (!rule->service.n)
		return err_set(e, ERR_USAGE, "service is missing");
	if (is_drop ? n > 0 : n == 0)
		return err_set(e, ERR_USAGE,
			       is_drop ? "an age makes no sense here"
				       : "raw, minute, hour and day are missing");
	return true;
}

static bool change_rule(struct request *q, bool is_drop, struct err *e)
{
	struct store *store = q->c->server->store;
	struct store_rule rule;

	if (!read_rule(q, is_drop, &rule, e))
		return false;
	if (is_drop ? !store_drop_rule(store, rule.service, e) : !store_set_rule(store, &rule, e))
		return false;
	log_info("%.*s changed how long %.*s is kept",
		 STR_ARG(q->c->who.n ? q->c->who : STR("somebody")), STR_ARG(rule.service));
	return true;
}

static bool foresee(struct request *q, bool is_change, bool is_drop, struct store_foreseen *out,
		    struct err *e)
{
	struct store_rule rule = { 0 };
	struct store_rule_change change = { .rule = is_change ? &rule : NULL, .is_drop = is_drop };

	return (!is_change || read_rule(q, is_drop, &rule, e)) &&
	       store_foresee(q->c->server->store, &change, q->now, q->stop, out, e);
}

static bool run_keep(struct request *q, struct buf *out, struct err *e)
{
	struct str method = q->c->http->method;
	bool is_drop = str_eq(method, STR("DELETE")), is_dry = request_int(q, "dry_run");
	bool is_change = is_drop || str_eq(method, STR("PUT"));
	struct store_foreseen foreseen;

	if (is_dry ? !foresee(q, is_change, is_drop, &foreseen, e)
		   : is_change && !change_rule(q, is_drop, e))
		return false;
	put_rules(q, is_dry ? &foreseen : NULL, out);
	return true;
}

#define PARAM_AGE(tier, what)                                                                    \
	{                                                                                        \
		.name = tier, .kind = PARAM_TEXT,                                                \
		.help = "To be set: for how long " what " are kept, as 14d; 0 is for ever. Not " \
			"given: as for all services."                                            \
	}

static const struct param keep_params[] = {
	{ .name = "service",
	  .kind = PARAM_TEXT,
	  .help = "To be set or dropped: its name, or a pattern, in which * is any text." },
	PARAM_AGE("raw", "single profiles"),
	PARAM_AGE("minute", "sums of a minute"),
	PARAM_AGE("hour", "sums of an hour"),
	PARAM_AGE("day", "sums of a day"),
	{ .name = "dry_run",
	  .kind = PARAM_FLAG,
	  .initial = "false",
	  .help = "Changes nothing: only counts what would go now for its age, if the change were "
		  "made, or, of GET, as it is." },
};

const struct endpoint endpoint_keep = {
	.path = "/api/1/keep",
	.details =
		"How long what is kept: of all services, as the options say, and of those that "
		"have "
		"times of their own. PUT sets those of a service, DELETE drops them; they are "
		"stored "
		"beside the profiles and go before those of --keep-service. All answer with what "
		"holds then, and with dry_run how many profiles would be left as sums only "
		"(thinned), or not at all (dropped), when ages are next looked at; what goes for "
		"want of room is not told.",
	ENDPOINT_PARAMS(keep_params),
	.answer = "Keep",
	.run = run_keep,
};
