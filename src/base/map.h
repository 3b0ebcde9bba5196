/* map.h - a hash table of indices into somebody else's table.
 *
 * The map stores (hash, index) slots only; keys live in the caller's table and are compared by the
 * caller. So one type serves names, addresses, stacks. Hashes are seeded from the kernel's
 * per-process random bytes, so that crafted input cannot pile up in one slot.
 *
 *	uint64_t h = hash_bytes(map_seed(), key.p, key.n);
 *	uint32_t i = map_put(&m, h, table.n, same_key, &ctx);	found, or added as table.n
 *	if (i == table.n) vec_push(&table, key);
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MAP_NONE UINT32_MAX

struct map_slot {
	uint32_t hash, index_plus_1; /* 0: free */
};

struct map {
	struct map_slot *slots;
	uint32_t mask, used;
};

/* Does the key that the caller looks for, described by ctx, equal entry `index`? */
typedef bool map_same(const void *ctx, uint32_t index);

uint64_t map_seed(void);
void map_release(struct map *m);

static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 u128;
	u128 r = (u128)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xd6e8feb86659fd93u);

	return (uint64_t)r ^ (uint64_t)(r >> 64);
}

static inline uint64_t hash_bytes(uint64_t seed, const void *data, size_t n)
{
	const unsigned char *p = data;
	uint64_t h = hash_mix(seed, n), a = 0, b = 0;

	for (; n > 16; n -= 16, p += 16) {
		memcpy(&a, p, 8);
		memcpy(&b, p + 8, 8);
		h = hash_mix(h ^ a, b + seed);
	}
	a = b = 0;
	if (n >= 8) {
		memcpy(&a, p, 8);
		memcpy(&b, p + n - 8, 8);
	} else if (n >= 4) {
		memcpy(&a, p, 4);
		memcpy(&b, p + n - 4, 4);
	} else if (n) {
		a = (uint64_t)p[0] << 16 | (uint64_t)p[n / 2] << 8 | p[n - 1];
	}
	return hash_mix(h ^ a, b + seed);
}

/* Index of the entry with this key, or MAP_NONE. */
static inline uint32_t map_get(const struct map *m, uint64_t hash, map_same *same, const void *ctx)
{
	uint32_t h = (uint32_t)(hash >> 32);

	if (!m->slots)
		return MAP_NONE;
	for (uint32_t i = h & m->mask;; i = (i + 1) & m->mask) {
		struct map_slot s = m->slots[i];

		if (!s.index_plus_1)
			return MAP_NONE;
		if (s.hash == h && same(ctx, s.index_plus_1 - 1))
			return s.index_plus_1 - 1;
	}
}

/* For looking up many keys whose tables do not fit the cache: bring the slot near, then ask which
 * entry it will probably be (or MAP_NONE) and bring that near too, then call map_get. */
static inline void map_prefetch(const struct map *m, uint64_t hash)
{
	if (m->slots)
		__builtin_prefetch(&m->slots[(uint32_t)(hash >> 32) & m->mask]);
}

static inline uint32_t map_guess(const struct map *m, uint64_t hash)
{
	struct map_slot s;

	if (!m->slots)
		return MAP_NONE;
	s = m->slots[(uint32_t)(hash >> 32) & m->mask];
	return s.hash == (uint32_t)(hash >> 32) ? s.index_plus_1 - 1 : MAP_NONE;
}

/* Puts in an entry whose key is known to be new. Returns `fresh`. */
uint32_t map_add(struct map *m, uint64_t hash, size_t fresh);

/* Index of the entry with this key; if there is none, `fresh` is put in and returned. */
static inline uint32_t map_put(struct map *m, uint64_t hash, size_t fresh, map_same *same,
			       const void *ctx)
{
	uint32_t found = map_get(m, hash, same, ctx);

	return found != MAP_NONE ? found : map_add(m, hash, fresh);
}

#endif
