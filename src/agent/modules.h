/* modules.h - the list of address ranges that module.c writes and signal handlers read. */
#ifndef AGENT_MODULES_H
#define AGENT_MODULES_H

#include "agent/module.h"

struct range {
	uintptr_t start, end;
	const struct module *module;
	unsigned number;
};

/* The list lists[generation & 1] is good as long as the generation is the same. */
struct ranges {
	atomic_uint generation;
	unsigned counts[2];
	struct range lists[2][MODULES_MAX];
};
extern struct ranges ranges;

/* Any context. */
static inline bool range_find(uintptr_t pc, struct range *found)
{
	unsigned generation, n;
	const struct range *at;

	do {
		generation = atomic_load_explicit(&ranges.generation, memory_order_acquire);
		at = ranges.lists[generation & 1];
		n = ranges.counts[generation & 1];
		while (n > 1 && n <= MODULES_MAX) {
			unsigned half = n / 2;

			at = at[half].start <= pc ? at + half : at;
			n -= half;
		}
		*found = *at;
		atomic_thread_fence(memory_order_acquire);
	} while (atomic_load_explicit(&ranges.generation, memory_order_relaxed) != generation);
	return n == 1 && pc >= found->start && pc < found->end &&
	       !atomic_load_explicit(&found->module->is_gone, memory_order_relaxed);
}

#endif
