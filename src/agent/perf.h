/* perf.h - perf events as a second source of ticks: they come as often as they are asked to, while
 * the kernel looks at timers (timers.c) some 250 times a second. Each is an interrupt more, so they
 * are not more than KILN_CPU_BUDGET allows.
 *
 * They come in the program's own code alone, which is all that the kernel lets everybody have. It
 * is what a guest wants, too: a signal that waits while the program executes another one would end
 * that. So a thread keeps its timer, whose ticks stand for system calls too (signal.c); if there is
 * no event they stand for all. A thread opens its event at its timer's first tick: those that end
 * before are not made slower.
 */
#ifndef AGENT_PERF_H
#define AGENT_PERF_H

#include "agent/record.h"
#include "agent/signal.h"

/* Before a profile's first timer, with a tick each `period` nanoseconds: are events wanted
 * (KILN_CPU_ENGINE), and how often? Sets cpu_pace. */
void perf_prepare(int64_t period);
/* Of a timer that is not in use yet: is it to have an event? */
void perf_start(struct cpu_timer *t);
/* Opens it, by the thread itself. Any context. */
void perf_open(struct cpu_timer *t);
void perf_end(struct cpu_timer *t);
/* Has the program closed the event's file? Then the timer stands for all from now on. */
void perf_check(struct cpu_timer *t);
/* In a child after fork: the events are its parent's. */
void perf_leave(struct cpu_timer *t);
/* What there is to say about a profile. */
void perf_comment(struct record *r);

#endif
