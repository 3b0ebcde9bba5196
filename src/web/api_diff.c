/* api_diff.c - what changed between two profiles, and what of it is more than chance. */
#include "web/names.h"

#include <math.h>

#include "base/path.h"
#include "compare/compare.h"

#define FDR 0.05

struct counted {
	struct arena *a; /* of the result */
	const struct profile *whole;
	struct compare_source source;
};

static bool run_count(struct buf *out, struct report_run *r, struct err *e)
{
	struct counted *c = r->params->into;

	(void)out;
	return compare_count(c->a, r->p,
			     &(struct compare_count_params){ .keep = r->params->keep,
							     .value = r->params->value,
							     .is_cum = r->params->is_cum_sorted,
							     .whole = c->whole ? c->whole : r->p,
							     .stop = r->params->stop },
			     &c->source, e);
}

static const struct report report_count = { .name = "diff",
					    .flags = REPORT_PATHS,
					    .run = run_count };

/* NULL: all of it, as far as is known. */
static const struct time_range *part_of(const struct api_call *q, const struct profile *p,
					bool is_new)
{
	const struct time_range *time = !is_new && q->base_time.to ? &q->base_time : &q->time;

	return p->times && time->to ? time : NULL;
}

/* What was sampled then, before filters. */
static const struct profile *take_part(struct api_call *q, const struct profile *p,
				       const struct time_range *time)
{
	struct profile *part = arena_copy(q->a, p, sizeof(*p));

	profile_take_times(q->a, part, time->from, time->to, q->http->abandoned);
	return part;
}

static bool count(struct api_call *q, struct loaded *l, bool is_new, struct compare_source *source,
		  struct err *e)
{
	struct session *s = loaded_session(l);
	const struct time_range *time = part_of(q, &s->profile, is_new);
	struct counted c = { .a = q->a };
	struct buf out = { 0 };
	bool ok;

	if (!q->options.relative_percentages)
		c.whole = time ? take_part(q, &s->profile, time) : &s->profile;
	ok = is_new ? api_report_other(q, &report_count, &c, &out, e)
		    : api_report(q, s, &report_count, "", &c, &out, e);
	*source = c.source;
	source->name = l->name;
	source->is_new = is_new;
	if (time)
		source->duration_s = (double)(time->to - time->from) / 1e9;
	buf_release(&out);
	return ok;
}

/* The distance from chance in standard deviations that goes with a two-sided p. */
static double z_score(double p, double change)
{
	double low = 0, high = 40;

	if (!(p < 1))
		return 0;
	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2;

		if (erfc(middle / sqrt(2)) > p)
			low = middle;
		else
			high = middle;
	}
	return change < 0 ? -low : low;
}

static void put_field(struct buf *out, const char *name, double v)
{
	buf_printf(out, ",\"%s\":", name);
	json_put_number(out, v);
}

static void put_number(struct buf *out, struct api_call *q, const struct loaded *l, struct str name)
{
	struct functions *t = &q->site->functions;

	buf_printf(out, "[%u,", functions_number(t, functions_add(t, l->owner, name)));
}

/* A name may be of either profile. */
static void put_function(struct buf *out, struct api_call *q, struct str name)
{
	struct loaded *sides[] = { q->profile, q->other };

	for (size_t i = 0; i < 2; i++) {
		const struct profile *p = &sides[i]->session.profile;
		uint32_t string = strings_find(p->strings, name);
		const struct name_facts *facts = loaded_facts(sides[i], string);

		if (!string || !facts->is_known)
			continue;
		put_number(out, q, sides[i], name);
		json_put(out, name);
		buf_char(out, ',');
		json_put(out, profile_str(p, facts->file));
		buf_printf(out, ",%lld,", (long long)facts->line);
		json_put(out, facts->object ? path_base(profile_str(p, facts->object)) : STR(""));
		buf_printf(out, ",%u]", facts->flags);
		return;
	}
	put_number(out, q, q->profile, name);
	json_put(out, name);
	buf_puts(out, ",\"\",0,\"\",0]");
}

