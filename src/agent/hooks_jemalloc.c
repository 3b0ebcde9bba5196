/* hooks_jemalloc.c - what jemalloc has beside malloc. A program may ask whether these are there
 * before it uses them, and find ours without jemalloc behind them: so they do without it. xallocx
 * is not among them: it moves nothing. */
#include "agent/hooks_malloc.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "kiln.h"

KILN_API void *mallocx(size_t size, int flags);
KILN_API void *rallocx(void *p, size_t size, int flags);
KILN_API void dallocx(void *p, int flags);
KILN_API void sdallocx(void *p, size_t size, int flags);

enum { IS_ZEROED = 0x40, LG_ALIGNMENT = 0x3f };

static struct {
	bool is_known;
	void *(*mallocx)(size_t, int);
	void *(*rallocx)(void *, size_t, int);
	void (*dallocx)(void *, int);
	void (*sdallocx)(void *, size_t, int);
} next;

/* All or none. Twice at a time finds the same. */
static bool has_next(void)
{
	if (!next.is_known) {
		next.rallocx = (void *(*)(void *, size_t, int))malloc_find_next("rallocx");
		next.dallocx = (void (*)(void *, int))malloc_find_next("dallocx");
		next.sdallocx = (void (*)(void *, size_t, int))malloc_find_next("sdallocx");
		next.mallocx = (void *(*)(size_t, int))malloc_find_next("mallocx");
		next.is_known = true;
	}
	return next.mallocx && next.rallocx && next.dallocx && next.sdallocx;
}

static void *plain_mallocx(size_t size, int flags)
{
	size_t alignment = (size_t)1 << (flags & LG_ALIGNMENT);
	void *p;

	if (alignment <= 2 * sizeof(void *))
		return flags & IS_ZEROED ? calloc(1, size) : malloc(size);
	p = memalign(alignment, size);
	if (p && flags & IS_ZEROED)
		memset(p, 0, size);
	return p;
}

void *mallocx(size_t size, int flags)
{
	struct walk_start start = walk_caller();
	bool is_sampled;
	void *p;

	if (!has_next())
		return plain_mallocx(size, flags);
	is_sampled = !heap_passes(size) && heap_is_sampled(size);
	p = next.mallocx(size, flags);
	malloc_finish(p, size, is_sampled, &start);
	return p;
}

/* Always moves, since realloc would not keep the alignment. */
static void *plain_rallocx(void *p, size_t size, int flags)
{
	size_t had = malloc_usable_size(p);
	void *moved = plain_mallocx(size, flags);

	if (!moved)
		return NULL;
	memcpy(moved, p, had < size ? had : size);
	free(p);
	return moved;
}

void *rallocx(void *p, size_t size, int flags)
{
	struct walk_start start = walk_caller();
	struct live_sample old;
	bool is_sampled, was_sampled;
	void *moved;

	if (!has_next())
		return plain_rallocx(p, size, flags);
	is_sampled = !heap_passes(size) && heap_is_sampled(size);
	was_sampled = live_may_have(p) && heap_remove(p, &old);
	moved = next.rallocx(p, size, flags);
	if (!moved && was_sampled)
		heap_restore(&old);
	malloc_finish(moved, size, is_sampled, &start);
	return moved;
}

void dallocx(void *p, int flags)
{
	if (!has_next()) {
		free(p);
		return;
	}
	if (live_may_have(p))
		malloc_forget(p);
	next.dallocx(p, flags);
}

void sdallocx(void *p, size_t size, int flags)
{
	if (!has_next()) {
		free(p);
		return;
	}
	if (live_may_have(p))
		malloc_forget(p);
	next.sdallocx(p, size, flags);
}
