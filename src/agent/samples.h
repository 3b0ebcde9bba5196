/* samples.h - takes samples out of the rings that handlers fill, for those who count them. */
#ifndef AGENT_SAMPLES_H
#define AGENT_SAMPLES_H

#include "agent/signal.h"
#include "agent/stack.h"

/* Gets the handler and its rings ready. False: errno. */
bool samples_prepare(void);
/* Empties the rings: calls cpu_count and wall_count below. Not from signal handlers. */
void samples_drain(void);

/* One thread at a time. */
void cpu_count(const struct sample *s);
void wall_count(const struct sample *s);
/* Ticks that were lost on the way. */
void cpu_count_lost(uint64_t ticks);

void wall_before_fork(void);
void wall_after_fork(void);

/* For cpu.c, all of it: locks are taken in this order. */
void samples_before_fork(void);
void samples_after_fork(void);
void samples_in_child(void);

#endif
