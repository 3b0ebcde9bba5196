#include "shell/ahead.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Weights, and the edges that most reports have: that is what takes the time. */
enum { MIN_SAMPLES = 50000, SETTLED = 2, SETTLE_MS = 250, STEP_MS = 2 };

struct shell_ahead {
	struct session *s;
	struct shell_ahead_report reports[SHELL_AHEAD_MAX];
	size_t n;
	bool is_running;
	atomic_bool stop;
	atomic_size_t ndone;
	pthread_t thread;
};

struct shell_ahead *shell_ahead_new(struct session *s)
{
	struct shell_ahead *x = xcalloc(1, sizeof(*x));

	x->s = s;
	return x;
}

/* A wrong option is the report's to tell. */
static void make_report(struct shell_ahead *x, const struct shell_ahead_report *r)
{
	struct analyze_request q = { .report = report_find(r->name),
				     .argument = r->argument,
				     .options = &r->options,
				     .stop = r == x->reports ? NULL : &x->stop };
	struct buf out = { 0 }, warnings = { 0 };
	struct err ignored;

	analyze_report(x->s, &q, &out, &warnings, &ignored);
	buf_release(&out);
	buf_release(&warnings);
}

static void *work(void *ctx)
{
	struct shell_ahead *x = ctx;

	for (size_t i = 0; i < x->n && (i == 0 || !atomic_load(&x->stop)); i++) {
		make_report(x, &x->reports[i]);
		atomic_fetch_add(&x->ndone, 1);
	}
	return NULL;
}

void shell_ahead_start(struct shell_ahead *x, const struct shell_ahead_report *reports, size_t n)
{
	if (x->s->profile.nsamples < MIN_SAMPLES)
		return;
	if (x->n == n && memcmp(x->reports, reports, n * sizeof(*reports)) == 0)
		return;
	shell_ahead_wait(x);
	memcpy(x->reports, reports, n * sizeof(*reports));
	x->n = n;
	atomic_store(&x->stop, false);
	atomic_store(&x->ndone, 0);
	x->is_running = pthread_create(&x->thread, NULL, work, x) == 0;
}

void shell_ahead_settle(struct shell_ahead *x, int fd)
{
	struct pollfd in = { fd, POLLIN, 0 };
	size_t most = x->n < SETTLED ? x->n : SETTLED;

	for (int ms = 0; ms < SETTLE_MS && x->is_running; ms += STEP_MS)
		if (atomic_load(&x->ndone) >= most || poll(&in, 1, STEP_MS) != 0)
			return;
}

void shell_ahead_wait(struct shell_ahead *x)
{
	atomic_store(&x->stop, true);
	if (x->is_running)
		pthread_join(x->thread, NULL);
	x->is_running = false;
}

void shell_ahead_free(struct shell_ahead *x)
{
	shell_ahead_wait(x);
	free(x);
}
