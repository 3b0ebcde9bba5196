/* times.c - when samples were taken. */
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/int.h"
#include "base/unit.h"

static int by_time(const void *a, const void *b)
{
	const struct profile_tick *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

void profile_set_times(struct arena *a, struct profile *p, struct profile_tick *ticks, size_t n,
		       const int64_t *values)
{
	struct profile_times *times = arena_new(a, struct profile_times);
	size_t i = 1;

	while (i < n && by_time(&ticks[i - 1], &ticks[i]) <= 0)
		i++;
	if (i < n)
		qsort(ticks, n, sizeof(*ticks), by_time);
	*times = (struct profile_times){ ticks, values, n };
	p->times = n ? times : NULL;
}

/* ---- from labels */

/* How many nanoseconds a label's number counts; 0: it is no time. */
static int64_t label_scale(const struct profile *p, const struct label *l)
{
	static const struct {
		const char *name;
		int64_t scale; /* without a unit; 0: it must have one */
	} names[] = { { "timestamp", 0 },
		      { "time", 0 },
		      { "timestamp_ns", 1 },
		      { "timestamp_us", 1000 },
		      { "timestamp_ms", 1000000 } };
	struct str key = profile_str(p, l->key), unit = profile_str(p, l->text), base;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		double scale;

		if (!str_eq(key, str_of(names[i].name)))
			continue;
		if (!unit.n || !unit_is_time(unit))
			return names[i].scale;
		scale = unit_to_default(unit, &base) * 1e9; /* which are seconds */
		return scale >= 1 && scale < 1e18 ? (int64_t)(scale + 0.5) : 0;
	}
	return 0;
}

/* The first of a set that is a time. */
static bool set_time(const struct profile *p, uint32_t set, int64_t *at)
{
	const struct label_set *s = &p->label_sets[set];
	const struct label *labels = set_labels(p, set);

	for (uint32_t i = s->nstrings; i < s->nstrings + s->nnumbers; i++) {
		int64_t scale = label_scale(p, &labels[i]);

		if (scale && !__builtin_mul_overflow(labels[i].number, scale, at))
			return true;
	}
	return false;
}

uint32_t profile_set_stamp(const struct profile *p, uint32_t set)
{
	const struct label_set *s = &p->label_sets[set];
	const struct label *l = set_labels(p, set);

	for (uint32_t i = s->nstrings; i < s->nstrings + s->nnumbers; i++)
		if (label_scale(p, &l[i]) && !str_eq(profile_str(p, l[i].key), STR("time")))
			return i == s->nstrings || l[i - 1].key != l[i].key ? i : NONE;
	return NONE;
}

/* Most profiles have no such labels, and need no more than this to know. */
static bool has_timed_set(const struct profile *p)
{
	int64_t at;

	for (uint32_t i = 0; i < p->nlabel_sets; i++)
		if (set_time(p, i, &at))
			return true;
	return false;
}

void profile_find_times(struct arena *a, struct profile *p)
{
	struct profile_tick *ticks;
	size_t n = 0;

	if (p->times || !has_timed_set(p))
		return;
	ticks = xcalloc(p->nsamples + 1, sizeof(*ticks));
	for (uint32_t i = 0; i < p->nsamples; i++) {
		const struct sample *s = &p->samples[i];

		if (set_time(p, s->labels, &ticks[n].at)) {
			ticks[n].row = ticks[n].values = s->row;
			n++;
		}
	}
	/* One label of many that happens to have that name is no time axis. */
	if (n > 1 && n >= p->nsamples / 2)
		profile_set_times(a, p, arena_copy(a, ticks, n * sizeof(*ticks)), n, p->values);
	free(ticks);
}

/* ---- a part of the time */

size_t profile_tick_at(const struct profile_times *t, int64_t after)
{
	int64_t at = t->n ? int_add(t->ticks[0].at, after) : 0;
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->ticks[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t count_rows(const struct profile *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->nsamples; i++)
		if (p->samples[i].row >= n)
			n = p->samples[i].row + 1;
	return n;
}

void profile_take_times(struct arena *a, struct profile *p, int64_t from, int64_t to,
			const atomic_bool *stop)
{
	const struct profile_times *t = p->times;
	uint32_t nrows = count_rows(p), kept = 0;
	struct sample *samples = arena_many(a, p->nsamples, struct sample);
	int64_t *values = arena_many(a, (size_t)nrows * p->ntypes, int64_t);
	bool *is_there = xcalloc(nrows + 1, sizeof(*is_there));

	for (size_t i = profile_tick_at(t, from); i < t->n; i++) {
		const struct profile_tick *tick = &t->ticks[i];
		const int64_t *add = t->values + (size_t)tick->values * p->ntypes;

		if (int_distance(t->ticks[0].at, tick->at) >= to || stop_asked_at(stop, i))
			break;
		if (tick->row >= nrows)
			continue;
		is_there[tick->row] = true;
		for (uint32_t k = 0; k < p->ntypes; k++) {
			int64_t *sum = &values[(size_t)tick->row * p->ntypes + k];

			*sum = int_add(*sum, add[k]);
		}
	}
	for (uint32_t i = 0; i < p->nsamples; i++)
		if (is_there[p->samples[i].row])
			samples[kept++] = p->samples[i];
	p->samples = samples;
	p->nsamples = kept;
	p->values = values;
	p->times = NULL;
	free(is_there);
}
