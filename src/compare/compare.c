#include "compare/compare.h"

#include <math.h>
#include <stdlib.h>

#include "base/unit.h"
#include "base/vec.h"
#include "compare/drift.h"
#include "compare/stats.h"

/* What the header promises. */
static const double min_events = 10;  /* of a function that is tested, on both sides */
static const double same_ratio = 1.5; /* a change that "same" rules out, up or down */
static const double interval_alpha = 0.05;
/* How many degrees of freedom the mean dispersion counts for. */
static const double min_prior = 4, max_prior = 100;
/* Functions with fewer events per profile say nothing about dispersion. */
static const double min_dispersion_events = 5;
static const double min_dispersion_functions = 5;
/* What is known of the memory before looking: the ratio of drift.h is that of this memory, give or
 * take so much. And however many functions there are, many do the same: it is never known better
 * than by so much. */
static const double usual_memory = 0.5, ratio_spread = 0.2, min_error = 0.07;

/* What a function has on one side, in events of the typical weight of their profile. */
struct sum {
	double value;		    /* V, in the common unit */
	double events;		    /* sum of V / W, where W is the profile's mean weight */
	double square;		    /* sum of Q / W^2 */
	double square_per_exposure; /* sum of (V / W)^2 / exposure: the spread between profiles */
	/* Of neighbours i and j, if sources are ordered: sums of x_i x_j / sqrt(E_i E_j), and of
	 * x_i sqrt(E_j / E_i), where x are events and E exposures. */
	double product, lean;
	double last; /* events in the source `last_source`, over the root of its exposure */
	size_t last_source;
};

struct tally {
	struct str name;
	struct sum side[2]; /* old, new */
	double dispersion;  /* between profiles of a side, of this function alone */
	double expected;    /* the same, from what all functions do */
};

struct comparer {
	struct arena *a;
	const struct compare_params *params;
	struct comparison *out;
	vec(struct tally) tallies;
	struct map map;
	double exposure[2]; /* in events of the typical weight, as `events` above */
	struct tally total; /* which is not one of `tallies`, or it would be tested with them */
	double mean_weight;
	double degrees;	    /* between profiles */
	double prior;	    /* degrees of freedom of the mean dispersion */
	double alpha;	    /* of intervals, for the normal distribution */
	double growth;	    /* of what is more than 1 in a dispersion, by what neighbours share */
	double independent; /* degrees that are left by it */
	struct drift_side parts[2]; /* if sources are ordered */
	/* Then of each: */
	double *lean;	      /* what an event adds to `lean` */
	size_t source;	      /* that is being added, from 1 */
	size_t *before;	      /* number of the one before it on its side, or 0 */
	double neighbours[2]; /* sum of sqrt(E_i E_j) */
};

/* ---- adding up */

static struct compare_side *side_of(struct comparer *c, bool is_new)
{
	return is_new ? &c->out->new : &c->out->old;
}

struct tally_key {
	const struct comparer *c;
	struct str name;
};

static bool same_tally(const void *ctx, uint32_t index)
{
	const struct tally_key *key = ctx;

	return str_eq(key->c->tallies.at[index].name, key->name);
}

static struct tally *tally_at(struct comparer *c, struct str name)
{
	struct tally_key key = { c, name };
	uint32_t at = map_put(&c->map, hash_bytes(map_seed(), name.p, name.n), c->tallies.n,
			      same_tally, &key);

	if (at == c->tallies.n)
		vec_push(&c->tallies, (struct tally){ .name = name });
	return &c->tallies.at[at];
}

/* The factor from this source's unit to the one that everything is compared in. */
static double unit_factor(const struct comparer *c, const struct compare_source *s)
{
	struct str unit;

	return str_eq(s->unit, c->out->unit) ? 1 : unit_scale(1, s->unit, c->out->unit, &unit);
}

static double exposure_of(const struct comparer *c, const struct compare_source *s, double factor)
{
	switch (c->params->mode) {
	case COMPARE_PER_SECOND:
		return s->duration_s;
	case COMPARE_PER_RUN:
		return 1;
	case COMPARE_SHARE:
		break;
	}
	return s->total * factor;
}

