#include "agent/memory.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/local.h"

enum { PAGE = 4096, BLOCK = 64 << 10, ALIGN = 16 };

static atomic_size_t mapped;

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

void *pages_map(size_t bytes)
{
	int kept = errno;
	void *p = mmap(NULL, whole_pages(bytes), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	errno = kept;
	if (p == MAP_FAILED)
		return NULL;
	atomic_fetch_add(&mapped, whole_pages(bytes));
	return p;
}

void pages_unmap(void *p, size_t bytes)
{
	int kept = errno;

	if (p && munmap(p, whole_pages(bytes)) == 0)
		atomic_fetch_sub(&mapped, whole_pages(bytes));
	errno = kept;
}

void *pages_grow(void *p, size_t old, size_t bytes)
{
	int kept = errno;
	void *moved;

	if (!p)
		return pages_map(bytes);
	moved = mremap(p, whole_pages(old), whole_pages(bytes), MREMAP_MAYMOVE);
	errno = kept;
	if (moved == MAP_FAILED)
		return NULL;
	atomic_fetch_add(&mapped, whole_pages(bytes) - whole_pages(old));
	return moved;
}

void *pages_once(_Atomic(void *) *to, size_t bytes)
{
	void *p = atomic_load_explicit(to, memory_order_acquire), *fresh;

	if (p)
		return p;
	fresh = pages_map(bytes);
	if (!fresh)
		return NULL;
	if (atomic_compare_exchange_strong(to, &p, fresh))
		return fresh;
	pages_unmap(fresh, bytes);
	return p;
}

size_t pages_total(void)
{
	return atomic_load(&mapped);
}

/* ---- regions */

struct region_block {
	struct region_block *before;
	size_t used, size;
};

static struct region_block *add_block(struct region *r, size_t bytes)
{
	size_t size = bytes + sizeof(struct region_block) + ALIGN;
	struct region_block *b;

	size = size < BLOCK ? BLOCK : whole_pages(size);
	b = pages_map(size);
	if (!b)
		return NULL;
	*b = (struct region_block){ r->last, (sizeof(*b) + ALIGN - 1) & ~(size_t)(ALIGN - 1),
				    size };
	r->last = b;
	return b;
}

void *region_alloc(struct region *r, size_t bytes)
{
	struct region_block *b = r->last;
	char *p;

	if (bytes > SIZE_MAX / 2)
		return NULL;
	bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (!b || b->size - b->used < bytes)
		b = add_block(r, bytes);
	if (!b)
		return NULL;
	p = (char *)b + b->used;
	b->used += bytes;
	return p;
}

char *region_text(struct region *r, const char *s, size_t n)
{
	char *p = region_alloc(r, n + 1);

	if (p)
		memcpy(p, s, n);
	return p;
}

void region_release(struct region *r)
{
	struct region_block *b = r->last;

	while (b) {
		struct region_block *before = b->before;

		pages_unmap(b, b->size);
		b = before;
	}
	r->last = NULL;
}

/* ---- locks: 0 open, 1 taken, 2 taken and somebody waits */

bool lock_try(struct lock *l)
{
	int open = 0;

	agent_enter();
	if (atomic_compare_exchange_strong(&l->state, &open, 1))
		return true;
	agent_leave();
	return false;
}

void lock_take(struct lock *l)
{
	int kept = errno, open = 0;

	agent_enter();
	if (!atomic_compare_exchange_strong(&l->state, &open, 1))
		while (atomic_exchange(&l->state, 2) != 0)
			syscall(SYS_futex, &l->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
	errno = kept;
}

void lock_give(struct lock *l)
{
	int kept = errno;

	if (atomic_exchange(&l->state, 0) == 2)
		syscall(SYS_futex, &l->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = kept;
	agent_leave();
}
