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
	struct fetch_progress *counters; /* NULL: there is no terminal, and no thread */
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows, and of the terminal */
	pthread_cond_t stopped;
	bool is_stopped, has_line;
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

static void print(const char *before, struct str lines)
{
	struct buf text = { 0 };

	buf_puts(&text, before);
	buf_str(&text, lines);
	buf_to_fd(&text, STDERR_FILENO);
	buf_flush(&text, &(struct err){ 0 }); /* only for show: let it fail */
	buf_release(&text);
}

/* Over the line that is there. */
static void show(struct progress *p, struct str line)
{
	pthread_mutex_lock(&p->lock);
	if (line.n || p->has_line)
		print("\r\033[K", line);
	p->has_line = line.n;
	pthread_mutex_unlock(&p->lock);
}

static void *run(void *arg)
{
	struct progress *p = arg;
	struct buf text = { 0 };

	for (long ms = FIRST_MS; wait_ms(p, ms); ms = NEXT_MS) {
		text.n = 0;
		buf_puts(&text, "reading: ");
		fetch_progress_text(&text, p->counters);
		show(p, buf_view(&text));
	}
	show(p, STR(""));
	buf_release(&text);
	return NULL;
}

static void start_thread(struct progress *p)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->stopped, &attr);
	pthread_condattr_destroy(&attr);
	p->counters = fetch_progress_new();
	if (pthread_create(&p->thread, NULL, run, p) != 0) {
		fetch_progress_free(p->counters);
		p->counters = NULL;
	}
}

struct progress *progress_start(void)
{
	struct progress *p = xcalloc(1, sizeof(*p));

	pthread_mutex_init(&p->lock, NULL);
	if (isatty(STDERR_FILENO))
		start_thread(p);
	return p;
}

struct fetch_progress *progress_counters(struct progress *p)
{
	return p->counters;
}

void progress_tell(void *progress, struct str lines)
{
	struct progress *p = progress;

	pthread_mutex_lock(&p->lock);
	print(p->has_line ? "\r\033[K" : "", lines);
	p->has_line = false;
	pthread_mutex_unlock(&p->lock);
}

void progress_stop(struct progress *p)
{
	if (p->counters) {
		pthread_mutex_lock(&p->lock);
		p->is_stopped = true;
		pthread_cond_signal(&p->stopped);
		pthread_mutex_unlock(&p->lock);
		pthread_join(p->thread, NULL);
		pthread_cond_destroy(&p->stopped);
		fetch_progress_free(p->counters);
	}
	pthread_mutex_destroy(&p->lock);
	free(p);
}
