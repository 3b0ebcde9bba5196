/* threadcreate.c - the profile of what created the threads that live now. */
#include "agent/agent.h"
#include "agent/memory.h"
#include "agent/record.h"
#include "agent/stack.h"
#include "agent/thread.h"

/* The stacks that created threads which run; how many. */
static uint32_t list_stacks(uint32_t *stacks)
{
	uint32_t n = 0, places = threads_places();

	for (uint32_t i = 0; i < places; i++) {
		const struct thread *t = thread_place(i);

		if (t->tid && t->created_by)
			stacks[n++] = t->created_by;
	}
	return n;
}

/* As Go's, it has the first thread and those it knows nothing of with an empty stack. */
static bool collect(struct record *r)
{
	uint32_t *stacks = region_alloc(&r->memory, PLACES_MAX * sizeof(*stacks));
	uint32_t n, all = threads_count();

	if (!stacks) {
		r->has_failed = true;
		return true;
	}
	n = list_stacks(stacks);
	while (n < all && n < PLACES_MAX)
		stacks[n++] = 0;
	record_add_counts(r, stacks, n);
	r->period = 1;
	return true;
}

const struct agent_profile profile_threadcreate = {
	.name = "threadcreate",
	.about = "What created the threads that run now",
	.types = { { "threadcreate", "count" } },
	.ntypes = 1,
	.period_type = { "threadcreate", "count" },
	.has_delta = true,
	.count = threads_count,
	.collect = collect,
};
