#include "server/regress.h"

#include <math.h>

#include "base/int.h"
#include "base/unit.h"
#include "base/vec.h"
#include "server/parts.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

/* What the header promises. */
static const double fdr = 0.05;
/* Less tells nothing: neither how much parts differ nor what is chance. */
static const double min_samples = 500;
/* A decrease must be this much larger than any increase, or it may be what that leaves to others.
 */
static const double min_lead = 1.02;
static const double usual_share = 0.05; /* of a function, to say what would be found */
enum { MAX_FASTER = 20, MAX_DAYS_BACK = 14, MAX_EXACT_TIMES = 5 };
enum { MIN_PARTS = 4, USUAL_PARTS = 8, MIN_DAYS = 7, MAX_PARTS = 28, POINTS = 168 };

const char *const regress_kinds[REGRESS_KINDS] = { "version", "window" };
const char *const regress_results[REGRESS_RESULTS] = { "compared", "not enough samples",
						       "nothing to compare with", "failed" };

/* ---- judging */

bool regress_has_enough(const struct comparison *c)
{
	return c->has_events && c->old.nevents >= min_samples && c->new.nevents >= min_samples &&
	       c->old.nsources >= MIN_PARTS && c->new.nsources >= MIN_PARTS;
}

static bool matters(const struct compare_row *row, const struct regress_limits *limits,
		    const struct regress *r)
{
	/* Of the cores that the service takes now: more load is no regression. */
	return row->change >= limits->min_share ||
	       (!r->is_gauge && unit_is_time(r->unit) &&
		row->change * r->new.cores * r->rest[1] >= limits->min_cores);
}

void regress_judge(struct arena *a, const struct comparison *c, const struct regress_limits *limits,
		   struct regress *out)
{
	vec(struct regress_finding) found = { 0 };

	out->result = REGRESS_COMPARED;
	out->nfunctions = (uint32_t)c->nrows;
	out->dispersion = fmax(1, c->dispersion);
	out->detectable = compare_detectable(c, usual_share);
	for (size_t i = 0; i < c->nrows && found.n < REGRESS_MAX_FINDINGS; i++) {
		const struct compare_row *row = &c->rows[i];

		if (row->verdict != VERDICT_MORE || !matters(row, limits, out))
			continue;
		vec_push(&found,
			 (struct regress_finding){
				 .function = row->name,
				 .old_cores = row->old_share * out->old.cores * out->rest[0],
				 .new_cores = row->new_share * out->new.cores * out->rest[1],
				 .old_share = row->old_share,
				 .new_share = row->new_share,
				 .change = row->change,
				 .low = row->change_low,
				 .high = row->change_high,
				 .old_samples = row->old_events,
				 .new_samples = row->new_events,
				 .q = row->q,
				 .changed = out->began });
	}
	out->n = found.n;
	out->findings = vec_adopt(a, &found);
}

/* The function that takes so much less that it may be why others take more; or NULL. */
static const struct compare_row *fastest(const struct comparison *c)
{
	const struct compare_row *less = NULL, *more = NULL;

	/* They are in order of |change|. */
	for (size_t i = 0; i < c->nrows && !(less && more); i++) {
		if (!less && c->rows[i].verdict == VERDICT_LESS)
			less = &c->rows[i];
		if (!more && c->rows[i].verdict == VERDICT_MORE)
			more = &c->rows[i];
	}
	return less && more && -less->change > min_lead * more->change ? less : NULL;
}

static void take_out(struct compare_source *s, struct str function)
{
	for (size_t i = 0; i < s->n; i++) {
		double left = 1 - s->values[i] / s->total;

		if (!str_eq(s->names[i], function) || s->values[i] <= 0)
			continue;
		s->total -= s->values[i];
		s->total_square -= s->squares[i];
		s->nevents *= left;
		s->values[i] = s->squares[i] = 0;
		return;
	}
}

bool regress_compare(struct arena *a, struct compare_source *sources, size_t n,
		     const atomic_bool *stop, struct regress *out, struct comparison *c,
		     struct err *e)
{
	struct compare_params params = { .mode = COMPARE_SHARE,
					 .is_ordered = true,
					 .fdr = fdr,
					 .fail_over = -1,
					 .max_rows = 1,
					 .stop = stop };
	double totals[2];
	const struct compare_row *row;

	if (!compare(a, sources, n, &params, c, e))
		return false;
	totals[0] = c->old.total;
	totals[1] = c->new.total;
	out->rest[0] = out->rest[1] = 1;
	out->nfaster = 0;
	while (regress_has_enough(c) && out->nfaster < MAX_FASTER && (row = fastest(c))) {
		struct str function = row->name;

		for (size_t i = 0; i < n; i++)
			take_out(&sources[i], function);
		if (!compare(a, sources, n, &params, c, e))
			return false;
		out->rest[0] = c->old.total / totals[0];
		out->rest[1] = c->new.total / totals[1];
		out->nfaster++;
	}
	return true;
}

