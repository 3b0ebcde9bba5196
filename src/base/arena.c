#include "base/arena.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	FIRST_CHUNK = 1 << 16,
	LAST_CHUNK = 1 << 23,
	SPARE_CHUNKS = 32,
	PAGE = 1 << 12,
	HUGE_PAGE = 1 << 21,
};

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
	if (bytes >= 64 * (size_t)HUGE_PAGE)
		madvise(c, bytes, MADV_HUGEPAGE);
	c->bytes = bytes;
	return c;
}

static char *chunk_start(struct arena_chunk *c)
{
	return (char *)c + ((sizeof(*c) + 15) & ~(size_t)15);
}

/* First chunks of arenas that are no more, for the next: most need no other, and whoever asks the
 * kernel waits for all that do. A lock would be taken for ever in a child of a process that forks
 * meanwhile. */
static _Atomic(struct arena_chunk *) spare[SPARE_CHUNKS];

static struct arena_chunk *take_spare(void)
{
	struct arena_chunk *c = NULL;

	for (unsigned i = 0; i < SPARE_CHUNKS && !c; i++)
		if (atomic_load_explicit(&spare[i], memory_order_relaxed))
			c = atomic_exchange(&spare[i], NULL);
	return c;
}

static void chunk_free(struct arena_chunk *c)
{
	for (unsigned i = 0; c->bytes == FIRST_CHUNK && i < SPARE_CHUNKS; i++) {
		struct arena_chunk *none = NULL;

		if (atomic_compare_exchange_strong(&spare[i], &none, c))
			return;
	}
	munmap(c, c->bytes);
}

static struct arena_chunk *add_chunk(struct arena *a, size_t bytes)
{
	struct arena_chunk *c = chunk_map(bytes);

	c->next = a->chunks;
	a->chunks = c;
	return c;
}

static void use_chunk(struct arena *a, struct arena_chunk *c)
{
	a->next = a->used = chunk_start(c);
	a->end = (char *)c + c->bytes;
}

static void use_next_chunk(struct arena *a)
{
	struct arena_chunk *c = a->chunk_bytes == FIRST_CHUNK ? take_spare() : NULL;

	if (!c) {
		use_chunk(a, add_chunk(a, a->chunk_bytes));
		return;
	}
	c->next = a->chunks;
	a->chunks = c;
	use_chunk(a, c);
	a->used = a->end;
}

/* A mapping of its own. Large ones start where a huge page can, see huge_pages. */
static void *take_mapping(struct arena *a, size_t bytes)
{
	size_t align = bytes < HUGE_PAGE ? 16 : HUGE_PAGE;
	char *p = chunk_start(add_chunk(a, bytes + sizeof(struct arena_chunk) + align));

	return p + (-(uintptr_t)p & (align - 1));
}

/* *dirty: how many of the bytes hold what an earlier task left there. */
static void *take(struct arena *a, size_t bytes, size_t *dirty)
{
	char *p;

	*dirty = 0;
	if (bytes > SIZE_MAX / 2)
		no_memory(bytes);
	bytes = bytes ? (bytes + 15) & ~(size_t)15 : 16;
	if (bytes > (size_t)(a->end - a->next)) {
		if (bytes >= FIRST_CHUNK) /* its own mapping; the current chunk goes on */
			return take_mapping(a, bytes);
		a->chunk_bytes = a->chunk_bytes ? a->chunk_bytes * 2 : FIRST_CHUNK;
		if (a->chunk_bytes > LAST_CHUNK)
			a->chunk_bytes = LAST_CHUNK;
		if (a->chunk_bytes < bytes + 64)
			a->chunk_bytes = 2 * FIRST_CHUNK;
		use_next_chunk(a);
	}
	p = a->next;
	a->next += bytes;
	if (p < a->used)
		*dirty = (size_t)(a->used - p) < bytes ? (size_t)(a->used - p) : bytes;
	return p;
}

/* A build with sanitizers shows who takes it for zeros, which it mostly is by chance. */
static void make_junk(void *p, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
	memset(p, 0xa5, bytes < FIRST_CHUNK ? (bytes + 15) & ~(size_t)15 : FIRST_CHUNK);
#else
	(void)p, (void)bytes;
#endif
}

void *arena_raw(struct arena *a, size_t bytes)
{
	size_t dirty;
	void *p = take(a, bytes, &dirty);

	make_junk(p, bytes);
	return p;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
	size_t dirty;
	void *p = take(a, bytes, &dirty);

	return dirty ? memset(p, 0, dirty) : p;
}

void *arena_array_raw(struct arena *a, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / 2 / size)
		no_memory(SIZE_MAX);
	return arena_raw(a, n * size);
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / 2 / size)
		no_memory(SIZE_MAX);
	return arena_alloc(a, n * size);
}

void *arena_copy(struct arena *a, const void *p, size_t bytes)
{
	void *to = arena_raw(a, bytes);

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

/* Frees all chunks but `keep`. */
static void free_chunks(struct arena *a, struct arena_chunk *keep)
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
	while (mapped) {
		c = mapped;
		mapped = c->next;
		if (c != keep)
			chunk_free(c);
	}
}

void arena_release(struct arena *a)
{
	free_chunks(a, NULL);
	*a = (struct arena){ 0 };
}

size_t arena_bytes(const struct arena *a)
{
	size_t bytes = 0;

	for (const struct arena_chunk *c = a->chunks; c; c = c->next)
		bytes += c->bytes ? c->bytes : malloc_usable_size(c->adopted);
	return bytes;
}

size_t arena_used(const struct arena *a)
{
	return arena_bytes(a) - (size_t)(a->end - a->next);
}

void arena_reserve(struct arena *a, size_t bytes)
{
	a->kept = add_chunk(a, bytes + sizeof(struct arena_chunk) + 8);
	use_chunk(a, a->kept);
}

void arena_rewind(struct arena *a)
{
	struct arena_chunk *kept = a->kept;
	/* When the kept chunk is not the current one any more, all of it may have been used. */
	bool is_current = kept && a->end == (char *)kept + kept->bytes;
	char *used = !kept ? NULL : is_current ? a->next : (char *)kept + kept->bytes;

	if (is_current && a->used > used)
		used = a->used;
	free_chunks(a, kept);
	*a = (struct arena){ .kept = kept, .chunks = kept };
	if (kept) {
		kept->next = NULL;
		use_chunk(a, kept);
		a->used = used;
	}
}

void touch_pages(void *zeroed, size_t bytes)
{
	volatile char *p = zeroed;

	for (size_t i = 0; i < bytes; i += PAGE)
		p[i] = 0;
}

void huge_pages(void *p, size_t bytes)
{
	uintptr_t start = ((uintptr_t)p + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
	uintptr_t end = ((uintptr_t)p + bytes) & ~(uintptr_t)(HUGE_PAGE - 1);

	if (start < end)
		madvise((char *)p + (start - (uintptr_t)p), end - start, MADV_HUGEPAGE);
}

void *xmalloc(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (!p)
		no_memory(bytes);
	return p;
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		no_memory(n * size);
	return p;
}

void *xrealloc(void *p, size_t bytes)
{
	p = realloc(p, bytes ? bytes : 1);
	if (!p)
		no_memory(bytes);
	return p;
}
