/* index.h - finds by hash: numbers above 0 of things that the caller keeps and compares. Lives in a
 * region; zero-initialised but for that it is empty. Not for several threads.
 *
 *	for (struct slot *s = index_first(x, hash); s; s = index_next(x, s))
 *		if (is_it(s->value))
 *			return s->value;
 */
#ifndef AGENT_INDEX_H
#define AGENT_INDEX_H

#include "agent/memory.h"

#include <stdint.h>

struct slot {
	uint32_t hash, value; /* value 0: free */
};

struct index {
	struct region *memory;
	struct slot *slots;
	uint32_t size, n; /* size: a power of two */
};

/* What has this hash, one after the other; NULL: no more. */
struct slot *index_first(const struct index *x, uint32_t hash);
struct slot *index_next(const struct index *x, const struct slot *s);
/* False if memory is short. */
bool index_add(struct index *x, uint32_t hash, uint32_t value);

uint32_t hash_bytes(const void *p, size_t n);

static inline uint32_t hash_number(uint64_t v)
{
	v *= 0x9e3779b97f4a7c15u;
	return (uint32_t)(v >> 32);
}

#endif
