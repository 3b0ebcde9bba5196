#include "store/meaning.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/int.h"

static bool is_one_of(struct str name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(name, str_of(names[i])))
			return true;
	return false;
}

#define IS_ONE_OF(name, names) is_one_of(name, names, sizeof(names) / sizeof(*(names)))

enum meaning meaning_of(struct str profile_type, struct str sample_type)
{
	static const char *const gauges[] = { "goroutine", "goroutines", "threadcreate", "threads",
					      "thread" };
	static const char *const cumulative[] = { "contentions", "delay" };

	if (str_has_prefix(sample_type, STR("inuse_")) || IS_ONE_OF(sample_type, gauges) ||
	    IS_ONE_OF(profile_type, gauges))
		return MEANING_GAUGE;
	if (str_has_prefix(sample_type, STR("alloc_")) || IS_ONE_OF(sample_type, cumulative))
		return MEANING_CUMULATIVE;
	return MEANING_COUNTER;
}

/* Unlike profile_scale, which does as pprof: there a sample goes if only what is scaled is 0. */
static uint32_t scale(struct profile *p, struct sample *samples, int64_t *values,
		      const double *divisors)
{
	uint32_t nkept = 0;

	for (uint32_t i = 0; i < p->nsamples; i++) {
		const int64_t *from = sample_values(p, &p->samples[i]);
		int64_t *to = values + (size_t)nkept * p->ntypes;
		bool is_zero = true;

		for (uint32_t t = 0; t < p->ntypes; t++) {
			to[t] = divisors[t] == 1
					? from[t]
					: int_from_double(round((double)from[t] / divisors[t]));
			is_zero &= to[t] == 0;
		}
		if (is_zero)
			continue;
		samples[nkept] = p->samples[i];
		samples[nkept].row = nkept;
		nkept++;
	}
	return nkept;
}

void average_profile(struct arena *a, struct profile *p, struct str profile_type, bool is_all,
		     uint64_t n)
{
	double *divisors = arena_many(a, p->ntypes + 1, double);
	struct sample *samples;
	int64_t *values;
	bool is_needed = false;

	for (uint32_t t = 0; t < p->ntypes; t++) {
		struct str name = profile_str(p, p->types[t].type);
		bool is_mean = is_all || meaning_of(profile_type, name) == MEANING_GAUGE;

		divisors[t] = is_mean ? (double)n : 1;
		is_needed |= is_mean;
	}
	if (!is_needed || n < 2)
		return;
	samples = arena_many(a, p->nsamples + 1, struct sample);
	values = arena_many(a, (size_t)p->nsamples * p->ntypes + 1, int64_t);
	p->nsamples = scale(p, samples, values, divisors);
	p->samples = samples;
	p->values = values;
}