/* What an event of a source weighs on average; of one without events, as much as all others do. */
static double mean_weight(const struct comparer *c, const struct compare_source *s, double factor)
{
	return s->total_square > 0 ? factor * s->total_square / s->total : c->mean_weight;
}

static void find_mean_weight(struct comparer *c, const struct compare_source *sources, size_t n)
{
	double values = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		double factor = unit_factor(c, &sources[i]);

		values += sources[i].total * factor;
		squares += sources[i].total_square * factor * factor;
	}
	c->mean_weight = squares > 0 ? squares / values : 1;
}

static void add_neighbours(const struct comparer *c, struct sum *sum, double events,
			   double exposure)
{
	double root = sqrt(exposure);

	if (sum->last_source && sum->last_source == c->before[c->source])
		sum->product += sum->last * events / root;
	sum->lean += events * c->lean[c->source];
	sum->last = events / root;
	sum->last_source = c->source;
}

static void add_value(const struct comparer *c, struct sum *sum, double value, double square,
		      double weight, double exposure)
{
	double events = value / weight;

	sum->value += value;
	sum->events += events;
	sum->square += square / (weight * weight);
	sum->square_per_exposure += events * events * weight / exposure;
	if (c->params->is_ordered)
		add_neighbours(c, sum, events, exposure / weight);
}

static void add_source(struct comparer *c, const struct compare_source *s)
{
	struct compare_side *side = side_of(c, s->is_new);
	double factor = unit_factor(c, s), exposure = exposure_of(c, s, factor);
	double weight = mean_weight(c, s, factor);

	side->total += s->total * factor;
	side->nevents += s->nevents;
	side->duration_s += s->duration_s;
	side->exposure += exposure;
	side->nsources++;
	c->exposure[s->is_new] += exposure / weight;
	add_value(c, &c->total.side[s->is_new], s->total * factor,
		  s->total_square * factor * factor, weight, exposure);
	for (size_t i = 0; i < s->n; i++)
		if (s->values[i] > 0)
			add_value(c, &tally_at(c, s->names[i])->side[s->is_new],
				  s->values[i] * factor, s->squares[i] * factor * factor, weight,
				  exposure);
}

static bool check_type(const struct compare_source *first, const struct compare_source *s,
		       struct err *e)
{
	return unit_compatible(first->type, first->unit, s->type, s->unit) ||
	       err_set(e, ERR_USAGE,
		       "%s has values of %.*s (%.*s), %s of %.*s (%.*s); choose a type that all of "
		       "them have with -sample_index",
		       first->name, STR_ARG(first->type), STR_ARG(first->unit), s->name,
		       STR_ARG(s->type), STR_ARG(s->unit));
}

static bool check_source(const struct comparer *c, const struct compare_source *s, struct err *e)
{
	if (c->params->mode != COMPARE_PER_SECOND)
		return true;
	if (str_has_prefix(s->type, STR("inuse")))
		return err_set(e, ERR_USAGE,
			       "%.*s is what there is at one moment: it has no rate per second",
			       STR_ARG(s->type));
	return s->duration_s > 0 || err_set(e, ERR_FORMAT,
					    "%s does not say how long it took; leave out "
					    "--per-second",
					    s->name);
}

/* Nothing to take shares of, and no run that says so. */
static bool is_empty(const struct comparer *c, const struct compare_source *s)
{
	return s->total <= 0 && c->params->mode == COMPARE_SHARE;
}