size_t regress_change_point(const double *function, const double *all, size_t n)
{
	double later = 0, later_all = 0, before = 0, before_all = 0, best = 0;
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		later += function[i];
		later_all += all[i];
	}
	/* The division that leaves least variance within its two sides. */
	for (size_t i = 0; i + 1 < n; i++) {
		double rise;

		before += function[i];
		before_all += all[i];
		later -= function[i];
		later_all -= all[i];
		if (before_all <= 0 || later_all <= 0)
			continue;
		rise = later / later_all - before / before_all;
		if (rise > 0 && rise * rise * before_all * later_all > best) {
			best = rise * rise * before_all * later_all;
			at = i + 1;
		}
	}
	return at;
}

/* ---- counting */

struct counting {
	struct arena *a;
	const struct regress_params *p;
	struct regress *out;
	vec(struct compare_source) sources;
	vec(int64_t) starts; /* of their parts */
	struct store_matcher matchers[3];
	size_t nmatchers;
};

static struct store_query query_of(struct counting *c, const struct regress_side *side)
{
	c->matchers[0] = (struct store_matcher){ .name = STR("service"), .value = c->p->service };
	c->matchers[1] = (struct store_matcher){ .name = STR("type"), .value = c->p->type };
	c->matchers[2] =
		(struct store_matcher){ .name = c->p->version_label, .value = side->version };
	return (struct store_query){ .matchers = c->matchers,
				     .nmatchers = side->version.n ? 3 : 2,
				     .from = side->from,
				     .to = side->to,
				     .stop = c->p->stop };
}

static bool count_part(struct counting *c, struct regress_side *side, const struct store_query *q,
		       struct err *e)
{
	struct arena scratch = { 0 };
	struct strings strings;
	struct store_merged merged;
	struct compare_source source = { .name = side == &c->out->new ? "new" : "old",
					 .is_new = side == &c->out->new };
	struct compare_count_params params = { .keep = { .inlines = true, .function = true },
					       .whole = &merged.profile,
					       .stop = c->p->stop };
	bool ok;

	strings_init(&strings);
	ok = store_merge(c->p->store, q, STORE_AS_TYPE, &scratch, &strings, &merged, e) &&
	     profile_sample_index(&merged.profile, "", &params.value, e) &&
	     compare_count(c->a, &merged.profile, &params, &source, e);
	if (ok) {
		vec_push(&c->sources, source);
		vec_push(&c->starts, q->from);
		side->nprofiles += merged.nprofiles;
		if (merged.nseries > side->nseries)
			side->nseries = merged.nseries;
		side->nparts++;
		side->samples += source.nevents;
	}
	strings_release(&strings);
	arena_release(&scratch);
	return ok;
}

/* A day's load goes up and down: parts are days, if there are enough to tell how they differ. */
static int64_t parts_wanted(const struct store_query *q)
{
	/* From the first profile to the last it is a little less than whole days. */
	int64_t days = int_add(int_distance(q->from, q->to), DAY / 2) / DAY;

	if (days < MIN_DAYS)
		return USUAL_PARTS;
	return days < MAX_PARTS ? days : MAX_PARTS;
}

/* One of which there are sums. */
static int64_t level_step(const struct store_query *q)
{
	return int_distance(q->from, q->to) > DAY / 4 ? HOUR : 5 * MINUTE;
}

/* What of a point's step was asked for. */
static double asked_time(const struct store_query *q, int64_t step, const struct store_point *p)
{
	int64_t end = int_add(p->time, step);

	return (double)(q->to < end ? q->to : end) -
	       (double)(q->from > p->time ? q->from : p->time);
}

/* A side ends with a profile, whose time goes on until another would have come. */
static struct store_query whole_time(const struct regress_side *side, const struct store_query *q)
{
	double rounds = (double)side->nprofiles / (double)(side->nseries ? side->nseries : 1);
	double length = (double)int_distance(side->from, side->to);
	struct store_query whole = *q;

	if (rounds > 1)
		whole.to = int_add(q->to, int_from_double(fmax(0, length / (rounds - 1) - 1)));
	return whole;
}

/* What the service takes, or, of gauges, has, on average over the time in which it was there. */
static bool measure_side(struct counting *c, struct regress_side *side, const struct store_query *q,
			 struct err *e)
{
	struct store_series_params params = { .query = whole_time(side, q),
					      .step = level_step(q),
					      .has_levels = true,
					      .how = STORE_AS_TYPE };
	struct store_line *lines;
	double sum = 0, time = 0, factor = 1;
	struct str name;
	size_t n;

