#include "server/columns.h"

static uint32_t string(struct profile *p, const char *text)
{
	return strings_add(p->strings, str_of(text));
}

static struct value_type value_type(struct profile *p, const char *type, const char *unit)
{
	return (struct value_type){ string(p, type), string(p, unit) };
}

void columns_name(struct profile *p, const struct profile_type *t)
{
	p->types[0] = value_type(p, t->sample, t->unit);
	p->period_type = value_type(p, t->period, t->period_unit);
}

static int64_t times(int64_t a, int64_t b)
{
	int64_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
	return product;
}

void columns_scale(struct profile *p, int64_t factor)
{
	for (size_t i = 0; i < (size_t)p->nsamples * p->ntypes; i++)
		p->values[i] = times(p->values[i], factor);
}

void columns_add_cpu(struct arena *a, struct profile *p, bool is_time)
{
	int64_t *values = arena_many(a, (size_t)p->nsamples * 2 + 1, int64_t);

	for (uint32_t i = 0; i < p->nsamples; i++) {
		int64_t v = p->values[p->samples[i].row];

		values[2 * (size_t)i] = is_time ? v / p->period : v;
		values[2 * (size_t)i + 1] = is_time ? v : times(v, p->period);
		p->samples[i].row = i;
	}
	p->values = values;
	p->ntypes = 2;
	p->types = arena_many(a, 2, struct value_type);
	p->types[0] = value_type(p, "samples", "count");
	p->types[1] = value_type(p, "cpu", "nanoseconds");
	p->period_type = p->types[1];
}