/* Which sources are neighbours, numbered from 1, and what that makes of their events. */
static void find_neighbours(struct comparer *c, const struct compare_source *sources, size_t n)
{
	double *exposure = arena_many(c->a, n + 1, double);
	size_t last[2] = { 0 };

	for (int is_new = 0; is_new < 2; is_new++)
		c->parts[is_new].exposure = arena_many(c->a, n, double);
	c->lean = arena_many(c->a, n + 1, double);
	c->before = arena_many(c->a, n + 1, size_t);
	for (size_t i = 1; i <= n; i++) {
		const struct compare_source *s = &sources[i - 1];
		double factor = unit_factor(c, s);
		size_t before = last[s->is_new];

		if (is_empty(c, s))
			continue;
		exposure[i] = exposure_of(c, s, factor) / mean_weight(c, s, factor);
		c->parts[s->is_new].exposure[c->parts[s->is_new].n++] = exposure[i];
		c->before[i] = before;
		last[s->is_new] = i;
		if (!before)
			continue;
		c->lean[before] += sqrt(exposure[i] / exposure[before]);
		c->lean[i] += sqrt(exposure[before] / exposure[i]);
		c->neighbours[s->is_new] += sqrt(exposure[i] * exposure[before]);
	}
}

static bool add_sources(struct comparer *c, const struct compare_source *sources, size_t n,
			struct err *e)
{
	c->out->has_events = true;
	c->out->type = sources[0].type;
	c->out->unit = sources[0].unit;
	find_mean_weight(c, sources, n);
	if (c->params->is_ordered)
		find_neighbours(c, sources, n);
	for (size_t i = 0; i < n; i++) {
		if (!check_type(&sources[0], &sources[i], e) || !check_source(c, &sources[i], e))
			return false;
		if (is_empty(c, &sources[i]))
			continue;
		c->source = i + 1;
		c->out->has_events &= sources[i].has_events || sources[i].total <= 0;
		add_source(c, &sources[i]);
	}
	for (int is_new = 0; is_new < 2; is_new++)
		if (c->params->mode == COMPARE_SHARE && !side_of(c, is_new)->nsources)
			return err_set(e, ERR_NOTFOUND, "nothing to compare: no %s samples in %s",
				       is_new ? "new" : "old", sources[is_new ? n - 1 : 0].name);
	return true;
}

/* ---- noise */

/* Events of a function on both sides, or of all the rest. */
struct part {
	double old, new;
	double weight; /* r: of a typical event, in units of the mean event */
	double narrow; /* c: how much of the variance is left when the total is given */
};

static struct part part_of(const struct comparer *c, const struct tally *f, bool is_rest)
{
	const struct sum *old = &f->side[0], *new = &f->side[1];
	struct part x = { old->events, new->events, 1, 1 };
	double square = old->square + new->square, all = c->exposure[0] + c->exposure[1];
	double others = all - square; /* with shares, exposure is also the sum of all squares */
	double share = (x.old + x.new) / all;

	if (is_rest) {
		x.old = c->exposure[0] - x.old;
		x.new = c->exposure[1] - x.new;
		square = others;
		others = all - square;
		share = 1 - share;
	}
	if (x.old + x.new > 0 && square > 0)
		x.weight = square / (x.old + x.new);
	/* The others' share has noise too, even if there are none: as Agresti and Coull have it,
	 * two events more. */
	if (c->params->mode == COMPARE_SHARE && square > 0)
		x.narrow = fmax((1 - share) * (1 - share) + share * share * others / square,
				2 / (all / x.weight + 4));
	return x;
}

static double both(const struct part *x)
{
	return x->old + x->new;
}

/* What events must be divided by to have the variance of a count. */
static double noise_of(const struct part *x, double dispersion)
{
	return x->weight * x->narrow * dispersion;
}

/* Pearson's chi-square of how a function's events are spread over the profiles of each side. */
static double chi_square(const struct comparer *c, const struct tally *f)
{
	struct part x = part_of(c, f, false);
	double sum = 0;

	for (int i = 0; i < 2; i++) {
		const struct sum *s = &f->side[i];
		double rate = s->events / c->exposure[i];

		if (s->events > 0)
			sum += s->square_per_exposure / rate - s->events;
	}
	return fmax(0, sum / noise_of(&x, 1));
}

