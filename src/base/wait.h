/* wait.h - time that only goes forward, and waiting by it: setting the machine's clock must make
 * nobody wait for an hour. */
#ifndef BASE_WAIT_H
#define BASE_WAIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline int64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t clock_now_ms(void)
{
	return clock_now_ns() / 1000000;
}

/* Until it is signalled, or so many milliseconds are over. */
static inline void wait_for_ms(pthread_cond_t *c, pthread_mutex_t *lock, int ms)
{
	int64_t until = clock_now_ns() + (int64_t)ms * 1000000;
	struct timespec t = { until / 1000000000, until % 1000000000 };

	pthread_cond_clockwait(c, lock, CLOCK_MONOTONIC, &t);
}

/* So long, unless it is to end: then whoever sets the flag, under the lock, wakes it. Takes the
 * lock. False: it is to end. */
static inline bool wait_unless(pthread_cond_t *wake, pthread_mutex_t *lock, const atomic_bool *ends,
			       int64_t ns)
{
	int64_t until = clock_now_ns() + ns;
	struct timespec t = { until / 1000000000, until % 1000000000 };

	pthread_mutex_lock(lock);
	while (!atomic_load(ends) && clock_now_ns() < until)
		pthread_cond_clockwait(wake, lock, CLOCK_MONOTONIC, &t);
	pthread_mutex_unlock(lock);
	return !atomic_load(ends);
}

#endif
