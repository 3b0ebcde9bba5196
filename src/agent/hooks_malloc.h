/* hooks_malloc.h - what the hooks in front of allocators share: malloc's family, C++'s operators,
 * jemalloc's own. */
#ifndef AGENT_HOOKS_MALLOC_H
#define AGENT_HOOKS_MALLOC_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/heap.h"

/* Where the caller of this function was called: the stack of a sample starts there. */
#define walk_caller()                                                             \
	((struct walk_start){                                                     \
		.pc = (uintptr_t)__builtin_return_address(0) - 1,                 \
		.sp = (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(void *), \
		.bp = *(uintptr_t *)__builtin_frame_address(0),                   \
	})

/* Addresses of functions are numbers here: pointers to functions and to data do not mix in C.
 * The definition behind the agent; 0 if there is none. Not for signal handlers. */
uintptr_t malloc_find_next(const char *name);
/* Is that function of the same file as the next malloc, so that it shares a heap with it? */
bool malloc_is_kin(uintptr_t function);
/* Do calls of that name come to the agent, and not to a definition in front of it? */
bool malloc_is_first(const char *name);
/* Where a function was loaded from. */
const char *malloc_path_of(uintptr_t function);

/* Parts of a switch: see heap.h. */
void hooks_new_switch(bool is_on);

/* How a hook goes on when heap_passes says no. */
static inline void malloc_finish(const void *p, size_t size, bool is_sampled,
				 const struct walk_start *start)
{
	if (is_sampled && p)
		heap_add(p, size, start);
}

/* For all that frees. */
static inline void malloc_forget(const void *p)
{
	struct live_sample sample;

	heap_remove(p, &sample);
}

#endif
