#include "profile/narrow.h"

#include <string.h>

#include "base/parallel.h"
#include "base/stop.h"

enum { PIECES = 64, PARALLEL_SAMPLES = 20000 };

struct narrowing {
	const struct profile *p;
	const atomic_bool *stop;
	narrow_sample *narrow;
	const void *ctx;
	struct sample *samples;	 /* what stays of a piece is at the piece's start */
	uint32_t counts[PIECES]; /* how many stay */
};

static uint32_t piece_start(const struct profile *p, size_t piece)
{
	return (uint32_t)(p->nsamples * piece / PIECES);
}

static void narrow_piece(void *ctx, size_t piece)
{
	struct narrowing *x = ctx;
	uint32_t first = piece_start(x->p, piece), end = piece_start(x->p, piece + 1), n = first;

	for (uint32_t i = first; i < end && !stop_asked_at(x->stop, i); i++) {
		x->samples[n] = x->p->samples[i];
		n += x->narrow(x->ctx, &x->samples[n]);
	}
	x->counts[piece] = n - first;
}

void narrow_samples(struct arena *a, struct profile *p, const struct profile_filter *how,
		    narrow_sample *narrow, const void *ctx)
{
	struct narrowing x = { .p = p, .stop = how->stop, .narrow = narrow, .ctx = ctx };
	uint32_t n = 0;

	x.samples = arena_many_raw(a, p->nsamples, struct sample);
	huge_pages(x.samples, p->nsamples * sizeof(*x.samples));
	parallel_for(p->nsamples > PARALLEL_SAMPLES ? how->threads : 1, PIECES, narrow_piece, &x);
	for (size_t i = 0; i < PIECES; i++) {
		memmove(x.samples + n, x.samples + piece_start(p, i),
			x.counts[i] * sizeof(*x.samples));
		n += x.counts[i];
	}
	p->samples = x.samples;
	p->nsamples = n;
}
