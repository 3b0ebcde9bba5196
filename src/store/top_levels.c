/* top_levels.c - gauges: how much there is at a time, of all that a service runs.
 *
 * A service may have had some instances in the morning and others in the evening: their values are
 * not there at the same time. So each counts for as long as it was there, and the sum is divided by
 * how long the service was. Whoever tells more often does not count for more.
 */
#include "store/top.h"

#include <math.h>

#include "base/int.h"

#define MANY 1.5 /* rounds from which on it can be told how far they are apart */

void top_note_level(struct top_part *p, bool is_late, double ratio)
{
	const struct hot_sum *sum = &p->sum;
	struct top_told *told = &p->told;

	if (!told->nprofiles || sum->first < told->first)
		told->first = sum->first;
	if (!told->nprofiles || sum->last > told->last)
		told->last = sum->last;
	told->nprofiles += sum->ntyped;
	*(is_late ? &told->late : &told->early) += sum->rounds;
	told->total += sum->total * ratio;
}

/* From one time a process tells to the next, as far as the series shows at other times. */
static double usual_gap(const struct top_told *told, const struct picked *series)
{
	double rounds = (double)series->counts.nprofiles * (told->early + told->late) /
			(double)told->nprofiles;

	return rounds > MANY ? (double)int_distance(series->counts.first, series->counts.last) /
				       (rounds - 1)
			     : TOP_PIECE;
}

static double gap_of(const struct top_told *told, const struct picked *series)
{
	double rounds = told->early + told->late;
	double length = (double)int_distance(told->first, told->last);

	return rounds > MANY && length > 0 ? length / (rounds - 1) : usual_gap(told, series);
}

/* What of `length` from a time on is before the middle. */
static double early_part(const struct topping *t, double from, double length)
{
	return fmax(0, fmin(length, (double)t->middle - from));
}

static void note_told(struct top_levels *levels, const struct top_told *told, double length,
		      double gap)
{
	double first = (double)told->first;

	if (length > levels->longest) {
		levels->longest = length;
		levels->gap = gap;
	}
	levels->first = levels->has_any ? fmin(levels->first, first) : first;
	levels->end = levels->has_any ? fmax(levels->end, first + length) : first + length;
	levels->has_any = true;
	levels->is_told |= told->early + told->late > MANY;
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

/* What a function had on average in one half, of which there is `other` if nobody told in it:
 * windows are of the half in which they begin. */
static double mean_in(double sum, double rounds, double other, double other_rounds)
{
	return rounds > 0 ? sum / rounds : ratio(other, other_rounds);
}

void top_add_level(struct top_part *p, const struct picked *series, uint32_t by)
{
	struct top_levels *levels = &p->levels;
	const struct top_told *told = &p->told;
	double gap = gap_of(told, series);
	/* It was there until it would have told again. */
	double length = fmin((double)int_distance(told->first, told->last) + gap,
			     fmax(1, (double)int_distance(p->t->from, p->t->to)));
	double early = early_part(p->t, (double)told->first, length);
	double each = ratio(length, told->early + told->late);

	note_told(levels, told, length, gap);
	levels->early = fmax(levels->early, early);
	levels->late = fmax(levels->late, length - early);
	levels->total += told->total * each;
	for (size_t i = 0; i < p->locals.n; i++) {
		const struct top_local *l = &p->locals.at[i];
		struct top_weight *w =
			top_weight_of(p, &levels->weights, top_key_of(p, l->function), by);
		double before = l->flat - l->late;

		w->flat += l->flat * each;
		w->cum += p->t->params->group ? 0 : l->cum * each;
		w->early += early * mean_in(before, told->early, l->late, told->late);
		w->late += (length - early) * mean_in(l->late, told->late, before, told->early);
	}
	p->told = (struct top_told){ 0 };
}

/* Was one of its series there as long as the service? Instances do not tell at the same moment: one
 * that was there all the time need not have told first, nor last. */
static bool has_whole(const struct top_levels *levels, double length)
{
	return levels->longest + MANY * levels->gap >= length;
}

void top_end_levels(struct top_part *p)
{
	struct top_levels *levels = &p->levels;
	double length = levels->end - levels->first;
	double early = early_part(p->t, levels->first, length);
	bool is_whole = has_whole(levels, length);
	double all = is_whole ? levels->longest : length;
	double before = is_whole ? levels->early : early;
	double after = is_whole ? levels->late : length - early;

	for (size_t i = 0; i < levels->weights.at.n; i++) {
		const struct top_weight *x = &levels->weights.at.at[i];
		struct top_weight *w = top_weight_of(p, &p->weights, x->key, x->by);
		double flat = ratio(x->flat, all);

		w->flat += flat;
		top_share(p, w,
			  &(struct top_share){
				  .ctx = p->ctx, .ran = flat, .cum = ratio(x->cum, all) });
		/* What was seen once was neither less before nor more after. */
		w->early += levels->is_told ? ratio(x->early, before) : flat;
		w->late += levels->is_told ? ratio(x->late, after) : flat;
		w->nservices += !p->t->params->group || x->flat != 0;
	}
	p->total += ratio(levels->total, all);
	map_release(&levels->weights.map);
	levels->weights.at.n = 0;
	*levels = (struct top_levels){ .weights.at = { levels->weights.at.at, 0,
						       levels->weights.at.cap } };
}
