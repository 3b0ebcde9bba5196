/* changes.h - a tree of boxes that a page has: what was sent of it, and so what is to be sent.
 *
 *	changes_begin(&c, &root)
 *	id = changes_box(&c, parent, function, values, &is_new)	for all of them, callers first
 *	changes_put(&c, out)
 *
 * The page knows boxes by ids, which are used again once their box is gone: there are as many as
 * there were boxes at most. Private to web/.
 */
#ifndef WEB_CHANGES_H
#define WEB_CHANGES_H

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"

/* Of a flame graph what a box takes itself and what of it was cut; of a table what a function takes
 * itself and in all. */
struct change_values {
	int64_t first, second;
};

struct change_box {
	uint32_t parent, function; /* an id, a number of functions.h */
	struct change_values sent, now;
	bool is_sent, is_there; /* neither: the id is free */
};

struct changes {
	vec(struct change_box) boxes; /* by id; the first is the root, which is its own parent */
	vec(uint32_t) unused, added;  /* ids */
	struct map ids;		      /* of those that are there or were sent, but the root */
	vec(uint32_t) functions;      /* that were sent */
	struct map sent_functions;
};

void changes_release(struct changes *c);
/* The page has nothing any more: all is sent next time. */
void changes_forget(struct changes *c);
/* Has nothing been sent yet? */
bool changes_is_first(const struct changes *c);

void changes_begin(struct changes *c, const struct change_values *root);
/* The box of that function below `parent`, 0 for the root; if there are several they are added up.
 * `is_new`: the page does not know the function, so that it must be told. */
uint32_t changes_box(struct changes *c, uint32_t parent, uint32_t function,
		     const struct change_values *values, bool *is_new);
/* "gone":[ID],"new":[[ID,PARENT,FUNCTION,FIRST,SECOND]],"changed":[[ID,FIRST,SECOND]]: those of
 * before that were not named since changes_begin, and what differs. */
void changes_put(struct changes *c, struct buf *out);

#endif
