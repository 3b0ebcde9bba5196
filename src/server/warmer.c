#include "server/warmer.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/wait.h"
#include "base/when.h"
#include "server/limits.h"
#include "server/log.h"

#define SECOND INT64_C(1000000000)
#define LAST (600 * SECOND)
#define CPU STR("cpu")
/* How often what is new is made durable, and all is summed up: each so many times. */
enum { NICE = 10, FIRST_S = 1, INTERVAL_S = 5, SUM_UP_EACH = 30 };

struct warmer {
	struct server *server;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	atomic_bool is_stopping;
};

/* Of the last minutes, or of all that has come to rest. */
static void sum_up(struct warmer *w, bool is_settled)
{
	struct store_matcher cpu = { .name = STR("type"), .value = CPU };
	int64_t now = time_now();
	struct store_top_params params = {
		.query = { .matchers = &cpu,
			   .nmatchers = 1,
			   .from = is_settled ? now - w->server->options->fleet_window
					      : now - now % LAST - LAST,
			   .to = now,
			   .stop = &w->is_stopping },
		.limit = 1,
		.is_settled = is_settled,
		.is_kept = is_settled,
	};
	struct arena a = { 0 };
	struct store_top top;
	struct err e;

	if (!limits_is_short(w->server->limits) &&
	    !store_top(w->server->store, &params, &a, &top, &e) && e.kind == ERR_FORMAT)
		log_error("the fleet's functions cannot be summed up: %s", e.text);
	arena_release(&a);
}

static void *run(void *ctx)
{
	struct warmer *w = ctx;

	/* Of this thread, and of those that it starts. */
	setpriority(PRIO_PROCESS, 0, NICE);
	store_follow(w->server->store, CPU);
	for (unsigned i = 0;
	     wait_unless(&w->wake, &w->lock, &w->is_stopping, (i ? INTERVAL_S : FIRST_S) * SECOND);
	     i++) {
		/* What was left out when it was put, or came before a crash. */
		if (i % SUM_UP_EACH == 0)
			sum_up(w, false);
		store_save_followed(w->server->store, &w->is_stopping);
		if (i % SUM_UP_EACH == 0)
			sum_up(w, true);
	}
	store_save_followed(w->server->store, NULL);
	return NULL;
}

struct warmer *warmer_start(struct server *s)
{
	struct warmer *w;

	if (!s->options->fleet_window)
		return NULL;
	w = xcalloc(1, sizeof(*w));
	w->server = s;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	if (pthread_create(&w->thread, NULL, run, w) != 0) {
		log_error("there is no thread to sum up the fleet's functions");
		pthread_mutex_destroy(&w->lock);
		pthread_cond_destroy(&w->wake);
		free(w);
		return NULL;
	}
	return w;
}

void warmer_stop(struct warmer *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	atomic_store(&w->is_stopping, true);
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->wake);
	free(w);
}