	if (!store_series(c->p->store, &params, c->a, &lines, &n, e))
		return e->kind == ERR_NOTFOUND;
	if (!n)
		return true;
	for (size_t i = 0; i < lines[0].n; i++) {
		const struct store_point *p = &lines[0].points[i];
		double asked = asked_time(&params.query, params.step, p);

		if (isfinite(p->level) && asked > 0) {
			sum += p->level * asked;
			time += asked;
		}
	}
	c->out->is_gauge = lines[0].is_gauge;
	if (!lines[0].is_gauge && unit_is_time(lines[0].unit))
		factor = unit_to_default(lines[0].unit, &name);
	side->cores = time > 0 ? sum / time * factor : 0;
	return true;
}

/* *is_there: it has profiles. */
static bool count_side(struct counting *c, struct regress_side *side, bool *is_there, struct err *e)
{
	struct store_query q = query_of(c, side);
	int64_t n;

	*is_there = parts_narrow(c->p->store, &q, c->a, e);
	if (!*is_there)
		return e->kind == ERR_NOTFOUND;
	side->from = q.from;
	side->to = q.to;
	n = parts_count(&q, parts_wanted(&q));
	for (int64_t i = 0; i < n; i++) {
		struct store_query part = parts_at(&q, n, i);

		if (!count_part(c, side, &part, e) && e->kind != ERR_NOTFOUND)
			return false;
	}
	*is_there = side->nparts;
	return !*is_there || measure_side(c, side, &q, e);
}

/* ---- which sides */

static void choose_windows(struct counting *c)
{
	const struct regress_params *p = c->p;

	c->out->new = (struct regress_side){ .from = p->now - p->window, .to = p->now };
	c->out->began = c->out->new.from;
	c->out->old = (struct regress_side){ .from = p->now - 2 * p->window,
					     .to = p->now - p->window - 1 };
}

/* The newest by when they were seen first; of those before it, the newest that still was there
 * within the window. */
static const struct store_name *newest(const struct store_name *names, size_t n,
				       const struct store_name *before, int64_t alive)
{
	const struct store_name *found = NULL;

	for (size_t i = 0; i < n; i++)
		if (&names[i] != before && names[i].name.n && names[i].last >= alive &&
		    (!before || names[i].first < before->first) &&
		    (!found || names[i].first > found->first))
			found = &names[i];
	return found;
}

/* Does it have profiles at both ends, give or take a quarter? */
static bool is_covered(struct counting *c, const struct regress_side *side, bool *is, struct err *e)
{
	struct store_query q = query_of(c, side);
	int64_t from = side->from, to = side->to, edge = (to - from) / 4;

	*is = parts_narrow(c->p->store, &q, c->a, e);
	if (!*is)
		return e->kind == ERR_NOTFOUND;
	*is = q.from <= from + edge && q.to >= to - edge;
	return true;
}

/* What a service does goes up and down with the day: the old side is the same time of an earlier
 * day, the last that has it. If there is none it stays as it is. */
static bool find_earlier_day(struct counting *c, int64_t new_first, int64_t old_first,
			     struct err *e)
{
	const struct regress_side *new = &c->out->new;

	for (int64_t n = (new->to - new_first) / DAY + 1; n <= MAX_DAYS_BACK; n++) {
		struct regress_side side = { .version = c->out->old.version,
					     .from = new->from - n *DAY,
					     .to = new->to - n *DAY };
		bool is;

		if (side.to < old_first)
			return true;
		if (!is_covered(c, &side, &is, e))
			return false;
		if (is) {
			c->out->old = side;
			return true;
		}
	}
	return true;
}

static bool choose_versions(struct counting *c, bool *are_two, struct err *e)
{
	const struct regress_params *p = c->p;
	struct store_query all = query_of(c, &(struct regress_side){ .from = 0, .to = p->now });
	const struct store_name *new, *old = NULL;
	struct store_name *names;
	int64_t start, length;
	size_t n;

	if (!store_names(p->store, &all, p->version_label, c->a, &names, &n, e))
		return false;
	new = newest(names, n, NULL, p->now - p->window);
	if (new)
		old = newest(names, n, new, new->first - p->window);
	*are_two = old;
	if (!old)
		return true;
	start = new->first > p->now - p->window ? new->first : p->now - p->window;
	length = p->now - start;
	c->out->began = new->first;
	c->out->new = (struct regress_side){ .version = new->name, .from = start, .to = p->now };
	c->out->old = (struct regress_side){ .version = old->name, .from = start, .to = p->now };
	if (old->last >= start + length / 2)
		return true;
	c->out->old.to = new->first - 1;
	c->out->old.from = new->first - (length > MINUTE ? length : MINUTE);
	return length < HOUR || find_earlier_day(c, new->first, old->first, e);
}

/* ---- when */

