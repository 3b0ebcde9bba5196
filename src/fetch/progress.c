#include "fetch/progress.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/unit.h"

struct fetch_progress {
	atomic_size_t nsources, ndone, nfailed, nsamples, nbytes;
	atomic_int_fast64_t seconds, until_ms; /* of the server that takes longest */
};

struct fetch_progress *fetch_progress_new(void)
{
	return xcalloc(1, sizeof(struct fetch_progress));
}

void fetch_progress_free(struct fetch_progress *p)
{
	free(p);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void fetch_progress_expect(struct fetch_progress *p, size_t nsources)
{
	if (p)
		atomic_fetch_add(&p->nsources, nsources);
}

void fetch_progress_done(struct fetch_progress *p, size_t nsamples)
{
	if (!p)
		return;
	atomic_fetch_add(&p->ndone, 1);
	atomic_fetch_add(&p->nsamples, nsamples);
}

void fetch_progress_failed(struct fetch_progress *p)
{
	if (p)
		atomic_fetch_add(&p->nfailed, 1);
}

void fetch_progress_received(struct fetch_progress *p, size_t bytes)
{
	if (p)
		atomic_fetch_add(&p->nbytes, bytes);
}

static void raise_to(atomic_int_fast64_t *to, int64_t value)
{
	int_fast64_t old = atomic_load(to);

	while (old < value && !atomic_compare_exchange_weak(to, &old, value))
		;
}

void fetch_progress_wait(struct fetch_progress *p, int64_t seconds)
{
	if (!p || seconds <= 0)
		return;
	raise_to(&p->seconds, seconds);
	raise_to(&p->until_ms, now_ms() + seconds * 1000);
}

void fetch_progress_text(struct buf *out, const struct fetch_progress *p)
{
	int64_t left_ms = atomic_load(&p->until_ms) - now_ms();
	size_t nbytes = atomic_load(&p->nbytes), nfailed = atomic_load(&p->nfailed);

	buf_printf(out, "%zu of %zu sources, %zu samples", atomic_load(&p->ndone),
		   atomic_load(&p->nsources), atomic_load(&p->nsamples));
	if (nfailed)
		buf_printf(out, ", %zu failed", nfailed);
	if (nbytes) {
		buf_puts(out, ", received ");
		unit_label(out, (int64_t)nbytes, STR("B"), STR("auto"));
	}
	if (left_ms > 0) {
		buf_puts(out, ", ");
		duration_text(out, atomic_load(&p->seconds) * 1000000000);
		buf_puts(out, ", ");
		duration_text(out, (left_ms + 999) / 1000 * 1000000000);
		buf_puts(out, " left");
	}
}
