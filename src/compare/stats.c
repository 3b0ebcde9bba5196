#include "compare/stats.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_TERMS = 100000, BISECTIONS = 60 };
#define TINY 1e-300

/* The continued fraction of I_x(a, b) (NIST's Digital Library of Mathematical Functions, 8.17.22),
 * evaluated from the front by Lentz's method. Converges fast for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1), f;

	d = 1 / (fabs(d) < TINY ? TINY : d);
	f = d;
	for (int m = 1; m < MAX_TERMS; m++) {
		double step = 1;

		for (int odd = 0; odd < 2; odd++) {
			double top = odd ? -(a + m) * (a + b + m) * x : m * (b - m) * x;
			double term = top / ((a + 2 * m + odd - 1) * (a + 2 * m + odd));

			d = 1 + term * d;
			c = 1 + term / c;
			d = 1 / (fabs(d) < TINY ? TINY : d);
			c = fabs(c) < TINY ? TINY : c;
			step = c * d;
			f *= step;
		}
		if (fabs(step - 1) < 1e-15)
			break;
	}
	return f;
}

static double log_gamma(double x)
{
	int sign;

	return lgamma_r(x, &sign);
}

/* Beyond this variance the continued fraction gets long, and the normal distribution exact. */
static const double normal_variance = 1e7;

static double beta_normal(double a, double b, double x)
{
	double n = a + b - 1;

	return erfc((a - 0.5 - n * x) / sqrt(2 * n * x * (1 - x))) / 2;
}

double stats_beta(double a, double b, double x)
{
	double front;

	if (a <= 0 || x >= 1)
		return 1;
	if (b <= 0 || x <= 0)
		return 0;
	if ((a + b) * x * (1 - x) > normal_variance)
		return beta_normal(a, b, x);
	front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double stats_binomial(double k, double n, double chance, double step)
{
	double more = (step - 1) / 2; /* than half of the distance that I_x takes for granted */
	double upper = stats_beta(k - more, n - k + 1 + more, chance);
	double lower = stats_beta(n - k - more, k + 1 + more, 1 - chance);
	double smaller = upper < lower ? upper : lower;

	return smaller < 0.5 ? 2 * smaller : 1;
}

static double beta_density(double a, double b, double x)
{
	return exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + (a - 1) * log(x) +
		   (b - 1) * log1p(-x));
}

/* x with I_x(a, b) = share. Newton's method, held between what is known to be too small and too
 * large. */
static double beta_quantile(double a, double b, double share)
{
	double low = 0, high = 1, x = a / (a + b);

	for (int i = 0; i < BISECTIONS; i++) {
		double error = stats_beta(a, b, x) - share, step = error / beta_density(a, b, x);

		if (error < 0)
			low = x;
		else
			high = x;
		if (fabs(step) < 1e-12 * x)
			break;
		x = x - step > low && x - step < high ? x - step : (low + high) / 2;
	}
	return x;
}

void stats_binomial_interval(double k, double n, double alpha, double *low, double *high)
{
	*low = k > 0 ? beta_quantile(k, n - k + 1, alpha / 2) : 0;
	*high = k < n ? beta_quantile(k + 1, n - k, 1 - alpha / 2) : 1;
}

double stats_normal_quantile(double tail)
{
	double z;

	if (tail > 0.5)
		return -stats_normal_quantile(1 - tail);
	if (tail < TINY)
		tail = TINY;
	/* Newton's method on the logarithm of the tail, which is concave: it converges from the
	 * right. */
	z = sqrt(-2 * log(tail));
	for (int i = 0; i < 20; i++) {
		double here = erfc(z / M_SQRT2) / 2;
		double density = exp(-z * z / 2) / sqrt(2 * M_PI);

		z += log(here / tail) * here / density;
	}
	return z;
}

double stats_student(double t, double degrees)
{
	return stats_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

double stats_student_quantile(double alpha, double degrees)
{
	double low = 0, high = 1e6;

	for (int i = 0; i < BISECTIONS; i++) {
		double middle = (low + high) / 2;

		if (stats_student(middle, degrees) > alpha)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

static int by_value(const void *a, const void *b)
{
	double x = **(double *const *)a, y = **(double *const *)b;

	return (x > y) - (x < y);
}

void stats_false_discovery(struct arena *scratch, double *p, size_t n)
{
	double **ascending = arena_many(scratch, n, double *);
	double least = 1;

	for (size_t i = 0; i < n; i++)
		ascending[i] = &p[i];
	if (n)
		qsort(ascending, n, sizeof(*ascending), by_value);
	for (size_t rank = n; rank > 0; rank--) {
		double q = *ascending[rank - 1] * (double)n / (double)rank;

		least = q < least ? q : least;
		*ascending[rank - 1] = least;
	}
}
