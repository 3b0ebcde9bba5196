/* api1_refusals.c - what the gate did not let through. */
#include "server/api1.h"
#include "server/limits.h"

static bool run_refusals(struct request *q, struct buf *out, struct err *e)
{
	(void)e;
	refusals_json(out, q->c->server->limits->refusals);
	buf_char(out, '\n');
	return true;
}

const struct endpoint endpoint_refusals = {
	.path = "/api/1/refusals",
	.details =
		"Requests and profiles that were refused since the start: how many by which limit, "
		"and the latest of them, newest first. A limit goes by the name of its option. "
		"Also how "
		"many profiles of a service were not stored, and for which reasons, which are "
		"limits, "
		"format (it is no profile) and error; of 499 services, and of all others together.",
	.answer = "Refusals",
	.run = run_refusals,
};
