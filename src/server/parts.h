/* parts.h - a window of time divided, so that its parts can be compared as runs: how much they
 * differ among each other says how much more than chance there is. */
#ifndef SERVER_PARTS_H
#define SERVER_PARTS_H

#include "store/store.h"

/* From the first profile to the last: most parts of a window that is nearly empty would be, too.
 * ERR_NOTFOUND: it is. */
bool parts_narrow(struct store *store, struct store_query *query, struct arena *scratch,
		  struct err *e);
/* How many there can be, if so many are wanted. */
int64_t parts_count(const struct store_query *query, int64_t wanted);
/* Part `i` of `n`. */
struct store_query parts_at(const struct store_query *query, int64_t n, int64_t i);

#endif
