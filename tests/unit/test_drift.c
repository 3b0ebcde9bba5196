/* Expected values: the sums of drift.h over all pairs, from the covariances of all d_i. */
#include "test.h"

#include <math.h>

#include "compare/drift.h"

static void check(double got, double want)
{
	if (!(fabs(got - want) <= 1e-12 * (1 + fabs(want))))
		fail_msg("%.17g, not %.17g", got, want);
}

enum { PARTS = 5 };

/* Covariance of a side's d_i - mean and d_j - mean. */
static double covariance(const struct drift_side *s, double memory, size_t i, size_t j)
{
	double all = 0, sum = 0;

	for (size_t k = 0; k < s->n; k++)
		all += s->exposure[k];
	for (size_t k = 0; k < s->n; k++)
		for (size_t l = 0; l < s->n; l++)
			sum += ((k == i) - s->exposure[k] / all) *
			       ((l == j) - s->exposure[l] / all) *
			       pow(memory, fabs((double)k - (double)l));
	return sum;
}

TEST(sums_are_those_of_all_pairs)
{
	double exposure[2][PARTS] = { { 10, 20, 5, 40, 1 }, { 7, 7, 7 } };
	struct drift_side sides[2] = { { exposure[0], 5 }, { exposure[1], 3 } };

	for (double memory = 0; memory < 1; memory += 0.3) {
		struct drift got = drift_of(sides, memory);
		double inside = 0, neighbours = 0;

		for (int side = 0; side < 2; side++)
			for (size_t i = 0; i < sides[side].n; i++) {
				const double *x = sides[side].exposure;

				inside += x[i] * covariance(&sides[side], memory, i, i);
				if (i)
					neighbours += sqrt(x[i - 1] * x[i]) *
						      covariance(&sides[side], memory, i - 1, i);
			}
		check(got.inside, inside);
		check(got.neighbours, neighbours);
	}
}

TEST(parts_without_memory_are_independent)
{
	double exposure[] = { 3, 3, 3, 3 };
	struct drift_side sides[2] = { { exposure, 4 }, { exposure, 4 } };
	struct drift d = drift_of(sides, 0);

	check(d.inside, 2 * 3 * 3.0);
	check(d.between, 2 / 4.0);
	check(d.nindependent, 4);
	assert_true(drift_of(sides, 0.5).nindependent < 3);
	assert_true(drift_of(sides, 0.5).between > d.between);
}

TEST(a_memory_is_found_again)
{
	double exposure[2][8] = { { 10, 20, 5, 40, 1, 8, 9, 10 }, { 7, 7, 7, 8, 8, 8, 9, 9 } };
	struct drift_side sides[2] = { { exposure[0], 8 }, { exposure[1], 8 } };

	for (double memory = 0.1; memory < 0.9; memory += 0.1) {
		struct drift d = drift_of(sides, memory);

		assert_true(fabs(drift_memory(sides, d.neighbours / d.inside) - memory) < 1e-5);
	}
	assert_true(drift_memory(sides, -1) == 0);
	assert_true(fabs(drift_memory(sides, 1) - DRIFT_MAX_PERCENT / 100.0) < 1e-5);
}

TEST(a_side_without_parts_counts_for_nothing)
{
	double exposure[] = { 1, 2 };
	struct drift_side sides[2] = { { exposure, 2 }, { NULL, 0 } };

	assert_true(isfinite(drift_of(sides, 0.5).between));
	assert_true(isfinite(drift_memory(sides, 0.1)));
}