/* Of a function, in one profile. */
static double mean_events(const struct comparer *c, const struct tally *f)
{
	struct part x = part_of(c, f, false);

	return both(&x) / x.weight / (double)(c->out->old.nsources + c->out->new.nsources);
}

/* What lagged() is by chance alone: if one has more than the mean, others have less. */
static double chance_lag(const struct comparer *c)
{
	return c->neighbours[0] / c->exposure[0] + c->neighbours[1] / c->exposure[1];
}

/* The sum of products of what neighbours have more than expected, in the units of chi_square. */
static double lagged(const struct comparer *c, const struct tally *f)
{
	struct part x = part_of(c, f, false);
	double sum = 0;

	for (int i = 0; i < 2; i++) {
		const struct sum *s = &f->side[i];
		double rate = s->events / c->exposure[i];

		if (s->events > 0)
			sum += s->product / rate - s->lean + rate * c->neighbours[i];
	}
	return sum / noise_of(&x, 1);
}

/* How much of what parts of a side differ by, chance apart, goes on to the next one: the memory,
 * one for all functions, as of a few sources each alone would tell nothing. It is rather taken too
 * high, as it is what keeps a drift from looking like a change: by one standard error up. */
static double estimate_memory(const struct comparer *c)
{
	struct drift usual = drift_of(c->parts, usual_memory);
	double usual_ratio = usual.neighbours / usual.inside,
	       prior = 1 / (ratio_spread * ratio_spread);
	double inside = 0, neighbours = 0, noise = 0, known = 0, ratio = 0;

	for (size_t i = 0; i < c->tallies.n; i++) {
		const struct tally *f = &c->tallies.at[i];
		double events = mean_events(c, f), weight = events / (f->expected * f->expected), x,
		       y;

		if (events < min_dispersion_events)
			continue;
		x = weight * (chi_square(c, f) - c->degrees);
		y = weight * (lagged(c, f) + chance_lag(c));
		inside += x;
		neighbours += y;
		noise += (y - usual_ratio * x) * (y - usual_ratio * x);
	}
	if (inside > 0 && noise > 0) {
		known = fmin(inside * inside / noise, 1 / (min_error * min_error));
		ratio = neighbours / inside;
	}
	ratio = (known * ratio + prior * usual_ratio) / (known + prior);
	return drift_memory(c->parts, ratio + 1 / sqrt(known + prior));
}

/* What the memory makes of dispersions: phi becomes that of two sides which are drawn again and
 * again, and counts for fewer degrees of freedom. */
static void estimate_drift(struct comparer *c)
{
	double old = c->exposure[0], new = c->exposure[1], nsources;
	struct drift drift;

	c->growth = 1;
	c->independent = c->degrees;
	if (!c->params->is_ordered || old <= 0 || new <= 0)
		return;
	c->out->memory = estimate_memory(c);
	drift = drift_of(c->parts, c->out->memory);
	nsources = (double)(c->out->old.nsources + c->out->new.nsources) / 2;
	c->growth = c->degrees * drift.between / ((1 / old + 1 / new) * drift.inside);
	c->independent = c->degrees * drift.nindependent / nsources;
}

/* How much the mean dispersion says about a single function, in degrees of freedom: if dispersions
 * differ among functions by no more than chance, very much. From the variance of the F
 * distribution, which estimates follow when the true dispersions are inverse chi-square
 * distributed. */
static double prior_degrees(double mean, double variance, double degrees)
{
	double spread = variance / (mean * mean) * degrees, prior;

	if (spread <= 2)
		return max_prior;
	prior = (4 * spread + 2 * degrees - 4) / (spread - 2);
	return fmin(max_prior, fmax(min_prior, prior));
}

/* By how much dispersion grows with a function's events, each counting for as much as it can tell:
 * that of many varies as much as it is. `slope` is a first guess. */
static double fit_slope(const struct comparer *c, double slope)
{
	double excess = 0, events = 0;

	for (size_t i = 0; i < c->tallies.n; i++) {
		const struct tally *f = &c->tallies.at[i];
		double n = mean_events(c, f), weight = n / ((1 + slope * n) * (1 + slope * n));

		if (n < min_dispersion_events)
			continue;
		excess += weight * (f->dispersion - 1);
		events += weight * n;
	}
	return events > 0 ? fmax(0, excess / events) : 0;
}

