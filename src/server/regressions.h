/* regressions.h - looks for regressions in all services, from time to time, in the background.
 *
 * Each service and type is compared (regress.h) when it has new profiles: its newest version with
 * the one before, and this window with the last. It goes slowly, one comparison after the other,
 * with low priority and pauses that are as long as it worked, and never while memory is short. What
 * is found goes to the list (findings.h), and if it is new to the webhook.
 */
#ifndef SERVER_REGRESSIONS_H
#define SERVER_REGRESSIONS_H

#include "server/findings.h"
#include "server/regress.h"
#include "server/server.h"

struct regressions;

/* Of server->options; with its store, limits and metrics. */
struct regressions *regressions_start(struct server *s);
/* What goes on in the background is to end; does not wait for it. */
void regressions_halt(struct regressions *r);
void regressions_stop(struct regressions *r);
struct findings *regressions_findings(struct regressions *r);

/* Compares now, and without pauses, what has changed since it was compared; of one service, or of
 * all (""). If something is being compared, waits for that. */
bool regressions_look(struct regressions *r, struct str service, const atomic_bool *stop,
		      struct err *e);

/* The latest comparison of each service, type and kind. */
struct compared {
	struct str service, type;
	enum regress_kind kind;
	enum regress_result result;
	struct str why;
	struct regress_side old, new;
	double dispersion, detectable;
	uint32_t nfunctions, nfound, nfaster;
	int64_t at;
};
/* In order of service, type and kind; copied to `a`. */
void regressions_compared(struct regressions *r, struct arena *a, struct compared **list,
			  size_t *n);
/* When the latest pass over all services ended; 0: none has. */
int64_t regressions_looked(struct regressions *r);

#endif
