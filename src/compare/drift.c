#include "compare/drift.h"

#include <math.h>

static double sum_of(const struct drift_side *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += s->exposure[i];
	return sum;
}

/* How much part i has in common with its side's mean: their covariance. */
static double common(const struct drift_side *s, size_t i, double memory)
{
	double sum = 0;

	for (size_t j = 0; j < s->n; j++)
		sum += pow(memory, fabs((double)i - (double)j)) * s->exposure[j];
	return sum;
}

static void add_side(struct drift *d, const struct drift_side *s, double memory)
{
	double all = sum_of(s), mean = 0, before = 0;

	if (all <= 0)
		return;
	for (size_t i = 0; i < s->n; i++)
		mean += s->exposure[i] / all * common(s, i, memory) / all;
	d->inside += all * (1 - mean);
	d->between += mean;
	d->nindependent += 1 / mean / 2;
	for (size_t i = 0; i < s->n; i++) {
		double here = common(s, i, memory) / all;

		if (i)
			d->neighbours += sqrt(s->exposure[i - 1] * s->exposure[i]) *
					 (memory - before - here + mean);
		before = here;
	}
}

struct drift drift_of(const struct drift_side sides[2], double memory)
{
	struct drift d = { 0 };

	add_side(&d, &sides[0], memory);
	add_side(&d, &sides[1], memory);
	return d;
}

double drift_memory(const struct drift_side sides[2], double ratio)
{
	double low = 0, high = DRIFT_MAX_PERCENT / 100.0;

	for (int i = 0; i < 20; i++) {
		double middle = (low + high) / 2;
		struct drift d = drift_of(sides, middle);

		if (d.neighbours < ratio * d.inside)
			low = middle;
		else
			high = middle;
	}
	return low;
}
