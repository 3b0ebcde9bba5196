/* arena.h - memory that is freed all at once.
 *
 * A thing lives in exactly one arena; the header of its type says whose. Memory comes zeroed, and
 * pages that are never written cost nothing: it is fine to ask for an upper bound and use less.
 * Out of memory ends the program. An arena is for one thread at a time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks;
	char *next, *end;
	char *used; /* up to here the current chunk may hold old bytes */
	struct arena_chunk *kept;
	size_t chunk_bytes;
};

void *arena_alloc(struct arena *a, size_t bytes);
/* Not zeroed, for what is written in full anyway. */
void *arena_raw(struct arena *a, size_t bytes);
/* n elements of `size` bytes; the product may not overflow, or the program ends. */
void *arena_array(struct arena *a, size_t n, size_t size);
void *arena_array_raw(struct arena *a, size_t n, size_t size);
void *arena_copy(struct arena *a, const void *p, size_t bytes);
/* Gives a malloc'ed block to the arena, which will free it. Returns the block. */
void *arena_adopt(struct arena *a, void *malloced);
/* Moves all memory of `from` into `a`. */
void arena_join(struct arena *a, struct arena *from);
void arena_release(struct arena *a);
/* What it holds, touched or not. */
size_t arena_bytes(const struct arena *a);
/* What of it was asked for. */
size_t arena_used(const struct arena *a);
/* For one arena that serves many small tasks in turn: arena_reserve sets memory aside, arena_rewind
 * frees everything but keeps that, so that the next task does not ask the kernel for it again. */
void arena_reserve(struct arena *a, size_t bytes);
void arena_rewind(struct arena *a);

#define arena_new(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define arena_many(a, n, T) ((T *)arena_array((a), (n), sizeof(T)))
#define arena_many_raw(a, n, T) ((T *)arena_array_raw((a), (n), sizeof(T)))

/* Writes to each page of fresh, zeroed memory that several threads' cores will read at random
 * before they write it: a page that is read first costs two faults, and an interrupt on every other
 * core.
 */
void touch_pages(void *zeroed, size_t bytes);
/* Has large fresh memory that will be written in full come in few large pages: fewer faults. */
void huge_pages(void *fresh, size_t bytes);

/* malloc family that ends the program when there is no memory. */
void *xmalloc(size_t bytes);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t bytes);

#endif
