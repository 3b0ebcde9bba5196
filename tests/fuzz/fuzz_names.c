/* fuzz_names.c - what a child answers, or the disk has, of names: taken, found again, forgotten. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "server/names_inside.h"

enum { MAX_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void take(struct names *n, struct store_binary *b, const struct profile *p)
{
	struct names_place *places = xcalloc((size_t)p->nlocations + 1, sizeof(*places));
	struct profile_frame frames[STORE_MAX_FRAMES];
	struct err e;
	size_t nnamed;

	for (uint32_t i = 0; i < p->nlocations; i++)
		places[i].key = p->locations[i].address;
	names_take_nameless(n, b, places, p->nlocations / 2);
	if (names_take(n, b, places, p, &nnamed, &e))
		names_take_nameless(n, b, places, p->nlocations);
	for (uint32_t i = 0; i < p->nlocations; i++) {
		uint32_t entry = names_find_entry(b, places[i].key);

		if (entry != MAP_NONE && names_frames(b, entry, frames) > STORE_MAX_FRAMES)
			abort();
	}
	free(places);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct names names = { .params.max_bytes = MAX_BYTES,
			       .tables = PTHREAD_RWLOCK_INITIALIZER,
			       .lock = PTHREAD_MUTEX_INITIALIZER };
	struct store_binary *b = names_add_binary(&names, STR("0123456789"));
	struct arena a = { 0 };
	struct strings strings;
	struct profile p;
	struct err e;

	strings_init(&strings);
	if (profile_read(&p, &a, &strings, (struct str){ (const char *)data, n }, MAX_BYTES, &e)) {
		take(&names, b, &p);
		take(&names, b, &p);
	}
	names_free_binary(&names, b);
	if (names.bytes)
		abort();
	vec_release(&names.binaries);
	map_release(&names.map);
	strings_release(&strings);
	arena_release(&a);
	return 0;
}
