/* profiles.h - what parts of the agent do for each other. */
#ifndef AGENT_PROFILES_H
#define AGENT_PROFILES_H

#include <stddef.h>
#include <stdint.h>

#include "agent/record.h"

/* ---- CPU time (cpu.c). One profile at a time; errno EBUSY. */
bool cpu_start(int hz);
bool cpu_stop(struct record *r);
bool cpu_is_on(void);
extern const struct agent_profile profile_cpu; /* "profile": of its own endpoint */

/* ---- wall-clock time (wall.c): all threads, on and off CPU. Also in `seconds` mode. */
bool wall_start(int hz);
bool wall_stop(struct record *r);

/* ---- heap (heap.c). The rate switches ON_HEAP, and the hooks, on and off. */
void heap_set_rate(size_t mean_bytes);
size_t heap_rate(void);
uint64_t heap_in_use(void);			  /* sampled estimate, bytes */
extern const struct agent_profile profile_growth; /* for gperftools' /pprof/growth */

/* ---- locks (locks.c) */
void mutex_set_fraction(int one_of);
int mutex_fraction(void);
void block_set_rate(int64_t nanoseconds);
int64_t block_rate(void);

/* ---- the program's own profiles (custom.c). Their `collect` looks at r->profile. */
const struct agent_profile *custom_profile_at(unsigned i); /* in any order; NULL after the last */
uint32_t custom_profile_count(const struct agent_profile *p);

/* ---- events of N seconds (trace.c): Chrome's JSON. errno EBUSY. */
bool trace_start(void);
void trace_stop(struct out *o);
/* For hooks, if ON_TRACE: something that this thread did from `start` until now. */
void trace_span(const char *what, const void *object, int64_t start, int64_t end);
void trace_malloc(size_t bytes); /* that was sampled */
/* By the thread itself. */
void trace_thread_begins(void);
void trace_thread_ends(void);
/* A sample of CPU time that was taken out. */
struct sample;
void trace_sample(const struct sample *s);

#endif
