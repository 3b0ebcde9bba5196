/* thread.h - the program's threads. Those that start through pthread_create or thrd_create are
 * known at once, others when /proc/self/task is read. */
#ifndef AGENT_THREAD_H
#define AGENT_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAME_MAX_THREAD = 16, PLACES_MAX = 1 << 14 };

/* From now on threads are registered as they start: whoever may be asked for their profiles calls
 * it. */
void threads_watch(void);
/* Zero-initialised it is empty. Whoever lists often keeps it: to give memory back disturbs all who
 * run. */
struct tids {
	uint32_t *at, n;
	size_t bytes; /* that are mapped */
};
/* The thread ids of the process now, but the agent's, in place of what is there. Returns how many.
 */
uint32_t threads_list(struct tids *tids);
void tids_release(struct tids *tids);
uint32_t threads_count(void);
/* Is it the agent's own? Those never end, and are set by themselves and by who starts them. */
bool thread_is_agent(uint32_t tid);
void thread_set_agent(uint32_t tid);
/* How many of them there are, also in a child that nobody saw start, which has none. */
uint32_t threads_of_agent(void);

/* A thread of which we saw the start. There is room for a fixed number; others go unregistered. One
 * line of cache each: threads that do next to nothing are not to wait for more. */
struct thread {
	_Alignas(64) atomic_uint tid; /* 0: it has not begun to run, or there is none */
	uint32_t number;	      /* of its place, from 1 */
	uint32_t next;		      /* place; among those that are free */
	uint32_t created_by, labels;  /* the stack of whoever created it, 0: unknown; its labels */
	bool is_ending;
	union {
		void *(*posix)(void *);
		int (*c11)(void *);
	} routine;
	void *argument;
	size_t stack_bytes;
	int64_t began; /* of those that got a timer then: by now_ns */
	uint32_t scan; /* as of timers_scan, before it was created */
};

/* Called in the first thread: if it ends before the process does, agent_main_ends is called. */
void thread_watch_main(void);

/* NULL: all places are taken. Nothing is locked. */
struct thread *thread_take(void);
void thread_give(struct thread *t);
/* All places that were ever taken, from 0; those with tid 0 are nobody's. */
uint32_t threads_places(void);
struct thread *thread_place(uint32_t i);

#endif
