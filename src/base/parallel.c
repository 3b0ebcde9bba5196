#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { MAX_THREADS = 64 };

struct loop {
	atomic_size_t next;
	size_t n;
	void (*work)(void *ctx, size_t i);
	void *ctx;
};

int parallel_cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 1;
	return CPU_COUNT(&set);
}

static void *run(void *arg)
{
	struct loop *l = arg;

	for (;;) {
		size_t i = atomic_fetch_add(&l->next, 1);

		if (i >= l->n)
			return NULL;
		l->work(l->ctx, i);
	}
}

void parallel_for(int threads, size_t n, void (*work)(void *ctx, size_t i), void *ctx)
{
	struct loop l = { .n = n, .work = work, .ctx = ctx };
	pthread_t others[MAX_THREADS];
	int started = 0;

	if (threads > MAX_THREADS)
		threads = MAX_THREADS;
	if (threads > 1 && (size_t)threads > n)
		threads = (int)n;
	/* When no thread can be had, this one does all the work. */
	while (started < threads - 1 && pthread_create(&others[started], NULL, run, &l) == 0)
		started++;
	run(&l);
	while (started)
		pthread_join(others[--started], NULL);
}
