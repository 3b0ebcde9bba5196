/* regress.h - what became slower in a service, with stated confidence: its newest version against
 * the one before, or a window of time against the one before.
 *
 * The test is that of kiln diff (compare.h): shares of the service's total, by function, with the
 * false discovery rate at 5%. Each side is divided into parts of time, and a change must be larger
 * than what parts of a side differ by among each other, so that load and replicas, which make
 * counts of different hours differ by far more than chance, do not look like a change. What it
 * finds and is an increase by at least `min_share` of the service or `min_cores` is a regression.
 *
 * If a function takes less, shares of all others rise, and they have not become slower. So as long
 * as the largest change is a decrease, that function is taken out of both sides, and what is left
 * is compared: shares are those of that.
 *
 * Of versions, the new one is that which was seen first last. If the old one still runs beside it,
 * as a canary does, both are compared over the same time. If not, and the new one has been there
 * for an hour or more, the same hours of an earlier day count, the last on which the old one ran
 * then; if there is none, the time before the change, for as long as the new one has been there.
 */
#ifndef SERVER_REGRESS_H
#define SERVER_REGRESS_H

#include "compare/compare.h"
#include "store/store.h"

enum regress_kind { REGRESS_VERSIONS, REGRESS_WINDOWS, REGRESS_KINDS };
extern const char *const regress_kinds[REGRESS_KINDS]; /* names */

enum regress_result {
	REGRESS_COMPARED,
	REGRESS_FEW,	 /* not enough samples on a side to tell anything */
	REGRESS_NOTHING, /* there is only one side */
	REGRESS_FAILED,
	REGRESS_RESULTS
};
extern const char *const regress_results[REGRESS_RESULTS];

enum { REGRESS_MAX_FINDINGS = 100 }; /* of a comparison */

/* What counts. */
struct regress_limits {
	double min_share; /* of the service: 0.005 */
	double min_cores; /* CPU seconds in a second */
};

struct regress_params {
	struct store *store;
	struct str service, type;
	enum regress_kind kind;
	struct str version_label;
	int64_t window; /* ns: how long a side is at most */
	int64_t now;	/* where the new window ends */
	struct regress_limits limits;
	const atomic_bool *stop; /* or NULL */
};

struct regress_side {
	struct str version; /* of REGRESS_VERSIONS */
	int64_t from, to;
	uint64_t nprofiles, nseries; /* nseries: at a time, at most */
	uint32_t nparts;
	double samples;
	/* Of the whole service; of types that are not of time units in a second, and of gauges
	 * what there is at a time. */
	double cores;
};

struct regress_finding {
	struct str function;
	double old_cores, new_cores;
	double old_share, new_share, change, low, high; /* change of the share, 95% interval */
	double old_samples, new_samples;
	double q;
	int64_t changed; /* when, as far as can be told */
};

struct regress {
	enum regress_result result;
	struct str why; /* of REGRESS_FAILED */
	struct str sample_type, unit;
	bool is_gauge;
	struct regress_side old, new;
	int64_t began; /* when the new version was first seen, or the new window begins */
	uint32_t nfunctions;
	uint32_t nfaster;  /* that take less, and were taken out */
	double rest[2];	   /* what that leaves of the old and new totals: 1 */
	double dispersion; /* between parts; 1: chance explains it */
	double detectable; /* growth of a function of 5%, in points of share, that would be found 4
			      times of 5 */
	struct regress_finding *findings; /* largest change first */
	size_t n;
};

/* Everything that `out` names lies in `a`. What cannot be compared is a result; false: it was
 * stopped. */
bool regress_run(struct arena *a, const struct regress_params *p, struct regress *out,
		 struct err *e);

/* ---- its parts, for tests */

/* Are there enough samples in a comparison, and parts of each side? */
bool regress_has_enough(const struct comparison *c);
/* Compares parts of the two sides, of which functions that are faster are taken out. */
bool regress_compare(struct arena *a, struct compare_source *sources, size_t n,
		     const atomic_bool *stop, struct regress *out, struct comparison *c,
		     struct err *e);
/* Which of a comparison's functions are regressions; out->old.cores and new.cores are given. */
void regress_judge(struct arena *a, const struct comparison *c, const struct regress_limits *limits,
		   struct regress *out);
/* Where a share changed most: values of a function and of all of it, over time. Returns the index
 * of the first point after the change; 0: there is none. */
size_t regress_change_point(const double *function, const double *all, size_t n);

#endif
