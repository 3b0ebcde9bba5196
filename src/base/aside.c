#include "base/aside.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/wait.h"

enum {
	NICE = 10,	/* a tenth of the time that others want too */
	SPARE_MS = 100, /* before that */
};

struct work {
	void (*run)(void *ctx);
	void *ctx;
	atomic_int spare_thread; /* that has only spare time; 0: none has */
};

/* In Linux this is of one thread. */
static bool set_nice(int nice)
{
	return setpriority(PRIO_PROCESS, (id_t)gettid(), nice) == 0;
}

/* Nice as it is, a thread may keep its core for milliseconds from one that wakes up; one that has
 * spare time leaves it at once. But it gets next to none while others want all of it, and then may
 * have a lock of the kernel, or of malloc, that they wait for: so this is for a start, if the
 * system lets it come back. Whoever may become less nice may do that as well. */
static void *run_slowly(void *work)
{
	struct work *w = work;
	int own = getpriority(PRIO_PROCESS, (id_t)gettid()), nice = own > NICE ? own : NICE;

	if (set_nice(nice + 1) && set_nice(nice) &&
	    sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ 0 }) == 0)
		atomic_store(&w->spare_thread, gettid());
	w->run(w->ctx);
	return NULL;
}

static bool has_ended(pthread_t thread, int64_t until_ns)
{
	struct timespec t = { until_ns / 1000000000, until_ns % 1000000000 };

	return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &t) != ETIMEDOUT;
}

void run_aside(void (*run)(void *ctx), void *ctx)
{
	struct work w = { .run = run, .ctx = ctx };
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_slowly, &w) != 0) {
		run(ctx);
		return;
	}
	while (!has_ended(thread, clock_now_ns() + (int64_t)SPARE_MS * 1000000)) {
		pid_t late = atomic_exchange(&w.spare_thread, 0);

		if (late)
			sched_setscheduler(late, SCHED_OTHER, &(struct sched_param){ 0 });
	}
}
