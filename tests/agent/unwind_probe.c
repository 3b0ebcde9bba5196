/* unwind_probe.c - the agent's walker as a library, for tests: what it finds, and how long that
 * takes. Linked with libkiln.a. */
#include <stdint.h>
#include <time.h>
#include <ucontext.h>

#include "agent/local.h"
#include "agent/module.h"
#include "agent/signal.h"
#include "kiln.h"

KILN_API void probe_update(void);
KILN_API int probe_here(void **pcs, int max);
KILN_API int probe_context(const ucontext_t *context, void **pcs, int max);
KILN_API void probe_set_stack(uintptr_t low, uintptr_t top);
KILN_API double probe_time(int rounds);

void probe_update(void)
{
	modules_update(false);
}

void probe_set_stack(uintptr_t low, uintptr_t top)
{
	local.stack_low = low;
	local.stack_top = top;
}

static int walk_from(struct walk_start start, void **pcs, int max)
{
	frame_t frames[512];
	uint32_t n = walk_stack(&start, frames, max < 512 ? (uint32_t)max : 512);

	for (uint32_t i = 0; i < n; i++)
		pcs[i] = (void *)frame_address(frames[i]);
	return (int)n;
}

int probe_here(void **pcs, int max)
{
	return walk_from(walk_here(), pcs, max);
}

int probe_context(const ucontext_t *context, void **pcs, int max)
{
	const greg_t *r = context->uc_mcontext.gregs;
	struct walk_start start = { (uintptr_t)r[REG_RIP], (uintptr_t)r[REG_RSP],
				    (uintptr_t)r[REG_RBP] };

	return walk_from(start, pcs, max);
}

double probe_time(int rounds)
{
	frame_t frames[STACK_MAX];
	struct walk_start start = walk_here();
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < rounds; i++)
		walk_stack(&start, frames, STACK_MAX);
	clock_gettime(CLOCK_MONOTONIC, &b);
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / rounds;
}
