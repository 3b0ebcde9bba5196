/* refusals.h - what was refused, and by which limit: counted, logged, and the latest kept to be
 * shown.
 *
 * Threads: any number. */
#ifndef SERVER_REFUSALS_H
#define SERVER_REFUSALS_H

#include "base/buf.h"
#include "base/str.h"

struct refusal {
	struct str limit; /* its name, as of the option: "max-body" */
	int status;
	struct str client, who; /* address; name of its token or user, or "" */
	struct str what;	/* method and path */
	struct str why;
};

struct refusals;

/* Of a limit one line is logged each second at most, with the number of those left out. */
struct refusals *refusals_new(void (*log)(void *ctx, const char *line), void *ctx);
void refusals_free(struct refusals *r);
/* `now` is in nanoseconds since 1970. */
void refusals_add(struct refusals *r, const struct refusal *x, int64_t now);
/* A profile of a service was not stored: by which limit, or "format" or "error", and why. */
void refusals_add_service(struct refusals *r, struct str service, struct str reason, struct str why,
			  int64_t now);
/* {"totals":[{"limit","count","first","last"}],"latest":[{"time","limit","status","client","who",
 * "what","why"}],"services":[{"service","count","first","last","why","reasons":[{"reason","count"}]
 * }]}, the latest first; a service that is null is all that found no room. */
void refusals_json(struct buf *out, struct refusals *r);

#endif
