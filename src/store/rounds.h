/* rounds.h - how often the processes of a series have told what there is.
 *
 * Of what there is at a moment (MEANING_GAUGE) each process tells its own part, and several may
 * push under the same labels: the sum of all that they told, divided by how often each of them did,
 * is what they have together.
 */
#ifndef STORE_ROUNDS_H
#define STORE_ROUNDS_H

#include "store/inside.h"

struct rounds {
	int64_t series, from, to;
	/* That were added up; those of which only sums are left count as of one process. */
	uint64_t nprofiles;
};
bool rounds_count(struct store *s, const struct rounds *r, double *rounds, struct err *e);

#endif
