/* heap_sites.c - each function of malloc's family, from a place of its own, as often as said.
 * Prints "place objects bytes live-objects live-bytes". */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACE __attribute__((noinline, noclone)) static void *
#define KEEP(p) __asm__ volatile("" : "+r"(p)::"memory")

PLACE by_malloc(size_t n)
{
	void *p = malloc(n);

	KEEP(p);
	return p;
}

PLACE by_calloc(size_t n)
{
	void *p = calloc(n / 8, 8);

	KEEP(p);
	return p;
}

PLACE by_realloc(size_t n)
{
	void *p = realloc(NULL, n);

	KEEP(p);
	return p;
}

PLACE by_reallocarray(size_t n)
{
	void *p = reallocarray(NULL, n / 8, 8);

	KEEP(p);
	return p;
}

PLACE by_memalign(size_t n)
{
	void *p = memalign(64, n);

	KEEP(p);
	return p;
}

PLACE by_aligned_alloc(size_t n)
{
	void *p = aligned_alloc(32, n);

	KEEP(p);
	return p;
}

PLACE by_posix_memalign(size_t n)
{
	void *p = NULL;

	if (posix_memalign(&p, 4096, n))
		p = NULL;
	KEEP(p);
	return p;
}

PLACE by_valloc(size_t n)
{
	void *p = valloc(n);

	KEEP(p);
	return p;
}

PLACE by_pvalloc(size_t n)
{
	void *p = pvalloc(n);

	KEEP(p);
	return p;
}

PLACE by_strdup(size_t n)
{
	char text[8192];
	void *p;

	memset(text, 'x', n);
	text[n - 1] = '\0';
	p = strdup(text);
	KEEP(p);
	return p;
}

static void run(const char *name, void *(*place)(size_t), size_t bytes, size_t times)
{
	size_t live = 0;

	for (size_t i = 0; i < times; i++) {
		char *p = place(bytes);

		p[0] = p[bytes - 1] = 1;
		if (malloc_usable_size(p) < bytes)
			abort();
		if (i % 4 == 0)
			live++;
		else
			free(p);
	}
	printf("%s %zu %zu %zu %zu\n", name, times, times * bytes, live, live * bytes);
}

/* Grows and shrinks: what a sample is charged with moves along. */
__attribute__((noinline, noclone)) static void *by_growing(void *p, size_t n)
{
	p = realloc(p, n);
	KEEP(p);
	return p;
}

static void run_growing(size_t times)
{
	size_t objects = 0, bytes = 0, live = 0;

	for (size_t i = 0; i < times; i++) {
		void *p = NULL;

		for (size_t n = 16; n <= 4096; n *= 4, objects++) {
			p = by_growing(p, n);
			bytes += n;
		}
		if (i % 4 == 0)
			live++;
		else
			free(p);
	}
	printf("by_growing %zu %zu %zu %zu\n", objects, bytes, live, live * 4096);
}

int main(int argc, char **argv)
{
	size_t times = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;

	run("by_malloc", by_malloc, 1000, times);
	run("by_calloc", by_calloc, 2000, times);
	run("by_realloc", by_realloc, 300, times);
	run("by_reallocarray", by_reallocarray, 4800, times);
	run("by_memalign", by_memalign, 640, times);
	run("by_aligned_alloc", by_aligned_alloc, 1024, times);
	run("by_posix_memalign", by_posix_memalign, 8192, times / 4);
	run("by_valloc", by_valloc, 5000, times / 4);
	run("by_pvalloc", by_pvalloc, 4096, times / 4);
	run("by_strdup", by_strdup, 77, times);
	run_growing(times);
	return 0;
}
