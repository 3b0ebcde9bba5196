#include "base/vec.h"

void *vec_grow(void *at, size_t *cap, size_t want, size_t size)
{
	size_t n = *cap ? *cap * 2 : 16;

	while (n < want)
		n *= 2;
	*cap = n;
	return xrealloc(at, n * size);
}

void *vec_adopt_(struct arena *a, void **at, size_t *n, size_t *cap)
{
	void *p = arena_adopt(a, *at);

	*at = NULL;
	*n = *cap = 0;
	return p;
}
