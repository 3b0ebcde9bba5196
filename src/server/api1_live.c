/* api1_live.c - a stream of what is new. */
#include "server/api1_params.h"
#include "server/live.h"

static bool run_live(struct request *q, struct buf *out, struct err *e)
{
	int64_t window = request_int(q, "window");

	(void)out;
	if (window > 24 * INT64_C(3600000000000))
		return err_set(e, ERR_USAGE, "window: at most a day");
	live_add(q->c->server->live, q);
	return true;
}

static const struct param live_params[] = {
	PARAM_SELECT,
	{ .name = "window",
	  .kind = PARAM_DURATION,
	  .initial = "1m",
	  .help = "The time, up to now, whose profiles are meant, such as 10s; a day at most." },
	{ .name = "since",
	  .kind = PARAM_TIME,
	  .help = "Instead of a window of some length: since this time." },
};

const struct endpoint endpoint_live = {
	.path = "/api/1/live",
	.details =
		"A stream of server-sent events: one at once, then one whenever profiles of the "
		"selection have come, and, as long as there are any, whenever the window has moved "
		"on by a thirtieth, but two in a second at most. An event \"update\" has times "
		"as JSON: {\"seconds\":60,\"from\":TIME,\"to\":TIME,\"newest\":TIME}; with "
		"from and to others, such as /api/1/merge, give the profile, and newest is null if "
		"there are none. Comments come every 15 seconds. It ends after 15 minutes: come "
		"again. Who reads too slowly is cut off.",
	ENDPOINT_PARAMS(live_params),
	.types = "text/event-stream",
	.run = run_live,
};
