#include "base/strings.h"

#include <stdlib.h>

#include "base/vec.h"

struct key {
	const struct strings *table;
	struct str s;
};

static bool same_string(const void *ctx, uint32_t index)
{
	const struct key *k = ctx;

	return str_eq(k->table->at[index], k->s);
}

uint32_t strings_add(struct strings *t, struct str s)
{
	uint64_t hash = hash_bytes(t->seed, s.p, s.n);
	struct key key = { t, s };
	uint32_t i = map_put(&t->map, hash, t->n, same_string, &key);

	if (i == t->n) {
		vec_reserve(t, 1);
		t->at[t->n++] = (struct str){ arena_copy(&t->bytes, s.p, s.n), s.n };
	}
	return i;
}

uint32_t strings_find(const struct strings *t, struct str s)
{
	struct key key = { t, s };
	uint32_t i = map_get(&t->map, hash_bytes(t->seed, s.p, s.n), same_string, &key);

	return i == MAP_NONE ? 0 : i;
}

void strings_init(struct strings *t)
{
	*t = (struct strings){ .seed = map_seed() };
	strings_add(t, STR(""));
}

void strings_release(struct strings *t)
{
	arena_release(&t->bytes);
	map_release(&t->map);
	free(t->at);
	*t = (struct strings){ 0 };
}

void strings_clear(struct strings *t, size_t keep_bytes)
{
	if (t->cap * sizeof(*t->at) > keep_bytes ||
	    (t->map.mask + (size_t)1) * sizeof(*t->map.slots) > keep_bytes) {
		strings_release(t);
		strings_init(t);
		return;
	}
	if (!t->bytes.kept) {
		arena_release(&t->bytes);
		arena_reserve(&t->bytes, keep_bytes);
	}
	arena_rewind(&t->bytes);
	memset(t->map.slots, 0, (t->map.mask + (size_t)1) * sizeof(*t->map.slots));
	t->map.used = 0;
	t->n = 0;
	strings_add(t, STR(""));
}
