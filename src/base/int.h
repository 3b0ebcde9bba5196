/* int.h - integer arithmetic as the reference does it: wrapping, never undefined. */
#ifndef BASE_INT_H
#define BASE_INT_H

#include <stdint.h>

static inline int64_t int_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t int_mul(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

static inline int64_t int_neg(int64_t a)
{
	return (int64_t) - (uint64_t)a;
}

/* The most negative number stays itself. */
static inline int64_t int_abs(int64_t a)
{
	return a < 0 ? int_neg(a) : a;
}

/* b != 0. The quotient that does not fit wraps. */
static inline int64_t int_div(int64_t a, int64_t b)
{
	return b == -1 ? int_neg(a) : a / b;
}

/* Truncates; what does not fit, and NaN, becomes the most negative number, as on x86-64. */
static inline int64_t int_from_double(double d)
{
	return d >= -0x1p63 && d < 0x1p63 ? (int64_t)d : INT64_MIN;
}

/* How far it is from one number up to another, or INT64_MAX if it is further. */
static inline int64_t int_distance(int64_t from, int64_t to)
{
	int64_t d;

	return __builtin_sub_overflow(to, from, &d) ? INT64_MAX : d;
}

#endif
