/* symbolz.h - names of functions, asked of the servers that a profile came from. */
#ifndef FETCH_SYMBOLZ_H
#define FETCH_SYMBOLZ_H

#include "fetch/fetch.h"

/* Gives locations without lines the names that the servers' /symbolz (or Go's /symbol) know.
 * Mappings that have functions are left alone unless `force`. Tables that change are made anew in
 * `a`. A server that cannot be asked is an error. */
bool symbolz(struct arena *a, struct profile *p, struct fetch_remote *r, bool force, struct err *e);

/* For tests. Appends the URL to ask for names of a profile that came from `source`; false if there
 * is none. */
bool symbolz_url(struct buf *out, struct str source);
/* For tests: reads a server's reply. `offset` was added to the addresses that were asked for. */
bool symbolz_reply(struct arena *a, struct profile *p, uint32_t mapping, struct str reply,
		   int64_t offset, struct err *e);

#endif
