#include "agent/index.h"

#include <string.h>

enum { FIRST = 256 };

static struct slot *from(const struct index *x, uint32_t at, uint32_t hash)
{
	for (;; at++) {
		struct slot *s = &x->slots[at & (x->size - 1)];

		if (!s->value)
			return NULL;
		if (s->hash == hash)
			return s;
	}
}

struct slot *index_first(const struct index *x, uint32_t hash)
{
	return x->size ? from(x, hash, hash) : NULL;
}

struct slot *index_next(const struct index *x, const struct slot *s)
{
	return from(x, (uint32_t)(s - x->slots) + 1, s->hash);
}

static void put(struct index *x, struct slot s)
{
	uint32_t at = s.hash;

	while (x->slots[at & (x->size - 1)].value)
		at++;
	x->slots[at & (x->size - 1)] = s;
}

/* The old slots stay in the region until all of it goes: together as much as the new. */
static bool grow(struct index *x)
{
	struct index larger = *x;

	larger.size = x->size ? x->size * 4 : FIRST;
	larger.slots = region_alloc(x->memory, larger.size * sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (uint32_t i = 0; i < x->size; i++)
		if (x->slots[i].value)
			put(&larger, x->slots[i]);
	*x = larger;
	return true;
}

bool index_add(struct index *x, uint32_t hash, uint32_t value)
{
	if (x->n * 2 >= x->size && !grow(x))
		return false;
	put(x, (struct slot){ hash, value });
	x->n++;
	return true;
}

uint32_t hash_bytes(const void *p, size_t n)
{
	const unsigned char *c = p;
	uint64_t h = n, word;

	for (; n >= sizeof(word); c += sizeof(word), n -= sizeof(word)) {
		memcpy(&word, c, sizeof(word));
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	for (; n; c++, n--)
		h = (h ^ *c) * 0x100000001b3u;
	h *= 0x9e3779b97f4a7c15u;
	return (uint32_t)(h >> 32);
}
