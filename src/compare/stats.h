/* stats.h - the few distributions that comparing needs. Private to compare/.
 *
 * Counts may be fractions: a count that has been divided by its dispersion is one (compare.h says
 * why). For whole numbers all of this is exact up to rounding.
 */
#ifndef COMPARE_STATS_H
#define COMPARE_STATS_H

#include <stddef.h>

#include "base/arena.h"

/* The regularized incomplete beta function I_x(a, b), for a, b >= 0: P(X >= a) of a + b - 1 draws
 * of chance x. */
double stats_beta(double a, double b, double x);

/* Two-sided p-value of k successes in n draws of chance `chance`: twice the smaller tail, at most
 * 1. `step` is the distance between neighbouring values of k, 1 or more. */
double stats_binomial(double k, double n, double chance, double step);
/* Clopper and Pearson's interval of the chance, which misses it with the probability `alpha`. */
void stats_binomial_interval(double k, double n, double alpha, double *low, double *high);

/* z with P(Z > z) = tail, for 0 < tail < 1. */
double stats_normal_quantile(double tail);
/* P(|T| > t) of Student's distribution. */
double stats_student(double t, double degrees);
/* t with P(|T| > t) = alpha. */
double stats_student_quantile(double alpha, double degrees);

/* Benjamini and Hochberg: replaces p-values by q-values. Calling everything with q <= x a finding
 * makes x the expected share of false ones among the findings. */
void stats_false_discovery(struct arena *scratch, double *p, size_t n);

#endif
