#include "shell/ahead.h"

#include <pthread.h>
#include <stdlib.h>

enum { MIN_SAMPLES = 50000 };

struct shell_ahead {
	struct session *s;
	struct analyze_options options;
	bool has_options, is_running;
	pthread_t thread;
};

struct shell_ahead *shell_ahead_new(struct session *s)
{
	struct shell_ahead *x = xcalloc(1, sizeof(*x));

	x->s = s;
	return x;
}

/* A wrong option is the report's to tell. */
static void *work(void *ctx)
{
	struct shell_ahead *x = ctx;
	struct analyze_request q = { .report = report_find("top"),
				     .argument = "",
				     .options = &x->options };
	struct buf out = { 0 }, warnings = { 0 };
	struct err ignored;

	analyze_report(x->s, &q, &out, &warnings, &ignored);
	buf_release(&out);
	buf_release(&warnings);
	return NULL;
}

void shell_ahead_start(struct shell_ahead *x, const struct analyze_options *options)
{
	if (x->s->profile.nsamples < MIN_SAMPLES)
		return;
	if (x->has_options && memcmp(&x->options, options, sizeof(*options)) == 0)
		return;
	shell_ahead_wait(x);
	x->options = *options;
	x->has_options = true;
	x->is_running = pthread_create(&x->thread, NULL, work, x) == 0;
}

void shell_ahead_wait(struct shell_ahead *x)
{
	if (x->is_running)
		pthread_join(x->thread, NULL);
	x->is_running = false;
}

void shell_ahead_free(struct shell_ahead *x)
{
	shell_ahead_wait(x);
	free(x);
}
