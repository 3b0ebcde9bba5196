/* delete.h - less. */
#ifndef STORE_DELETE_H
#define STORE_DELETE_H

#include "store/inside.h"

/* Deletes the profiles of a series between the times, some at a time, so that puts get their turn.
 * Adds to *n. */
bool delete_range(struct store *s, int64_t series, int64_t from, int64_t to,
		  const atomic_bool *stop, uint64_t *n, struct err *e);
/* Drops series, services and books that have no profiles any more. */
bool delete_empty(struct store *s, struct err *e);

#endif
