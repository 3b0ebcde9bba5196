/* Which mapping an address belongs to: the first one in the list that covers it. Lists may overlap
 * in any way and be as long as the file, so ranges are kept in a segment tree over all their ends.
 */
#include "profile/legacy_parse.h"

#include <stdlib.h>

/* Steps that the search behind inverted mappings may take in one file; see find_before. */
#define SCAN_BUDGET ((size_t)1 << 28)

/* first[ncells + i] is the first mapping that was put on cell i alone, inner nodes stand for all
 * cells below them. Cell i reaches from ends[i] to ends[i + 1]. */
struct cover {
	uint32_t *first;
};

struct assigner {
	struct builder *b;
	uint64_t *ends;
	size_t ncells;
	struct cover inside; /* start to limit */
	struct cover before; /* start - offset to start */
	size_t scan_budget;
	uint32_t fake; /* or NONE */
};

static int compare_ends(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return a < b ? -1 : a > b;
}

/* Cell of an address, or STR_NONE if it lies below all ends. */
static size_t cell_of(const struct assigner *a, uint64_t address)
{
	size_t low = 0, high = a->ncells;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (a->ends[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : STR_NONE;
}

static void cover_add(const struct assigner *a, struct cover *c, uint64_t start, uint64_t limit,
		      uint32_t mapping)
{
	size_t left = cell_of(a, start) + a->ncells, right = cell_of(a, limit) + a->ncells;

	for (; left < right; left /= 2, right /= 2) {
		if (left & 1) {
			if (mapping < c->first[left])
				c->first[left] = mapping;
			left++;
		}
		if (right & 1) {
			right--;
			if (mapping < c->first[right])
				c->first[right] = mapping;
		}
	}
}

static uint32_t cover_find(const struct assigner *a, const struct cover *c, size_t cell)
{
	uint32_t found = NONE;

	for (size_t i = cell + a->ncells; i; i /= 2)
		if (c->first[i] < found)
			found = c->first[i];
	return found;
}

static bool covers_before(const struct mapping *m, uint64_t address)
{
	return m->offset && m->start - m->offset <= address && address < m->start;
}

static void cover_init(struct cover *c, size_t ncells, struct arena *scratch)
{
	c->first = arena_many(scratch, 2 * ncells, uint32_t);
	for (size_t i = 0; i < 2 * ncells; i++)
		c->first[i] = NONE;
}

static void assigner_init(struct assigner *a, struct builder *b, struct arena *scratch)
{
	size_t n = 0;

	*a = (struct assigner){ .b = b, .scan_budget = SCAN_BUDGET, .fake = NONE };
	a->ends = arena_many(scratch, 3 * b->mappings.n + 1, uint64_t);
	for (size_t i = 0; i < b->mappings.n; i++) {
		const struct mapping *m = &b->mappings.at[i];

		a->ends[n++] = m->start;
		a->ends[n++] = m->limit;
		a->ends[n++] = m->start - m->offset;
	}
	qsort(a->ends, n, sizeof(*a->ends), compare_ends);
	for (size_t i = 0; i < n; i++)
		if (!a->ncells || a->ends[a->ncells - 1] != a->ends[i])
			a->ends[a->ncells++] = a->ends[i];
	cover_init(&a->inside, a->ncells, scratch);
	cover_init(&a->before, a->ncells, scratch);
	for (size_t i = 0; i < b->mappings.n; i++) {
		const struct mapping *m = &b->mappings.at[i];

		if (m->start < m->limit)
			cover_add(a, &a->inside, m->start, m->limit, (uint32_t)i);
		if (m->offset && m->offset <= m->start)
			cover_add(a, &a->before, m->start - m->offset, m->start, (uint32_t)i);
	}
}

/* The first mapping which would cover the address if it began at file offset 0. Once a mapping was
 * found here and extended, the tree of `before` still has its old range. That is harmless, because
 * then `inside` covers that range, unless the mapping ends before it starts: hence the scan. */
static uint32_t find_before(struct assigner *a, uint64_t address, size_t cell)
{
	uint32_t found = cover_find(a, &a->before, cell);

	if (found == NONE || a->b->mappings.at[found].offset)
		return found;
	for (uint32_t i = found + 1; i < a->b->mappings.n && a->scan_budget; i++, a->scan_budget--)
		if (covers_before(&a->b->mappings.at[i], address))
			return i;
	return NONE;
}

/* Handlers of old did not list the first part of a mapping that was split in two. */
static void extend_to_offset_0(struct assigner *a, uint32_t mapping)
{
	struct mapping *m = &a->b->mappings.at[mapping];
	uint64_t start = m->start - m->offset;
	uint64_t limit = m->start < m->limit ? m->start : m->limit;

	if (start < limit)
		cover_add(a, &a->inside, start, limit, mapping);
	m->start = start;
	m->offset = 0;
}

static uint32_t find_mapping(struct assigner *a, uint64_t address)
{
	size_t cell = cell_of(a, address);
	uint32_t found = NONE;

	if (cell != STR_NONE)
		found = cover_find(a, &a->inside, cell);
	/* The fake mapping covers everything, so that nothing is extended once there is one. */
	if (found == NONE && cell != STR_NONE && a->fake == NONE) {
		found = find_before(a, address, cell);
		if (found != NONE)
			extend_to_offset_0(a, found);
	}
	if (found != NONE)
		return found;
	if (a->fake == NONE) {
		a->fake = (uint32_t)a->b->mappings.n;
		vec_push(&a->b->mappings, (struct mapping){ .limit = UINT64_MAX });
	}
	return a->fake;
}

static void repair_main_mapping(struct builder *b)
{
	const uint64_t usual_start = 0x400000;
	struct mapping *m = b->mappings.at;

	if (b->mappings.n > 1 && m[0].limit == m[1].start &&
	    str_has_prefix(b->head.strings->at[m[0].file], STR("/anon_hugepage")))
		memmove(m, m + 1, --b->mappings.n * sizeof(*m));
	if (b->mappings.n && m[0].start - m[0].offset == usual_start) {
		m[0].start = usual_start;
		m[0].offset = 0;
	}
}

void legacy_assign_mappings(struct legacy *r)
{
	struct builder *b = &r->b;
	struct arena scratch = { 0 };
	struct assigner a;

	repair_main_mapping(b);
	assigner_init(&a, b, &scratch);
	for (size_t i = 0; i < b->locations.n; i++) {
		struct location *l = &b->locations.at[i];

		if (l->address)
			l->mapping = find_mapping(&a, l->address);
	}
	for (size_t i = 0; i < b->mappings.n; i++)
		b->mappings.at[i].id = i + 1;
	arena_release(&scratch);
}
