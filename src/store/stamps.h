/* stamps.h - when samples were taken, apart from their other labels. Private to packing.
 *
 * A label that is a time is another one in almost every sample. A book would get a set of labels
 * for each, and sums could add nothing up. So a packed profile has its times in a column of its
 * own, behind all else, and its samples have sets without them. Sums do not read that column: what
 * is made of many profiles has no times.
 *
 *	key and unit of the label (strings of the book), which samples have it, and the times: each
 *	as what has passed since the one before
 */
#ifndef STORE_STAMPS_H
#define STORE_STAMPS_H

#include "profile/profile.h"
#include "store/column.h"

/* Of a profile that is being packed. */
struct stamps {
	uint32_t key, unit; /* strings of the profile */
	uint32_t *of;	    /* for each set, which of its labels it is, or NONE; NULL: no set has
			       one */
};

/* Labels that are times, but have another key or unit than the first, stay where they are. */
void stamps_find(struct stamps *s, struct arena *a, const struct profile *p);
void stamps_put(struct buf *out, struct arena *scratch, const struct stamps *s,
		const struct profile *p);
/* Gives samples their times back: `like` has the key and the unit. Bad numbers make the reader bad.
 */
void stamps_get(struct reader *r, struct arena *a, const struct label *like, struct profile *p);

#endif
