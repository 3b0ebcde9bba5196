/* perf.h - what Linux perf writes, read as a profile: perf.data files and the text of perf script.
 *
 * Sample types are samples/count and one for each event: cpu/nanoseconds for the clocks, and the
 * event's name, counted, for all others. Samples have the labels comm, pid and tid where they
 * differ in that. Stacks that were saved with --call-graph dwarf are unwound here, by the files
 * that were mapped; names of functions come from perf script's text and for the running kernel
 * only, all else is left to symbolizing.
 */
#ifndef PERF_PERF_H
#define PERF_PERF_H

#include "profile/profile.h"

struct locate_params;

struct perf_params {
	size_t max_bytes;		    /* of what perf has compressed */
	const struct locate_params *locate; /* where to look for files to unwind with; or NULL */
	bool has_times;			    /* keep when each sample was taken: profile.times */
	bool is_foreign; /* of who knows which machine: no file that it names is opened, and the
			    kernel here is not asked */
};

/* Are these bytes one of perf's formats? */
bool perf_recognizes(struct str data);
/* Its tables go to `a`, its strings to `strings`; `data` is not kept. */
bool perf_parse(struct profile *p, struct arena *a, struct strings *strings, struct str data,
		const struct perf_params *params, struct err *e);

#endif
