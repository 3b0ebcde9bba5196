/* ranges.h - which of many address ranges an address lies in; private to symbol/.
 *
 * Ranges may overlap and nest: a later one lies over an earlier one, so that an address finds the
 * last range that holds it. Building takes n log n steps whatever the ranges are.
 */
#ifndef SYMBOL_RANGES_H
#define SYMBOL_RANGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define RANGE_NONE UINT32_MAX

struct range {
	uint64_t low, high; /* [low, high) */
	uint32_t value;	    /* not RANGE_NONE */
};

struct range_map {
	uint64_t *starts;
	uint32_t *values; /* of [starts[i], starts[i + 1]) */
	size_t n;
};

void range_map_build(struct arena *a, struct range_map *m, const struct range *ranges, size_t n);
/* The value of the range that the address lies in, or RANGE_NONE. */
uint32_t range_map_find(const struct range_map *m, uint64_t address);

#endif