/* What to expect of a function before looking at its own profiles. If runs differ by a percentage,
 * say of their time, dispersion grows with the number of events; if events come in clumps, it is
 * the same for all. Whichever is more. */
static void expect_dispersion(struct comparer *c)
{
	double n = 0, dispersion = 0, events = 0, slope;

	for (size_t i = 0; i < c->tallies.n; i++) {
		struct tally *f = &c->tallies.at[i];

		f->dispersion = chi_square(c, f) / c->degrees;
		if (mean_events(c, f) < min_dispersion_events)
			continue;
		dispersion += f->dispersion;
		events += mean_events(c, f);
		n++;
	}
	c->out->dispersion = n > 0 ? fmax(1, dispersion / n) : 1;
	slope = events > 0 ? fmax(0, (dispersion - n) / events) : 0;
	c->out->slope = slope = fit_slope(c, slope);
	for (size_t i = 0; i < c->tallies.n; i++)
		c->tallies.at[i].expected =
			fmax(c->out->dispersion, 1 + slope * mean_events(c, &c->tallies.at[i]));
	c->total.dispersion = chi_square(c, &c->total) / c->degrees;
	c->total.expected = c->out->dispersion;
}

static double student_degrees(const struct comparer *c)
{
	return c->independent + c->prior;
}

static void estimate_dispersion(struct comparer *c)
{
	size_t nsources = c->out->old.nsources + c->out->new.nsources;
	double n = 0, sum = 0, squares = 0, mean;

	c->degrees = (double)nsources - (c->out->old.nsources > 0) - (c->out->new.nsources > 0);
	c->alpha = interval_alpha;
	if (c->degrees < 1)
		return;
	expect_dispersion(c);
	estimate_drift(c);
	for (size_t i = 0; i < c->tallies.n; i++) {
		const struct tally *f = &c->tallies.at[i];
		double relative = f->dispersion / f->expected;

		if (mean_events(c, f) < min_dispersion_events)
			continue;
		sum += relative;
		squares += relative * relative;
		n++;
	}
	mean = sum / fmax(n, 1);
	c->prior = min_prior;
	if (n >= min_dispersion_functions && mean > 0)
		c->prior = prior_degrees(mean, fmax(0, squares - sum * mean) / (n - 1),
					 c->independent);
	c->out->growth = c->growth;
	c->out->degrees = student_degrees(c);
	c->alpha = erfc(stats_student_quantile(interval_alpha, c->out->degrees) / M_SQRT2);
}

static double dispersion_of(const struct comparer *c, const struct tally *f)
{
	double dispersion;

	if (c->degrees < 1)
		return 1;
	dispersion = (c->prior * f->expected + c->independent * f->dispersion) /
		     (c->prior + c->independent);
	return fmax(1, 1 + (dispersion - 1) * c->growth);
}

/* ---- tests */

static double p_value(const struct comparer *c, const struct part *x, double dispersion)
{
	double noise = noise_of(x, dispersion),
	       chance = c->exposure[1] / (c->exposure[0] + c->exposure[1]);
	double p = stats_binomial(x->new / noise, both(x) / noise, chance, fmax(1, 1 / noise));

	if (c->degrees < 1 || p >= 1)
		return p;
	return stats_student(stats_normal_quantile(p / 2), student_degrees(c));
}

/* Is the interval of the ratio within 1 / same_ratio .. same_ratio? */
static bool is_same(const struct comparer *c, const struct part *x, double dispersion)
{
	double noise = noise_of(x, dispersion), k = x->new / noise, n = both(x) / noise;
	double odds = c->exposure[1] / c->exposure[0];
	double most = odds * same_ratio, least = odds / same_ratio;

	return stats_beta(n - k, k + 1, 1 / (1 + most)) <= c->alpha / 2 &&
	       stats_beta(k, n - k + 1, least / (1 + least)) <= c->alpha / 2;
}

