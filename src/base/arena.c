#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FIRST_CHUNK = 1 << 16, LAST_CHUNK = 1 << 23, HUGE_PAGE = 1 << 21 };

/* Heads each mapping, or stands alone for an adopted block. */
struct arena_chunk {
	struct arena_chunk *next;
	size_t bytes; /* of the mapping, this header included; 0: `adopted` is freed instead */
	void *adopted;
};

static _Noreturn void no_memory(size_t bytes)
{
	fprintf(stderr, "kiln: out of memory (%zu bytes wanted)\n", bytes);
	abort();
}

static struct arena_chunk *chunk_map(size_t bytes)
{
	struct arena_chunk *c = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (c == MAP_FAILED)
		no_memory(bytes);
	/* Fewer page faults; the kernel splits what stays untouched at the end. */
	if (bytes >= 4 * (size_t)HUGE_PAGE)
		madvise(c, bytes, MADV_HUGEPAGE);
	c->bytes = bytes;
	return c;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
	struct arena_chunk *c;
	char *p;

	if (bytes > SIZE_MAX / 2)
		no_memory(bytes);
	bytes = bytes ? (bytes + 15) & ~(size_t)15 : 16;
	if (bytes <= (size_t)(a->end - a->next)) {
		p = a->next;
		a->next += bytes;
		return p;
	}
	if (bytes >= FIRST_CHUNK) { /* its own mapping; the current chunk goes on */
		c = chunk_map(bytes + sizeof(*c) + 8);
		c->next = a->chunks;
		a->chunks = c;
		return (char *)c + ((sizeof(*c) + 15) & ~(size_t)15);
	}
	a->chunk_bytes = a->chunk_bytes ? a->chunk_bytes * 2 : FIRST_CHUNK;
	if (a->chunk_bytes > LAST_CHUNK)
		a->chunk_bytes = LAST_CHUNK;
	if (a->chunk_bytes < bytes + 64)
		a->chunk_bytes = 2 * FIRST_CHUNK;
	c = chunk_map(a->chunk_bytes);
	c->next = a->chunks;
	a->chunks = c;
	p = (char *)c + ((sizeof(*c) + 15) & ~(size_t)15);
	a->next = p + bytes;
	a->end = (char *)c + a->chunk_bytes;
	return p;
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / 2 / size)
		no_memory(SIZE_MAX);
	return arena_alloc(a, n * size);
}

void *arena_copy(struct arena *a, const void *p, size_t bytes)
{
	void *to = arena_alloc(a, bytes);

	if (bytes)
		memcpy(to, p, bytes);
	return to;
}

void *arena_adopt(struct arena *a, void *malloced)
{
	struct arena_chunk *c;

	if (!malloced)
		return NULL;
	c = arena_alloc(a, sizeof(*c));
	c->adopted = malloced;
	c->next = a->chunks;
	a->chunks = c;
	return malloced;
}

void arena_join(struct arena *a, struct arena *from)
{
	struct arena_chunk **last = &from->chunks;

	while (*last)
		last = &(*last)->next;
	*last = a->chunks;
	a->chunks = from->chunks;
	*from = (struct arena){ 0 };
}

void arena_release(struct arena *a)
{
	struct arena_chunk *c, *next, *mapped = NULL;

	/* Adopted blocks have their heads inside mappings, so those go last. */
	for (c = a->chunks; c; c = next) {
		next = c->next;
		if (c->bytes) {
			c->next = mapped;
			mapped = c;
		} else {
			free(c->adopted);
		}
	}
	for (c = mapped; c; c = next) {
		next = c->next;
		munmap(c, c->bytes);
	}
	*a = (struct arena){ 0 };
}

void *xmalloc(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (!p)
		no_memory(bytes);
	return p;
}

void *xrealloc(void *p, size_t bytes)
{
	p = realloc(p, bytes ? bytes : 1);
	if (!p)
		no_memory(bytes);
	return p;
}
