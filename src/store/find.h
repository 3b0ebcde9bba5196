/* find.h - rows of profiles that a query finds. */
#ifndef STORE_FIND_H
#define STORE_FIND_H

#include "base/vec.h"
#include "store/inside.h"

struct found {
	int64_t time, row;
	struct store_id id;
	uint32_t picked;
	uint64_t nsamples, bytes;
};

struct search {
	struct store *s;
	struct db *db;
	const struct store_query *q;
	const struct picked *picked;
	size_t npicked;
	vec(struct found) found; /* in order of time */
	size_t max_found;	 /* ERR_LIMIT; 0: what memory allows */
};

/* Fills `found`, which the caller releases. */
bool search_run(struct search *f, struct err *e);

#endif
