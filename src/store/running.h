/* running.h - for how long what was profiled ran, as far as profiles tell.
 *
 * Whoever is profiled for 10 seconds of each minute ran all the time: each series counts from its
 * first profile to the end of its last, or for as long as its profiles took together, if that is
 * more, as when several processes push under the same labels.
 */
#ifndef STORE_RUNNING_H
#define STORE_RUNNING_H

#include "store/scan.h"

struct running {
	int64_t ran, duration; /* of series that are complete, in nanoseconds */
	/* of the series that rows come from */
	int64_t series, first, end, profiled;
};

/* Rows of one series come together. */
void running_add(struct running *r, const struct scan_row *row);
/* After the last row, and between services that are to be told apart. */
void running_end(struct running *r);

#endif
