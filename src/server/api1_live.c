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
	{ .name = "view",
	  .kind = PARAM_CHOICE,
	  .initial = "flame",
	  .choices = "flame top",
	  .help = "What the boxes are: those of a flame graph, or functions, which have no "
		  "callers (top)." },
	PARAM_SAMPLE_TYPE,
};

const struct endpoint endpoint_live = {
	.path = "/api/1/live",
	.details =
		"A stream of server-sent events: one at once, then one whenever profiles of the "
		"selection have come, and, as long as there are any, whenever the window has moved "
		"on by a thirtieth, but two in a second at most, and none before the last one was "
		"read. The data of an event \"update\" is JSON: the window, and what has changed "
		"of its flame graph since the event before. Apply them in order: gone, new, "
		"changed; with reset, begin with nothing. Box 0 is the sum of all. A box that is "
		"gone leaves its id to others. Boxes below 1/2000 of the whole are part of what "
		"was cut of their caller, and if there are more than 3000, or an event would have "
		"more than 256 kB, the lightest are, too. If newest is null there are no profiles, "
		"and only times; the next flame graph is a reset. An event \"problem\" has "
		"{\"error\":TEXT} instead. Comments come every 15 seconds. The stream ends after "
		"15 minutes: come again. Who reads nothing for long is cut off.",
	ENDPOINT_PARAMS(live_params),
	.types = "text/event-stream",
	.event = "LiveUpdate",
	.run = run_live,
};
