/* drift.h - what resemblance of neighbours in time does to a comparison. Private to compare/.
 *
 * The model. What a service does drifts: in part i of a side, a function's rate is its mean times
 * 1 + d_i. All d_i have the same variance, and those of parts that are k apart correlate by
 * memory^k. Then parts of a side differ by less than the drift, since they go up and down together,
 * and the mean of a side varies by more than that of parts which have nothing in common. Both
 * follow from the parts' exposures and the memory alone, and so does how much neighbours are on the
 * same side of the mean, from which the memory can be estimated.
 */
#ifndef COMPARE_DRIFT_H
#define COMPARE_DRIFT_H

#include <stddef.h>

/* Exposures of a side's parts, in order. */
struct drift_side {
	double *exposure;
	size_t n;
};

/* Of drifts of variance 1, both sides together; what is expected ... */
struct drift {
	double inside;	   /* ... of the sum of E_i (d_i - mean)^2 */
	double neighbours; /* ... of the sum of sqrt(E_i E_i+1) (d_i - mean) (d_i+1 - mean) */
	double between;	   /* ... of the square of the difference of the two means */
	/* Parts of a side that had nothing in common and whose mean varied as much would be so
	 * many, on average. */
	double nindependent;
};
struct drift drift_of(const struct drift_side sides[2], double memory);

enum { DRIFT_MAX_PERCENT = 90 }; /* a memory that is longer cannot be told from one of this */
/* The memory with which `neighbours` is so much of `inside`. */
double drift_memory(const struct drift_side sides[2], double ratio);

#endif
