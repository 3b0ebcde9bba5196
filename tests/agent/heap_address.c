/* heap_address.c - built without -pie, a program that uses the address of malloc has a stub of that
 * name of its own, which the loader's functions take for malloc. */
#include <malloc.h>
#include <stdlib.h>

static void *(*volatile by_malloc)(size_t) = malloc;
static void (*volatile by_free)(void *) = free;
static void *(*volatile by_calloc)(size_t, size_t) = calloc;
static void *(*volatile by_realloc)(void *, size_t) = realloc;

int main(void)
{
	for (int i = 0; i < 1000; i++) {
		void *p = by_realloc(by_malloc(1000), 5000);

		p = reallocarray(p, 100, 100);
		by_free(p);
		by_free(by_calloc(3, 4));
		p = NULL;
		if (posix_memalign(&p, 64, 100))
			return 1;
		by_free(p);
		by_free(pvalloc(10));
	}
	return 0;
}
