/* recycle.h - memory that has been read becomes memory to write.
 *
 * Reading a large profile turns one large table, the bytes, into another, the stacks. Pages of the
 * first that are done with are moved to where the second goes on: the kernel need not take them
 * back and clear others, which costs more than reading what they hold.
 */
#ifndef PROFILE_RECYCLE_H
#define PROFILE_RECYCLE_H

#include <stdint.h>

struct recycler {
	uintptr_t read;	   /* below, all input is gone */
	uintptr_t ready;   /* below, all output has its pages */
	uintptr_t out_end; /* of the room for the output */
};

/* Both lie in memory of arenas; nobody else writes to the pages between. */
void recycler_init(struct recycler *r, const void *in, void *out, void *out_end);
/* Input below `read` will not be looked at any more, output below `written` is there. What was read
 * is all zeros from now on. */
void recycle(struct recycler *r, const void *read, const void *written);
/* All output is there: gives back the pages that were ready for more. */
void recycler_finish(struct recycler *r, const void *written);

#endif
