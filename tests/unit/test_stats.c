/* Expected values: sums of exact fractions in Python (fractions.Fraction over math.comb) for all
 * that is binomial, statistics.NormalDist and mpmath for the normal quantiles, closed forms and
 * Simpson's rule for Student's distribution. */
#include "test.h"

#include <math.h>

#include "compare/stats.h"

static void check(double got, double want)
{
	if (!(fabs(got - want) <= 1e-10 * fabs(want) + 1e-300))
		fail_msg("%.17g, not %.17g", got, want);
}

static void check_near(double got, double want, double error)
{
	if (!(fabs(got - want) <= error))
		fail_msg("%.17g, not %.17g", got, want);
}

TEST(incomplete_beta_is_the_binomial_tail)
{
	check(stats_beta(3, 8, 0.25), 0.4744071960449219);
	check(stats_beta(70, 31, 0.5), 3.925069822796835e-05);
	check(stats_beta(300, 701, 1.0 / 3), 0.988881572927419);
	check(stats_beta(5, 1, 0.01), 1e-10);
	check(stats_beta(1200, 801, 0.5), 1.7525031034678226e-19);
}

TEST(incomplete_beta_at_its_ends)
{
	assert_true(stats_beta(3, 4, 0) == 0);
	assert_true(stats_beta(3, 4, 1) == 1);
	assert_true(stats_beta(0, 4, 0.5) == 1);
	assert_true(stats_beta(4, 0, 0.5) == 0);
}

/* Where the normal distribution takes over, nothing may jump. */
TEST(incomplete_beta_of_large_counts)
{
	double below = 3.99e7, above = 4.01e7;

	for (double z = -4; z <= 4; z += 1)
		check_near(stats_beta(below / 2 + z * sqrt(below) / 2, below / 2, 0.5),
			   stats_beta(above / 2 + z * sqrt(above) / 2, above / 2, 0.5), 1e-3);
	check_near(stats_beta(5e11, 5e11, 0.5), 0.5, 1e-5);
}

TEST(binomial_test_is_exact)
{
	check(stats_binomial(15, 20, 0.5, 1), 0.04138946533203125);
	check(stats_binomial(0, 10, 0.5, 1), 0.001953125);
	check(stats_binomial(5, 10, 0.5, 1), 1);
	check(stats_binomial(30, 100, 0.4, 1), 0.049565646232986205);
	check(stats_binomial(700, 1000, 2.0 / 3, 1), 0.02655634029234066);
	check(stats_binomial(60, 1000, 0.1, 1), 8.757639805725584e-06);
}

TEST(binomial_test_of_wider_steps_is_more_careful)
{
	assert_true(stats_binomial(60, 80, 0.5, 2) > stats_binomial(60, 80, 0.5, 1));
	assert_true(stats_binomial(60, 80, 0.5, 2) < stats_binomial(58, 80, 0.5, 1));
}

TEST(binomial_interval)
{
	double low, high;

	stats_binomial_interval(7, 20, 0.05, &low, &high);
	check_near(low, 0.15390920478454095, 1e-9);
	check_near(high, 0.5921885345328288, 1e-9);
	stats_binomial_interval(0, 10, 0.05, &low, &high);
	check_near(low, 0, 0);
	check_near(high, 0.30849710781876105, 1e-9);
	stats_binomial_interval(10, 10, 0.05, &low, &high);
	check_near(low, 0.691502892181239, 1e-9);
	check_near(high, 1, 0);
	stats_binomial_interval(40, 100, 0.05, &low, &high);
	check_near(low, 0.30329476870287664, 1e-9);
	check_near(high, 0.5027908495776661, 1e-9);
}

TEST(normal_quantiles)
{
	check_near(stats_normal_quantile(0.5), 0, 1e-12);
	check_near(stats_normal_quantile(0.1), 1.2815515655446008, 1e-12);
	check_near(stats_normal_quantile(0.025), 1.9599639845400536, 1e-12);
	check_near(stats_normal_quantile(0.001), 3.090232306167813, 1e-12);
	check_near(stats_normal_quantile(0.9), -1.2815515655446008, 1e-12);
	check_near(stats_normal_quantile(1e-20), 9.26234008979841, 1e-10);
	assert_true(isfinite(stats_normal_quantile(0)));
}

TEST(student)
{
	check(stats_student(3, 1), 0.20483276469913336);
	check(stats_student(3, 2), 0.09546596626670911);
	check_near(stats_student(2.5, 10), 0.03144684423660993, 1e-11);
	check(stats_student(0, 7), 1);
	check_near(stats_student(stats_student_quantile(0.05, 6), 6), 0.05, 1e-10);
	check_near(stats_student_quantile(0.05, 1e7), 1.96, 1e-3);
}

/* By hand: sorted 0.005 0.01 0.03 0.04 0.5 times 5/rank is 0.025 0.025 0.05 0.05 0.5. */
TEST(false_discovery_rate)
{
	struct arena a = { 0 };
	double p[] = { 0.04, 0.5, 0.005, 0.03, 0.01 };

	stats_false_discovery(&a, p, 5);
	check(p[0], 0.05);
	check(p[1], 0.5);
	check(p[2], 0.025);
	check(p[3], 0.05);
	check(p[4], 0.025);
	stats_false_discovery(&a, p, 0);
	arena_release(&a);
}

TEST(false_discovery_rate_never_falls_with_p)
{
	struct arena a = { 0 };
	double p[] = { 0.01, 0.049, 0.05 };

	stats_false_discovery(&a, p, 3);
	check(p[0], 0.03);
	check(p[1], 0.05);
	check(p[2], 0.05);
	arena_release(&a);
}
