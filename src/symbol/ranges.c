#include "symbol/ranges.h"

#include <stdbool.h>
#include <stdlib.h>

static int by_address(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Index of the last start that is not above the address; there is one. */
static size_t piece_of(const struct range_map *m, uint64_t address)
{
	size_t low = 0, high = m->n;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (m->starts[middle] <= address)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void cut_into_pieces(struct arena *a, struct range_map *m, const struct range *ranges,
			    size_t n)
{
	size_t kept = 0;

	m->starts = arena_many_raw(a, 2 * n, uint64_t);
	m->n = 0;
	for (size_t i = 0; i < n; i++) {
		if (ranges[i].low >= ranges[i].high)
			continue;
		m->starts[m->n++] = ranges[i].low;
		m->starts[m->n++] = ranges[i].high;
	}
	if (m->n)
		qsort(m->starts, m->n, sizeof(*m->starts), by_address);
	for (size_t i = 0; i < m->n; i++)
		if (kept == 0 || m->starts[kept - 1] != m->starts[i])
			m->starts[kept++] = m->starts[i];
	m->n = kept;
}

/* The first piece from i on that has no value yet. Shortens the way for those who come later. */
static uint32_t next_free(uint32_t *skip, uint32_t i)
{
	uint32_t free = i;

	while (skip[free] != free)
		free = skip[free];
	while (skip[i] != free) {
		uint32_t next = skip[i];

		skip[i] = free;
		i = next;
	}
	return free;
}

void range_map_build(struct arena *a, struct range_map *m, const struct range *ranges, size_t n)
{
	uint32_t *skip;

	/* Pieces are counted with 32 bits. */
	if (n > UINT32_MAX / 4)
		n = UINT32_MAX / 4;
	cut_into_pieces(a, m, ranges, n);
	if (m->n == 0)
		return;
	m->values = arena_many_raw(a, m->n, uint32_t);
	skip = xmalloc((m->n + 1) * sizeof(*skip));
	for (uint32_t i = 0; i < m->n; i++) {
		m->values[i] = RANGE_NONE;
		skip[i] = i;
	}
	skip[m->n] = (uint32_t)m->n;
	/* From the uppermost down, each takes what is still free. */
	for (size_t r = n; r-- > 0;) {
		uint32_t end, i;

		if (ranges[r].low >= ranges[r].high)
			continue;
		end = (uint32_t)piece_of(m, ranges[r].high);
		i = (uint32_t)piece_of(m, ranges[r].low);
		for (i = next_free(skip, i); i < end; i = next_free(skip, i)) {
			m->values[i] = ranges[r].value;
			skip[i] = i + 1;
		}
	}
	free(skip);
}

uint32_t range_map_find(const struct range_map *m, uint64_t address)
{
	if (m->n == 0 || address < m->starts[0])
		return RANGE_NONE;
	return m->values[piece_of(m, address)];
}