static bool read_line(struct counting *c, struct str function, int64_t from, int64_t step,
		      double *values, size_t n, struct err *e)
{
	struct regress_side both = { .from = from, .to = c->out->new.to };
	struct store_series_params params = { .query = query_of(c, &both),
					      .function = function,
					      .is_flat = true,
					      .step = step,
					      .how = STORE_AS_TYPE };
	struct store_line *lines;
	size_t nlines;

	if (!store_series(c->p->store, &params, c->a, &lines, &nlines, e))
		return e->kind == ERR_NOTFOUND;
	for (size_t i = 0; nlines && i < lines[0].n; i++) {
		int64_t at = (lines[0].points[i].time - from) / step;

		if (at >= 0 && (size_t)at < n)
			values[at] = lines[0].points[i].value;
	}
	return true;
}

static double value_of(const struct compare_source *s, struct str function)
{
	for (size_t i = 0; i < s->n; i++)
		if (str_eq(s->names[i], function))
			return s->values[i];
	return 0;
}

/* The part with which it changed. */
static void find_part(struct counting *c, struct regress_finding *f)
{
	size_t n = 0, at;
	double *values = arena_many(c->a, c->sources.n, double);
	double *all = arena_many(c->a, c->sources.n, double);
	int64_t *starts = arena_many(c->a, c->sources.n, int64_t);

	for (int is_new = 0; is_new < 2; is_new++)
		for (size_t i = 0; i < c->sources.n; i++) {
			if (c->sources.at[i].is_new != is_new)
				continue;
			values[n] = value_of(&c->sources.at[i], f->function);
			all[n] = c->sources.at[i].total;
			starts[n++] = c->starts.at[i];
		}
	at = regress_change_point(values, all, n);
	if (at)
		f->changed = starts[at];
}

/* Of windows; a version's change is when it came. Each takes a scan of all the time: only those of
 * the largest changes are exact, others are of the parts that were counted. */
static bool find_times(struct counting *c, struct err *e)
{
	int64_t span = c->out->new.to - c->out->old.from, step = MINUTE, from;
	size_t n;
	double *all;

	if (c->p->kind == REGRESS_VERSIONS || !c->out->n)
		return true;
	if (span / (2 * POINTS) > MINUTE)
		step = (span / (2 * POINTS) + MINUTE - 1) / MINUTE * MINUTE;
	from = c->out->old.from - c->out->old.from % step;
	n = (size_t)((c->out->new.to - from) / step) + 1;
	all = arena_many(c->a, n, double);
	if (!read_line(c, STR(""), from, step, all, n, e))
		return false;
	for (size_t i = 0; i < c->out->n; i++) {
		struct regress_finding *f = &c->out->findings[i];
		double *values;
		size_t at;

		if (i >= MAX_EXACT_TIMES) {
			find_part(c, f);
			continue;
		}
		values = arena_many(c->a, n, double);
		if (!read_line(c, f->function, from, step, values, n, e))
			return false;
		at = regress_change_point(values, all, n);
		if (at)
			f->changed = from + (int64_t)at * step;
	}
	return true;
}

/* ---- all of it */

static bool compare_sides(struct counting *c, struct err *e)
{
	struct comparison comparison;

	if (!regress_compare(c->a, c->sources.at, c->sources.n, c->p->stop, c->out, &comparison, e))
		return false;
	c->out->sample_type = comparison.type;
	c->out->unit = comparison.unit;
	if (!regress_has_enough(&comparison)) {
		c->out->result = REGRESS_FEW;
		return true;
	}
	regress_judge(c->a, &comparison, &c->p->limits, c->out);
	return find_times(c, e);
}

static bool run(struct counting *c, struct err *e)
{
	bool are_two = true, has_old = false, has_new = false;

	if (c->p->kind == REGRESS_WINDOWS)
		choose_windows(c);
	else if (!choose_versions(c, &are_two, e))
		return false;
	if (!are_two) {
		c->out->result = REGRESS_NOTHING;
		return true;
	}
	if (!count_side(c, &c->out->new, &has_new, e) || !count_side(c, &c->out->old, &has_old, e))
		return false;
	if (!has_old || !has_new) {
		c->out->result = REGRESS_NOTHING;
		return true;
	}
	return compare_sides(c, e);
}

bool regress_run(struct arena *a, const struct regress_params *p, struct regress *out,
		 struct err *e)
{
	struct counting c = { .a = a, .p = p, .out = out };
	bool ok;

	*out = (struct regress){ 0 };
	ok = run(&c, e);
	vec_release(&c.sources);
	vec_release(&c.starts);
	if (stop_asked(p->stop))
		return err_set(e, ERR_IO, "nobody waits for it any more");
	/* One service that cannot be compared, as one without samples or with a damaged profile,
	 * keeps no other from it. */
	if (!ok) {
		out->result = REGRESS_FAILED;
		out->why = (struct str){ str_dup(a, str_of(e->text)), strlen(e->text) };
	}
	return true;
}
