/* remote.h - one exchange with a server that has profiles. Private to fetch/. */
#ifndef FETCH_REMOTE_H
#define FETCH_REMOTE_H

#include <stdatomic.h>

#include "base/vec.h"
#include "fetch/fetch.h"
#include "http/client.h"

/* A mapping of a profile came from this URL, where it started at `start`. */
struct origin {
	struct str key; /* the mapping's build id, else its file, else the URL */
	const char *url;
	uint64_t start;
};

struct fetch_remote {
	struct http_client *client;
	struct arena arena;	    /* of the origins */
	vec(struct origin) origins; /* in the order of sources */
	bool is_used;
	/* Bodies that lie in memory, waiting to be merged: together they may be as large as one
	 * profile may be. */
	atomic_size_t held_bytes;
};

/* The body of a response whose status is 200; any other is an error with what the server says.
 * Errors are pprof's: "http fetch: ..." and "http post URL: ...". */
bool remote_send(struct fetch_remote *r, const struct http_request *q, struct http_response *out,
		 struct err *e);
/* Remembers for all mappings of the profile that they came from `url`. */
void remote_origins(struct fetch_remote *r, const struct profile *p, const char *url);

#endif
