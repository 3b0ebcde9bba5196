/* heap.h - which allocations are sampled, and what becomes of them. For the hooks of malloc and its
 * family.
 *
 * A byte is chosen once in so many (heap_rate) in the mean, with exponential gaps, and whatever is
 * allocated with it is a sample. It stands for 1 / (1 - e^(-size / rate)) of its kind, which is
 * added up at once, so that rates may change and sizes may be mixed.
 */
#ifndef AGENT_HEAP_H
#define AGENT_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/live.h"
#include "agent/local.h"
#include "agent/signal.h"

/* All that a malloc or free reads, in one line of the cache. */
struct malloc_ways {
	/* Where the hooks jump to. */
	void *(*malloc)(size_t);
	void (*free)(void *);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	/* Where it goes on from there. */
	void *(*next_malloc)(size_t);
	void (*next_free)(void *);
	/* Changes with the rate: what threads have drawn before is void then. 0: nothing is
	 * sampled. */
	atomic_uint epoch;
} __attribute__((aligned(64)));
extern struct malloc_ways malloc_ways __attribute__((visibility("hidden")));

/* Counts bytes that are allocated. False: heap_is_sampled has to decide. */
static inline bool heap_passes(size_t size)
{
	uint64_t left = (uint64_t)local.heap_left;

	if (__builtin_expect(left < size, 0) ||
	    __builtin_expect(local.heap_epoch !=
				     atomic_load_explicit(&malloc_ways.epoch, memory_order_relaxed),
			     0))
		return false;
	local.heap_left = (int64_t)(left - size);
	return true;
}
bool heap_is_sampled(size_t size);

/* A sampled allocation, and where it was asked for. errno is kept. */
void heap_add(const void *p, size_t size, const struct walk_start *start);
/* It is to be freed; if live_may_have it. True: `sample` has what was known of it, for
 * heap_restore, if it is not freed after all. errno is kept. */
bool heap_remove(const void *p, struct live_sample *sample);
void heap_restore(const struct live_sample *sample);

/* Frames in this code are the allocator's, not the caller's: operator new. At most 8. */
void heap_hide(uintptr_t start, uintptr_t end);

/* hooks_malloc.c: allocations are counted from now on, or are not. */
void hooks_malloc_switch(bool is_on);
/* Finds the next allocator, if no hook has done so. To be called before any dlsym that may fail:
 * that allocates its message, and the search for the allocator would call dlsym once more inside
 * it. */
void hooks_malloc_find(void);
/* Tells which allocator it is. */
void hooks_malloc_describe(char *to, size_t size);

#endif
