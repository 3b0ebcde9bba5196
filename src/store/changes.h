/* changes.h - which times of a series are not what they were any more.
 *
 * Whoever keeps what was made of a time notes how many changes there had been before it was read.
 * A change holds for its time and all that is later, as values may be differences to others that
 * are older (delta.h). What goes as it is old holds for what is older than it.
 */
#ifndef STORE_CHANGES_H
#define STORE_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

enum { CHANGES_KEPT = 8 };

struct changes {
	uint64_t n; /* ever */
	struct changed {
		uint64_t number;
		int64_t from;
	} at[CHANGES_KEPT]; /* newer ones are of later times, or the older would say nothing */
	unsigned nat;
	uint64_t old_number; /* the last that was of old times, up to here */
	int64_t old_until;
};

void changes_add(struct changes *c, int64_t from);
void changes_add_old(struct changes *c, int64_t until);
/* Is this time, both ends belong to it, as it was after `n` changes? If in doubt, no. */
bool changes_hold(const struct changes *c, uint64_t n, int64_t start, int64_t end);

#endif
