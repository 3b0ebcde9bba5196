#include "base/map.h"

#include <stdlib.h>
#include <sys/auxv.h>

#include "base/arena.h"

uint64_t map_seed(void)
{
	uint64_t seed = 0;
	const void *random = (const void *)getauxval(AT_RANDOM); /* 16 bytes, see getauxval(3) */

	if (random)
		memcpy(&seed, random, sizeof(seed));
	return seed;
}

static void place(struct map *m, struct map_slot s)
{
	uint32_t i = s.hash & m->mask;

	while (m->slots[i].index_plus_1)
		i = (i + 1) & m->mask;
	m->slots[i] = s;
}

static void resize(struct map *m, size_t slots)
{
	struct map_slot *old = m->slots;
	size_t nold = old ? (size_t)m->mask + 1 : 0;

	m->slots = xcalloc(slots, sizeof(*m->slots));
	m->mask = (uint32_t)(slots - 1);
	for (size_t i = 0; i < nold; i++)
		if (old[i].index_plus_1)
			place(m, old[i]);
	free(old);
}

uint32_t map_add(struct map *m, uint64_t hash, size_t fresh)
{
	if (!m->slots || (size_t)m->used * 3 >= ((size_t)m->mask + 1) * 2)
		resize(m, m->slots ? ((size_t)m->mask + 1) * 2 : 64);
	m->used++;
	place(m, (struct map_slot){ (uint32_t)(hash >> 32), (uint32_t)fresh + 1 });
	return (uint32_t)fresh;
}

void map_release(struct map *m)
{
	free(m->slots);
	*m = (struct map){ 0 };
}