/* Sets p, and the verdict that holds unless the false discovery rate says otherwise. Returns
 * whether it was tested. */
static bool test(const struct comparer *c, const struct tally *f, struct compare_row *row)
{
	struct part x = part_of(c, f, false), rest;
	double dispersion = dispersion_of(c, f);
	bool is_tested = both(&x) / (x.weight * dispersion) >= min_events;

	row->p = row->q = 1;
	row->verdict = is_tested && is_same(c, &x, dispersion) ? VERDICT_SAME : VERDICT_FEW;
	if (!is_tested)
		return false;
	if (c->params->mode == COMPARE_SHARE && both(&x) > (c->exposure[0] + c->exposure[1]) / 2) {
		rest = part_of(c, f, true);
		row->p = p_value(c, &rest, dispersion);
	} else {
		row->p = p_value(c, &x, dispersion);
	}
	return true;
}

/* The change that a ratio new : old means, as a share of the old total, if the function has as much
 * on both sides together as was seen: that is known far better than how it is divided. */
static double change_of(const struct comparer *c, const struct part *x, double ratio)
{
	double old = c->exposure[0], new = c->exposure[1];
	double rate = isfinite(ratio) ? both(x) * (ratio - 1) / (old + new *ratio) : both(x) / new;
	double all = c->total.side[0].events / old;

	return all > 0 ? rate / all : rate;
}

/* The interval of the ratio new : old. */
static void find_interval(const struct comparer *c, const struct tally *f, struct compare_row *row)
{
	struct part x = part_of(c, f, false);
	double noise = noise_of(&x, dispersion_of(c, f));
	double odds = c->exposure[0] / c->exposure[1], low, high;

	stats_binomial_interval(x.new / noise, both(&x) / noise, c->alpha, &low, &high);
	row->ratio_low = low / (1 - low) * odds;
	row->ratio_high = high < 1 ? high / (1 - high) * odds : INFINITY;
	row->change_low = change_of(c, &x, row->ratio_low);
	row->change_high = change_of(c, &x, row->ratio_high);
}

/* ---- rows */

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

/* Of a function's typical event, in units of the mean event. */
static double event_weight(const struct tally *f)
{
	return ratio(f->side[0].square + f->side[1].square, f->side[0].events + f->side[1].events);
}

static void fill_row(const struct comparer *c, const struct tally *f, struct compare_row *row)
{
	const struct compare_side *old = &c->out->old, *new = &c->out->new;
	double old_value = f->side[0].value, new_value = f->side[1].value;
	double old_rate = ratio(old_value, old->exposure),
	       new_rate = ratio(new_value, new->exposure);
	bool is_rate = c->params->mode != COMPARE_SHARE;

	*row = (struct compare_row){ .name = f->name,
				     .old = is_rate ? old_rate : old_value,
				     .new = is_rate ? new_rate : new_value,
				     .old_share = ratio(old_value, old->total),
				     .new_share = ratio(new_value, new->total),
				     .old_events = ratio(f->side[0].events, event_weight(f)),
				     .new_events = ratio(f->side[1].events, event_weight(f)),
				     .p = 1,
				     .q = 1 };
	row->ratio = old_rate > 0 ? new_rate / old_rate : INFINITY;
	row->change = ratio(new_rate - old_rate, ratio(old->total, old->exposure));
	/* All of it is new. */
	if (old->total <= 0)
		row->change = row->new_share;
}

/* The verdict on what the tests found to be no chance. */
static void judge(const struct comparer *c, struct compare_row *row)
{
	if (row->q <= c->params->fdr)
		row->verdict = row->change > 0 ? VERDICT_MORE : VERDICT_LESS;
	row->is_over = row->verdict == VERDICT_MORE && c->params->fail_over >= 0 &&
		       row->change > c->params->fail_over;
	c->out->nover += row->is_over;
}

