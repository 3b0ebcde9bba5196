/* api1_diff.c - what changed between two sets of profiles, and what of it is more than chance. */
#include "server/api1_params.h"

#include "analyze/analyze.h"
#include "compare/compare.h"
#include "server/parts.h"

#define FDR 0.05

/* One of the two. */
struct diff_side {
	const char *name;
	struct selector selector;
	struct store_query query;
	uint64_t nprofiles, nseries;
	int64_t first, last;
};

struct diff {
	struct request *q;
	struct analyze_options options;
	struct diff_side sides[2]; /* old, new */
	vec(struct compare_source) sources;
};

/* ---- which profiles */

static int64_t time_of(const struct request *q, const char *own, const char *common)
{
	const struct value *v = request_param(q, own);

	return v->is_set ? v->number : request_int(q, common);
}

/* What a side has of its own is added to what both have. */
static bool read_side(struct diff *d, struct diff_side *side, const char *from, const char *to,
		      struct err *e)
{
	const struct request *q = d->q;

	for (size_t i = 0; i < q->selector.matchers.n; i++)
		vec_push(&side->selector.matchers, q->selector.matchers.at[i]);
	if (!selector_parse(&side->selector, q->a, request_text(q, side->name), e))
		return err_wrap(e, "%s", side->name);
	side->query = (struct store_query){ .matchers = side->selector.matchers.at,
					    .nmatchers = side->selector.matchers.n,
					    .from = time_of(q, from, "from"),
					    .to = time_of(q, to, "to"),
					    .stop = q->stop,
					    .sample_type = request_text(q, "sample_type") };
	return side->query.from <= side->query.to ||
	       err_set(e, ERR_USAGE, "%s is after %s", from, to);
}

static bool merge(struct diff *d, const struct diff_side *side, const struct store_query *query,
		  struct arena *a, struct strings *strings, struct store_merged *out, struct err *e)
{
	if (!store_merge(d->q->c->server->store, query, request_aggregate(d->q), a, strings, out,
			 e))
		return err_wrap(e, "%s", side->name);
	reply_left_out(d->q->c, &out->left_out);
	return true;
}

/* ---- as a profile */

static bool reply_difference(struct diff *d, struct buf *out, struct err *e)
{
	struct request *q = d->q;
	struct store_merged old, new;
	struct strings strings;
	struct profile both;
	struct diff_params params = { .mark_base = true,
				      .normalize = request_int(q, "per") == COMPARE_SHARE };
	bool ok;

	strings_init(&strings);
	ok = merge(d, &d->sides[0], &d->sides[0].query, q->a, &strings, &old, e) &&
	     merge(d, &d->sides[1], &d->sides[1].query, q->a, &strings, &new, e) &&
	     profile_diff(q->a, new.profile, old.profile, &params, &both, e) &&
	     format_reply(q, &both, "diff.pb.gz", out, e);
	strings_release(&strings);
	return ok;
}

/* ---- as a comparison */

struct counting {
	struct request *q;
	const struct profile *whole;
	struct compare_source source;
};

static bool run_count(struct buf *out, struct report_run *r, struct err *e)
{
	struct counting *c = r->params->into;

	(void)out;
	return compare_count(c->q->a, r->p,
			     &(struct compare_count_params){ .keep = r->params->keep,
							     .value = r->params->value,
							     .is_cum = r->params->is_cum_sorted,
							     .whole = c->whole,
							     .stop = r->params->stop },
			     &c->source, e);
}

static const struct report report_count = { .name = "diff",
					    .flags = REPORT_PATHS,
					    .run = run_count };

static void note_part(struct diff_side *side, const struct store_merged *m)
{
	if (!side->nprofiles || m->first < side->first)
		side->first = m->first;
	if (!side->nprofiles || m->last > side->last)
		side->last = m->last;
	side->nprofiles += m->nprofiles;
	side->nseries = m->nseries > side->nseries ? m->nseries : side->nseries;
}

/* The profile goes; what was counted of it stays. */
static bool count_part(struct diff *d, struct diff_side *side, const struct store_query *query,
		       struct err *e)
{
	struct arena scratch = { 0 };
	struct strings strings;
	struct store_merged merged;
	struct counting c = { .q = d->q, .whole = &merged.profile };
	struct buf none = { 0 };
	bool ok;

	strings_init(&strings);
	ok = merge(d, side, query, &scratch, &strings, &merged, e) &&
	     (format_report(d->q->c, &merged.profile, &report_count, &d->options, &c, &none, e) ||
	      err_wrap(e, "%s", side->name));
	if (ok) {
		c.source.name = side->name;
		c.source.is_new = side == &d->sides[1];
		vec_push(&d->sources, c.source);
		note_part(side, &merged);
	}
	buf_release(&none);
	strings_release(&strings);
	arena_release(&scratch);
	return ok;
}

/* Parts of the time are compared as runs: how much they differ among each other says how much more
 * than chance there is. Parts without profiles do not count. */
