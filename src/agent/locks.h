/* locks.h - waits of threads for each other: who waits, and who holds what they wait for.
 *
 * For hooks_lock.c. A wait begins before the real function is called and ends after it; nothing
 * has to be undone if the thread is cancelled in between, unless it waits for a holder: those
 * functions are no cancellation points.
 */
#ifndef AGENT_LOCKS_H
#define AGENT_LOCKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct holder_place;

struct contention {
	const void *object;
	uint64_t ticks;		    /* when it began (ticks.h); 0: nobody wants to know */
	int64_t start;		    /* the same by now_ns, if there is a place */
	struct holder_place *place; /* where its holder finds it, or NULL */
};

/* A wait for something that is not held: a condition, a semaphore, the end of a thread. */
struct contention contention_begins(const void *object);
/* A wait for a lock; who unlocks it is charged. */
struct contention contention_begins_with_holder(const void *lock);
/* `what` for the trace. What has failed at once is no wait: it only ends. */
void contention_ends(struct contention *c, const char *what, bool has_waited);

/* What others have waited for the caller since it took the lock, or since this was asked last. To
 * be called before the lock is released; charge_holder then after it, so that they don't wait for
 * that too. */
struct charge {
	int64_t delay; /* 0: nobody has waited, or it is not sampled */
	int64_t stands_for;
};
struct charge holder_releases(const void *lock);
void charge_holder(const struct charge *c);

/* hooks_lock.c: once, before the first thread of ours. */
void lock_hooks_find_calls(void);
/* After each change of what is switched on, the first of which is that the agent is
 * there at all. */
void lock_hooks_choose(void);

#endif
