/* timers.h - as long as a profile of CPU time is taken, each thread has a timer of its own, on its
 * own CPU clock, and gets a signal at each tick (signal.c).
 */
#ifndef AGENT_TIMERS_H
#define AGENT_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/record.h"

/* Before the first start; false: there is no memory. */
bool timers_reserve(void);
/* All threads that there are now, and that start until timers_stop. */
void timers_start(int64_t each_ns);
/* What threads used since their last ticks are samples then. */
void timers_stop(void);
/* For threads that nobody saw start, or end. Returns when it wants to be called again. */
int64_t timers_look(int64_t now);
/* What there is to say about a profile. */
void timers_comment(struct record *r);

/* By each thread that starts, when registering is on, and when it ends (also by pthread_exit and
 * pthread_cancel). It is inside the agent. */
void timers_thread_starts(void);
void timers_thread_ends(void);
/* Changes when threads are looked for. */
uint32_t timers_scan(void);

/* A lock is held from one to the other; in the child, to the last. */
void timers_before_fork(void);
void timers_after_fork(void);
void timers_in_child(void);

#endif
