/* trace.h - what the files of the trace share: trace.c collects events, trace_sched.c asks the
 * kernel when threads ran, trace_json.c writes it all down. */
#ifndef AGENT_TRACE_H
#define AGENT_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/out.h"
#include "agent/sequence.h"

enum event_kind {
	EVENT_NONE, /* not written yet */
	EVENT_SPAN,
	EVENT_INSTANT,
	EVENT_COUNTER,
	EVENT_REGION_BEGINS,
	EVENT_REGION_ENDS,
	EVENT_THREAD_BEGINS,
	EVENT_THREAD_ENDS,
	EVENT_SAMPLE,
	EVENT_RAN,	     /* all the time */
	EVENT_RAN_PREEMPTED, /* the same, and would have gone on */
	EVENT_RAN_PART	     /* for some of the time */
};

struct event {
	int64_t time;	  /* nanoseconds, CLOCK_MONOTONIC: when it began */
	const char *name; /* of a sample: what was sampled */
	union {
		struct {
			int64_t duration;
			uint64_t object; /* of a span; or for how long a thread ran */
		};
		struct {
			int64_t value;	/* of an instant or counter; how deep a region is nested */
			uint32_t stack; /* of a sample */
		};
		char thread_name[16];
	};
	uint32_t tid;
	atomic_uint kind;
};

/* What one thread has written, in that order. */
enum { CHUNK_EVENTS = 64 };

struct chunk {
	atomic_uint owner;	 /* its id */
	atomic_uint short_waits; /* that it had meanwhile, see trace_span */
	struct event events[CHUNK_EVENTS];
};

/* Any thread that is inside the agent. `e` is copied, its kind at last. */
void trace_add(const struct event *e);

/* ---- trace_sched.c; all by one thread at a time */

void sched_start(int64_t now);
/* Adds what was learned since the last time. */
void sched_tick(int64_t now);
/* How long until the next one, in nanoseconds. */
int64_t sched_interval(void);
/* The last tick; nothing is open afterwards. */
void sched_stop(int64_t now);
/* In a child after fork. */
void sched_forget(void);
/* How threads were watched, for the reader of a trace. */
const char *sched_method(void);
uint64_t sched_lost(void);
uint32_t sched_unwatched(void);
/* Threads with so many switches that, for a while, only their times were looked at. */
uint32_t sched_busy(void);

/* ---- trace_json.c */

struct chunk_place {
	uint32_t owner, chunk;
};

struct trace {
	int pid;
	const struct chunk *chunks;
	struct chunk_place *order; /* of the chunks: each thread's are together */
	uint32_t nchunks;
	int64_t start, end; /* nanoseconds, CLOCK_MONOTONIC */
	int64_t start_wall; /* since the epoch */
	uint64_t lost, switches_lost;
	uint32_t unwatched, busy;	/* threads, see trace_sched.c */
	const char *scheduling;		/* how threads were watched */
	const struct sequences *stacks; /* of samples */
};
void trace_write(struct out *o, const struct trace *t);

#endif
