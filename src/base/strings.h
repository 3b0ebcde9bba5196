/* strings.h - a table of strings, each kept once.
 *
 * A string is its 32-bit index here; equal strings have equal indices, and index 0 is "". The bytes
 * live in the table's own arena. Several profiles may share one table, as those that are merged do.
 * For one thread at a time.
 */
#ifndef BASE_STRINGS_H
#define BASE_STRINGS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"

struct strings {
	struct str *at;
	size_t n, cap;
	struct arena bytes;
	struct map map;
	uint64_t seed;
};

void strings_init(struct strings *t);
void strings_release(struct strings *t);
/* Makes it as it was after strings_init, but keeps memory for another such table, about so much. */
void strings_clear(struct strings *t, size_t keep_bytes);
uint32_t strings_add(struct strings *t, struct str s);
/* 0 if it is not there. */
uint32_t strings_find(const struct strings *t, struct str s);

#endif