static bool count_side(struct diff *d, struct diff_side *side, struct err *e)
{
	int64_t nparts = request_int(d->q, "parts");
	size_t before = d->sources.n;

	if (!parts_narrow(d->q->c->server->store, &side->query, d->q->a, e))
		return err_wrap(e, "%s", side->name);
	if (request_int(d->q, "per") == COMPARE_PER_RUN)
		nparts = 1;
	nparts = parts_count(&side->query, nparts);
	for (int64_t i = 0; i < nparts; i++) {
		struct store_query part = parts_at(&side->query, nparts, i);

		if (!count_part(d, side, &part, e) && e->kind != ERR_NOTFOUND)
			return false;
	}
	return d->sources.n > before;
}

static void put_side(struct buf *out, struct diff_side *side)
{
	struct buf text = { 0 };

	selector_print(&text, &side->selector);
	buf_printf(out, "\"%s\":{\"query\":", side->name);
	json_put(out, buf_view(&text));
	buf_printf(out, ",\"profiles\":%llu,\"series\":%llu", (unsigned long long)side->nprofiles,
		   (unsigned long long)side->nseries);
	json_time(out, "first", side->first);
	json_time(out, "last", side->last);
	buf_puts(out, "},\n");
	buf_release(&text);
}

static bool put_comparison(struct diff *d, struct buf *out, struct err *e)
{
	const struct value *limit = request_param(d->q, "limit");
	struct compare_params params = {
		.mode = (enum compare_mode)request_int(d->q, "per"),
		.is_cum = d->options.sort == SORT_CUM,
		.is_ordered = true,
		.fdr = FDR,
		.fail_over = -1,
		.max_rows = limit->is_set ? (size_t)limit->number : 100,
		.stop = d->q->stop,
	};
	struct comparison c;

	if (!count_side(d, &d->sides[0], e) || !count_side(d, &d->sides[1], e) ||
	    !compare(d->q->a, d->sources.at, d->sources.n, &params, &c, e))
		return false;
	buf_char(out, '{');
	put_side(out, &d->sides[0]);
	put_side(out, &d->sides[1]);
	buf_printf(out, "\"changed\":%zu,\n\"comparison\":", c.nchanged);
	compare_json(out, &c);
	buf_puts(out, "}\n");
	return true;
}

static bool run_diff(struct request *q, struct buf *out, struct err *e)
{
	struct diff d = { .q = q, .sides = { { .name = "old" }, { .name = "new" } } };
	bool is_table = str_eq(request_text(q, "format"), STR("json")), ok;

	ok = format_options(q, &d.options, e) &&
	     read_side(&d, &d.sides[0], "old_from", "old_to", e) &&
	     read_side(&d, &d.sides[1], "new_from", "new_to", e) &&
	     (is_table ? put_comparison(&d, out, e) : reply_difference(&d, out, e));
	vec_release(&d.sources);
	for (size_t i = 0; i < 2; i++)
		selector_release(&d.sides[i].selector);
	return ok;
}

static const struct param params[] = {
	PARAM_SELECT,
	PARAM_WINDOW("now-1h"),
	{ .name = "old",
	  .kind = PARAM_SELECTOR,
	  .flags = IS_APART,
	  .help = "More conditions, of the old profiles." },
	{ .name = "new",
	  .kind = PARAM_SELECTOR,
	  .flags = IS_APART,
	  .help = "More conditions, of the new profiles." },
	{ .name = "old_from", .kind = PARAM_TIME, .help = "from, of the old profiles." },
	{ .name = "old_to", .kind = PARAM_TIME, .help = "to, of the old profiles." },
	{ .name = "new_from", .kind = PARAM_TIME, .help = "from, of the new profiles." },
	{ .name = "new_to", .kind = PARAM_TIME, .help = "to, of the new profiles." },
	/* In the order of enum compare_mode. */
	{ .name = "per",
	  .kind = PARAM_CHOICE,
	  .initial = "share",
	  .choices = "share second all",
	  .help = "What is compared: shares of each side's total (so that it does not matter how "
		  "much was profiled), values per second of profiling, or the values themselves." },
	{ .name = "parts",
	  .kind = PARAM_INT,
	  .initial = "8",
	  .min = 1,
	  .max = 64,
	  .help = "Each side's time is divided into so many parts; a change is only then "
		  "significant if it is larger than those among the parts. Not with per=all." },
	PARAM_AGGREGATE,
	FORMAT_PARAMS("json", "json " FORMAT_NAMES,
		      "a table of functions (json), or the difference as "),
};

const struct endpoint endpoint_diff = {
	.path = "/api/1/diff",
	.details =
		"Two sets of profiles of one type, compared by function: with the old and new "
		"values, how sure the change is, and whether it is more than chance. With another "
		"format, the difference as a profile: its old samples are negative and have the "
		"label pprof::base, as with pprof -diff_base, and with per=share the new ones are "
		"scaled to the old total.",
	ENDPOINT_PARAMS(params),
	.answer = "Difference",
	.types = FORMAT_TYPES,
	.run = run_diff,
};
