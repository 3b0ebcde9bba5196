/* wait.h - a call that waits goes on when nothing but the agent's signal woke it up.
 *
 *	struct wait w = wait_begin(timeout > 0);
 *
 *	while ((r = REAL_CALL(poll)(fds, n, timeout)) == -1 && wait_goes_on(&w))
 *		timeout = milliseconds(wait_left(&w, ...));
 *
 * The handler counts in local.nsignals only what broke a system call while no signal of the
 * program's was pending; so whoever installed a handler still sees its EINTR. What is left is the
 * moment between the end of our handler and the call that goes on: a signal that comes just then
 * does not end the wait, as it would not had it come just before the program's call.
 */
#ifndef AGENT_WAIT_H
#define AGENT_WAIT_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/local.h"

struct wait {
	int64_t begun; /* nanoseconds; 0: not known */
	uint32_t nsignals;
};

/* `is_timed`: wait_left will be asked. */
static inline struct wait wait_begin(bool is_timed)
{
	return (struct wait){ is_timed && agent_is_on(~0u) ? now_ns() : 0, local.nsignals };
}

/* The same by a clock that costs less, and is late by COARSE_TICK at the most. */
enum { COARSE_TICK = 10000000 };
static inline struct wait wait_begin_coarse(bool is_timed)
{
	struct wait w = { 0, local.nsignals };
	struct timespec t;

	if (is_timed && agent_is_on(~0u)) {
		clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
		w.begun = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	}
	return w;
}

/* Did our signal end it? Then errno is as it was. */
bool wait_goes_on(struct wait *w);
/* The same for a call that returned `error`. */
bool wait_goes_on_after(struct wait *w, int error);
/* What is left of `total` nanoseconds; at least 0. */
int64_t wait_left(const struct wait *w, int64_t total);

#endif
