/* compare.h - what changed between two sets of profiles, and what of it is more than chance.
 *
 *	compare_count(&a, &profile, &params, &source, &e)	for each profile
 *	compare(&a, sources, n, &params, &result, &e)
 *	compare_text(&out, &result)	or compare_markdown, compare_json
 *
 * The model. A profile is a sample: each event in it (a tick of the clock, a sampled allocation)
 * stands for a weight, and how many events a function gets is Poisson distributed. A function's
 * value V is then the sum of its events' weights w, and Q, the sum of their squares, estimates the
 * variance of V. V is treated as if it were V / r equal events, where r = Q / V is the weight of a
 * typical event (Bohm and Zech, "Statistics of weighted Poisson events", 2014). For CPU profiles
 * all weights are equal and V / r is the plain number of samples.
 *
 * The test. Each side has an exposure: by default its total, so that shares are compared; or its
 * duration; or its number of profiles. If nothing changed, then of all a function's events on both
 * sides the new ones are binomial, with the chance exposure_new / (exposure_old + exposure_new).
 * The p-value is that of this exact conditional test. With shares, the total is no given number but
 * has noise too, of which the function is a part: that makes the variance smaller by a factor c,
 * which is 1 - share when all weights are equal, and counts are divided by c (they then have the
 * variance of the hypergeometric distribution, as in Fisher's test). Of a function with more than
 * half of the total, all the rest is tested instead, which asks the same question with a count that
 * is not limited from above.
 *
 * Runs. With several profiles on a side, how much they differ among each other says how much more
 * than chance there is (Pearson's chi-square over its degrees of freedom, the quasi-Poisson
 * dispersion phi, never below 1). It is estimated for each function and drawn towards the mean of
 * all functions, the more so the less functions differ in it; the p-value then comes from Student's
 * distribution. If profiles are parts of time, in order, neighbours may resemble each other: then
 * there are fewer independent ones than it seems, and the mean of a side varies by more than its
 * parts show. How much of the spread that is no chance goes on to the next profile (the memory, one
 * for all functions) is estimated from products of neighbours, rather too high than too low, and
 *phi becomes what it would be if a side had been drawn again and again (drift.h).
 *
 * The verdict. Functions with at least 10 events are tested; Benjamini and Hochberg's procedure
 * over all of them finds those that changed. Of the others, those whose ratio new : old is surely
 * (its 95% interval) between 2/3 and 3/2 are the same; for the rest there are not enough samples to
 * tell.
 */
#ifndef COMPARE_COMPARE_H
#define COMPARE_COMPARE_H

#include "base/buf.h"
#include "profile/profile.h"

/* ---- counting (count.c) */

/* A profile reduced to what is compared. */
struct compare_source {
	const char *name; /* of the file, for errors */
	bool is_new;	  /* else old */
	struct str type, unit;
	double duration_s;
	double total, total_square; /* V and Q of all of it */
	double nevents;
	bool has_events; /* can be told from the profile? If not, squares are 0 */
	struct str *names;
	double *values, *squares;
	size_t n;
};

struct compare_count_params {
	struct granularity keep; /* what tells functions apart; never by address */
	uint32_t value;		 /* sample type */
	bool is_cum;
	const struct profile *whole; /* what shares are of: the profile before filters */
	const atomic_bool *stop;     /* or NULL; once set, the result is of no use */
};
/* Fills in all but name and is_new. Everything is copied to `a`. */
bool compare_count(struct arena *a, const struct profile *p,
		   const struct compare_count_params *params, struct compare_source *out,
		   struct err *e);

/* ---- comparing (compare.c) */

enum compare_mode { COMPARE_SHARE, COMPARE_PER_SECOND, COMPARE_PER_RUN };

enum compare_verdict {
	VERDICT_UNKNOWN, /* no sample counts */
	VERDICT_FEW,	 /* not enough samples */
	VERDICT_SAME,
	VERDICT_MORE,
	VERDICT_LESS,
};

struct compare_params {
	enum compare_mode mode;
	bool is_cum;	 /* what was counted */
	bool is_ordered; /* sources of a side are parts of time, in order */
	double fdr;
	double fail_over;	 /* negative: never */
	size_t max_rows;	 /* 0: all */
	const atomic_bool *stop; /* or NULL; once set, the result is of no use */
};

struct compare_row {
	struct str name;
	double old, new;	     /* the value; per second or per profile if the mode says so */
	double old_share, new_share; /* of the total of its side */
	double change; /* new - old for equal exposure, as a share of the old total; with shares
			  that is new_share - old_share */
	double change_low, change_high;	     /* its 95% interval */
	double ratio, ratio_low, ratio_high; /* of the shares or rates, with the 95% interval */
	double old_events, new_events;	     /* samples; 0 if they are not known */
	double p, q;			     /* 1 if it was not tested */
	enum compare_verdict verdict;
	bool is_over; /* the limit of compare_params.fail_over */
};

struct compare_side {
	double total, nevents, duration_s, exposure;
	size_t nsources;
};

struct comparison {
	struct compare_params params;
	struct str type, unit;
	struct compare_side old, new;
	double dispersion;	  /* of all functions; 0: one profile on each side */
	double slope;		  /* of it, by a function's samples in a profile */
	double memory;		  /* if sources are ordered */
	double growth;		  /* of what is more than 1 in dispersions, by that */
	double degrees;		  /* of Student's distribution; 0: the normal one */
	struct compare_row total; /* tested unless shares are compared */
	struct compare_row *rows; /* largest |change| first */
	size_t nrows, nshown;	  /* intervals are there for the shown and the changed ones */
	size_t ntested, nchanged, nover;
	bool has_events;
};

/* Rows' names are the sources'. */
bool compare(struct arena *a, const struct compare_source *sources, size_t n,
	     const struct compare_params *params, struct comparison *out, struct err *e);
/* How much of its side's total a function with this share must take more, to be found 4 times of 5
 * if nothing else changes. */
double compare_detectable(const struct comparison *c, double share);

/* ---- printing (print.c) */

void compare_text(struct buf *out, const struct comparison *c);
/* A table for a comment on GitHub and its like; names are escaped. */
void compare_markdown(struct buf *out, const struct comparison *c);
void compare_json(struct buf *out, const struct comparison *c);
/* One line for each row that is over the limit. */
void compare_list_over(struct buf *out, const struct comparison *c);

#endif
