#include "agent/sort.h"

static void swap(char *a, char *b, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		char kept = a[i];

		a[i] = b[i];
		b[i] = kept;
	}
}

/* Below `at` it is a heap already, the largest on top. */
static void sift(char *items, size_t at, size_t n, size_t size,
		 int (*compare)(const void *, const void *))
{
	for (size_t child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && compare(items + child * size, items + (child + 1) * size) < 0)
			child++;
		if (compare(items + at * size, items + child * size) >= 0)
			return;
		swap(items + at * size, items + child * size, size);
	}
}

void sort(void *items, size_t n, size_t size, int (*compare)(const void *, const void *))
{
	char *p = items;

	for (size_t i = n / 2; i-- > 0;)
		sift(p, i, n, size, compare);
	for (size_t i = n; i-- > 1;) {
		swap(p, p + i * size, size);
		sift(p, 0, i, size, compare);
	}
}
