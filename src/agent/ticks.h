/* ticks.h - the processor's own counter, for times that are taken at the worst of moments: between
 * the look at a lock that is held and the attempt to have it. The kernel's clock is read behind a
 * barrier that waits for the lock's line of cache, and some 30 ns late; threads that fight for a
 * lock then find it held more often (lock_cont with a trace took 1.07 to 1.13 of its CPU time).
 */
#ifndef AGENT_TICKS_H
#define AGENT_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent.h"

/* Whether the kernel itself goes by the counter; otherwise its clock is what ticks. */
extern bool ticks_are_counted;

/* Before the first of these. Again, it does nothing. */
void ticks_prepare(void);

/* Never 0. */
static inline uint64_t ticks_now(void)
{
	return ticks_are_counted ? __builtin_ia32_rdtsc() | 1 : (uint64_t)now_ns();
}

/* Nanoseconds from `start` to `end`. `now` is the time by now_ns, read after `end`: who is
 * interrupted in between is a little late, but has not waited longer. */
int64_t ticks_between(uint64_t start, uint64_t end, int64_t now);

#endif