static const char *state(const struct compare_row *row)
{
	if (row->old == 0)
		return "new";
	if (row->new == 0)
		return "gone";
	return row->verdict == VERDICT_SAME || row->old_share == row->new_share ? "same"
										: "changed";
}

/* Values are of the profile, whatever they were divided by to be compared. */
static double whole(const struct comparison *c, const struct compare_side *side, double v)
{
	return c->params.mode == COMPARE_PER_SECOND ? round(v * side->duration_s) : v;
}

static void put_row(struct buf *out, struct api_call *q, const struct comparison *c,
		    const struct compare_row *row)
{
	bool is_significant = row->verdict == VERDICT_MORE || row->verdict == VERDICT_LESS;
	double old = whole(c, &c->old, row->old), new = whole(c, &c->new, row->new);

	buf_puts(out, "{\"function\":");
	put_function(out, q, row->name);
	put_field(out, "a", old);
	put_field(out, "b", new);
	put_field(out, "delta", new - old);
	put_field(out, "share_a", row->old_share);
	put_field(out, "share_b", row->new_share);
	put_field(out, "z", z_score(row->p, row->change));
	put_field(out, "p", row->p);
	buf_printf(out, ",\"significant\":%s,\"few\":%s,\"state\":\"%s\"}",
		   is_significant ? "true" : "false",
		   row->verdict == VERDICT_FEW ? "true" : "false", state(row));
}

static const char *note(const struct comparison *c, bool is_any_known)
{
	if (!c->has_events)
		return "The profiles do not say how many samples they have, so that chance cannot "
		       "be told from change.";
	if (!is_any_known)
		return "There are not enough samples to tell chance from change.";
	return "";
}

static void put_comparison(struct buf *out, struct api_call *q, const struct comparison *c)
{
	bool is_any_known = false;

	for (size_t i = 0; i < c->nrows; i++)
		is_any_known |= c->rows[i].verdict > VERDICT_FEW;
	buf_puts(out, "{\"type\":");
	json_put(out, c->type);
	buf_puts(out, ",\"unit\":");
	json_put(out, c->unit);
	put_field(out, "total_a", c->old.total);
	put_field(out, "total_b", c->new.total);
	buf_printf(out,
		   ",\"enough\":%s,\"note\":", c->has_events && is_any_known ? "true" : "false");
	json_put(out, str_of(note(c, is_any_known)));
	buf_puts(out, ",\"rows\":[");
	for (size_t i = 0; i < c->nrows && !stop_asked(q->http->abandoned); i++) {
		buf_puts(out, i ? ",\n" : "");
		put_row(out, q, c, &c->rows[i]);
	}
	buf_char(out, ']');
	api_put_warnings(q, out);
	buf_puts(out, "}\n");
}

bool api_diff(struct api_call *q, struct buf *out, struct err *e)
{
	struct compare_source sources[2];
	struct comparison c = { 0 };
	bool ok, is_rate = str_eq(api_param(q, "per"), STR("second"));

	if (!q->other)
		return err_set(e, ERR_USAGE,
			       "b must name another profile than a, or tb another time");
	if (q->options.mean)
		return err_set(e, ERR_USAGE, "means cannot be compared");
	if (q->options.granularity == GRANULARITY_ADDRESSES)
		return err_set(e, ERR_USAGE,
			       "addresses differ from build to build: use lines or functions");
	ok = count(q, q->profile, false, &sources[0], e) &&
	     count(q, q->other, true, &sources[1], e) &&
	     compare(q->a, sources, 2,
		     &(struct compare_params){ .mode = is_rate ? COMPARE_PER_SECOND : COMPARE_SHARE,
					       .is_cum = q->options.sort == SORT_CUM,
					       .fdr = FDR,
					       .fail_over = -1,
					       .stop = q->http->abandoned },
		     &c, e);
	if (ok)
		put_comparison(out, q, &c);
	return ok;
}
