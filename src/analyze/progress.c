#include "analyze/progress.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "fetch/fetch.h"

enum { FIRST_MS = 1000, NEXT_MS = 200 };

struct progress {
	struct fetch_progress *counters;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t stopped;
	bool is_stopped;
};

/* False when it is time to stop. */
static bool wait_ms(struct progress *p, long ms)
{
	struct timespec until;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += ms % 1000 * 1000000;
	until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&p->lock);
	while (!p->is_stopped && pthread_cond_timedwait(&p->stopped, &p->lock, &until) == 0)
		;
	stop = p->is_stopped;
	pthread_mutex_unlock(&p->lock);
	return !stop;
}

static void show(struct str line)
{
	struct buf text = { 0 };

	buf_puts(&text, "\r\033[K"); /* over the line that is there */
	buf_str(&text, line);
	buf_to_fd(&text, STDERR_FILENO);
	buf_flush(&text, &(struct err){ 0 }); /* only for show: let it fail */
	buf_release(&text);
}

static void *run(void *arg)
{
	struct progress *p = arg;
	struct buf text = { 0 };
	bool has_shown = false;

	for (long ms = FIRST_MS; wait_ms(p, ms); ms = NEXT_MS) {
		text.n = 0;
		buf_puts(&text, "reading: ");
		fetch_progress_text(&text, p->counters);
		show(buf_view(&text));
		has_shown = true;
	}
	if (has_shown)
		show(STR(""));
	buf_release(&text);
	return NULL;
}

struct progress *progress_start(struct fetch_progress **counters)
{
	struct progress *p;
	pthread_condattr_t attr;

	*counters = NULL;
	if (!isatty(STDERR_FILENO))
		return NULL;
	p = xmalloc(sizeof(*p));
	*p = (struct progress){ .counters = fetch_progress_new() };
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->stopped, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&p->thread, NULL, run, p) != 0) {
		fetch_progress_free(p->counters);
		free(p);
		return NULL;
	}
	*counters = p->counters;
	return p;
}

void progress_stop(struct progress *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->is_stopped = true;
	pthread_cond_signal(&p->stopped);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->stopped);
	pthread_mutex_destroy(&p->lock);
	fetch_progress_free(p->counters);
	free(p);
}