static int by_change(const void *a, const void *b)
{
	const struct compare_row *x = a, *y = b;
	double cx = fabs(x->change), cy = fabs(y->change);

	return cx != cy ? (cx < cy ? 1 : -1) : str_cmp(x->name, y->name);
}

static void test_rows(struct comparer *c, struct compare_row *rows, size_t n)
{
	double *p = arena_many(c->a, n, double);
	uint32_t *tested = arena_many(c->a, n, uint32_t);
	size_t ntested = 0;

	for (size_t i = 0; i < n && !stop_asked(c->params->stop); i++) {
		if (!test(c, &c->tallies.at[i], &rows[i]))
			continue;
		p[ntested] = rows[i].p;
		tested[ntested++] = (uint32_t)i;
	}
	c->out->ntested = ntested;
	stats_false_discovery(c->a, p, ntested);
	for (size_t i = 0; i < ntested; i++)
		rows[tested[i]].q = p[i];
	for (size_t i = 0; i < n; i++)
		judge(c, &rows[i]);
}

/* The total is a function that everything belongs to. It is one question: no correction. */
static void test_total(struct comparer *c)
{
	struct compare_row *row = &c->out->total;

	fill_row(c, &c->total, row);
	if (!c->out->has_events || c->params->mode == COMPARE_SHARE)
		return;
	if (test(c, &c->total, row))
		row->q = row->p;
	find_interval(c, &c->total, row);
	judge(c, row);
}

static void make_rows(struct comparer *c)
{
	struct comparison *out = c->out;
	size_t n = c->tallies.n, max = c->params->max_rows;

	out->rows = arena_many(c->a, n, struct compare_row);
	out->nrows = n;
	for (size_t i = 0; i < n; i++)
		fill_row(c, &c->tallies.at[i], &out->rows[i]);
	if (out->has_events)
		test_rows(c, out->rows, n);
	if (n)
		qsort(out->rows, n, sizeof(*out->rows), by_change);
	out->nshown = max && max < n ? max : n;
	for (size_t i = 0; i < n && !stop_asked(c->params->stop); i++) {
		out->nchanged += out->rows[i].verdict >= VERDICT_MORE;
		if ((i < out->nshown || out->rows[i].verdict >= VERDICT_MORE) && out->has_events)
			find_interval(c, tally_at(c, out->rows[i].name), &out->rows[i]);
	}
}

bool compare(struct arena *a, const struct compare_source *sources, size_t n,
	     const struct compare_params *params, struct comparison *out, struct err *e)
{
	struct comparer c = {
		.a = a, .params = params, .out = out, .total = { .name = STR("total") }
	};
	bool ok;

	*out = (struct comparison){ .params = *params };
	ok = add_sources(&c, sources, n, e);
	if (ok) {
		estimate_dispersion(&c);
		make_rows(&c);
		test_total(&c);
	}
	vec_release(&c.tallies);
	map_release(&c.map);
	return ok;
}

/* Of the change of a share that is this on average. */
static double change_error(const struct comparison *c, double share)
{
	double nsources = (double)(c->old.nsources + c->new.nsources);
	double events = share * (c->old.nevents + c->new.nevents) / fmax(1, nsources);
	double dispersion = fmax(c->dispersion, 1 + c->slope * events);

	return sqrt(fmax(1, 1 + (dispersion - 1) * c->growth) * share * (1 - share) *
		    (1 / c->old.nevents + 1 / c->new.nevents));
}

double compare_detectable(const struct comparison *c, double share)
{
	/* Standard deviations more than the limit: 0.84 if that were known, more as it is not. */
	static const double four_of_five = 1.5;
	double p = c->params.fdr / fmax(1, (double)c->ntested); /* of the first that is found */
	double limit = c->degrees > 0 ? stats_student_quantile(p, c->degrees)
				      : stats_normal_quantile(p / 2);
	double change = 0;

	/* The more it grows, the more it varies. */
	for (int i = 0; i < 4; i++)
		change = (limit + four_of_five) * change_error(c, fmin(1, share + change / 2));
	return change;
}
