#include "base/aside.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NICE = 10 }; /* a tenth of the time that others want too */

struct work {
	void (*run)(void *ctx);
	void *ctx;
};

static void *run_slowly(void *work)
{
	const struct work *w = work;

	/* In Linux this is of one thread. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	w->run(w->ctx);
	return NULL;
}

void run_aside(void (*run)(void *ctx), void *ctx)
{
	struct work w = { run, ctx };
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_slowly, &w) == 0)
		pthread_join(thread, NULL);
	else
		run(ctx);
}
