#include "profile/recycle.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4 /* Linux 5.7 */
#endif

static uintptr_t page_up(const void *p)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	return ((uintptr_t)p + page - 1) & ~(page - 1);
}

static uintptr_t page_down(const void *p)
{
	return (uintptr_t)p & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

void recycler_init(struct recycler *r, const void *in, void *out, void *out_end)
{
	*r = (struct recycler){ page_up(in), page_up(out), page_down(out_end) };
}

void recycle(struct recycler *r, const void *read, const void *written)
{
	uintptr_t end = page_down(read), start = page_up(written);
	size_t bytes = end > r->read ? end - r->read : 0;
	void *from = (void *)r->read;
	bool is_moved = false;

	if (!bytes)
		return;
	if (start < r->ready)
		start = r->ready;
	/* Not further ahead than the output is likely to get: unused pages are a waste. */
	if (start - (uintptr_t)written < bytes && start + bytes <= r->out_end)
		is_moved =
			mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
			       (void *)start) != MAP_FAILED;
	if (is_moved)
		r->ready = start + bytes;
	else
		madvise(from, bytes, MADV_DONTNEED);
	r->read = end;
}

void recycler_finish(struct recycler *r, const void *written)
{
	uintptr_t start = page_up(written);

	if (start < r->ready)
		madvise((void *)start, r->ready - start, MADV_DONTNEED);
}
