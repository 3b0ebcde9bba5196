/* collect.h - samples as they come, summed up into a profile. Private to perf/.
 *
 * Samples of equal event, thread and stack are one row of the profile.
 */
#ifndef PERF_COLLECT_H
#define PERF_COLLECT_H

#include "base/map.h"
#include "base/vec.h"
#include "profile/build.h"

struct collect_event {
	uint32_t name; /* a string, as perf writes it: "cycles:u" */
	bool is_tracepoint;
	int64_t period; /* 0 if it varies */
};

struct collect_thread {
	uint32_t pid, tid, comm; /* comm: a string */
};

struct collect_sample {
	uint32_t event;
	struct collect_thread thread;
	uint64_t time, period;
	const uint32_t *stack; /* locations, leaf first */
	size_t nstack;
};

struct collect_row {
	uint32_t event, thread, stack, nstack;
	int64_t count, total;
};

/* When one of the samples of a row was. */
struct collect_tick {
	uint64_t time, period;
	uint32_t row;
};

struct collector {
	struct builder b; /* locations, functions and mappings are put in by the reader */
	vec(struct collect_event) events;
	vec(struct collect_thread) threads;
	vec(struct collect_row) rows;
	vec(uint32_t) stacks;
	vec(struct collect_tick) ticks;
	bool has_times; /* are these kept? */
	struct map by_thread, by_row;
	uint64_t seed, first_time, last_time;
	bool has_no_periods; /* then there is nothing but the number of samples */
};

void collector_init(struct collector *c, struct strings *strings);
void collector_release(struct collector *c);
/* Index of the event with this name, which is put in if it is new. */
uint32_t collector_event(struct collector *c, struct str name);
bool collector_add(struct collector *c, const struct collect_sample *s, struct err *e);
/* Drops mappings that are not in use, puts the main binary first and makes the profile. */
void collector_finish(struct collector *c, struct arena *a, struct profile *out);

#endif
