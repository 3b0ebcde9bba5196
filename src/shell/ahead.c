#include "shell/ahead.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_SAMPLES = 50000, SETTLE_MS = 250, STEP_MS = 2 };

struct shell_ahead {
	struct session *s;
	struct shell_ahead_report reports[SHELL_AHEAD_MAX];
	size_t n;
	bool is_running;
	bool is_new;	     /* are these the first since options changed? */
	atomic_bool stop;    /* what is being made */
	atomic_size_t ndone; /* reports that are made */
	atomic_size_t end;   /* those from here on are not begun */
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

	for (size_t i = atomic_load(&x->ndone); i < atomic_load(&x->end); i++) {
		make_report(x, &x->reports[i]);
		if (i > 0 && atomic_load(&x->stop))
			break;
		atomic_store(&x->ndone, i + 1);
	}
	return NULL;
}

void shell_ahead_start(struct shell_ahead *x, const struct shell_ahead_report *reports, size_t n)
{
	if (x->s->profile.nsamples < MIN_SAMPLES)
		return;
	shell_ahead_wait(x, STR(""));
	x->is_new = x->n != n || memcmp(x->reports, reports, n * sizeof(*reports)) != 0;
	if (x->is_new)
		atomic_store(&x->ndone, 0);
	memcpy(x->reports, reports, n * sizeof(*reports));
	x->n = n;
	if (atomic_load(&x->ndone) == n)
		return;
	atomic_store(&x->stop, false);
	atomic_store(&x->end, n);
	x->is_running = pthread_create(&x->thread, NULL, work, x) == 0;
}

void shell_ahead_settle(struct shell_ahead *x, int fd)
{
	struct pollfd in = { fd, POLLIN, 0 };

	for (int ms = 0; ms < SETTLE_MS && x->is_running && x->is_new; ms += STEP_MS)
		if (atomic_load(&x->ndone) == x->n || poll(&in, 1, STEP_MS) != 0)
			return;
}

/* "dot", "dot > file": does the line ask for all of the report? */
static bool asks_for(struct str line, const char *name)
{
	struct str rest = str_trim(line);

	if (!str_has_prefix(rest, str_of(name)))
		return false;
	rest = str_trim(str_from(rest, strlen(name)));
	return rest.n == 0 || rest.p[0] == '>' || rest.p[0] == '|';
}

void shell_ahead_wait(struct shell_ahead *x, struct str line)
{
	size_t now = atomic_load(&x->ndone);
	bool is_asked = x->is_running && now < x->n && asks_for(line, x->reports[now].name);

	atomic_store(&x->end, is_asked ? now + 1 : 0);
	if (!is_asked || atomic_load(&x->ndone) > now)
		atomic_store(&x->stop, true);
	if (x->is_running)
		pthread_join(x->thread, NULL);
	x->is_running = false;
}

void shell_ahead_free(struct shell_ahead *x)
{
	shell_ahead_wait(x, STR(""));
	free(x);
}
