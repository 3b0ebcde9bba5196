#include "agent/memory.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/local.h"

enum {
	PAGE = 4096,
	BLOCK = 64 << 10,
	ALIGN = 16,
	RESERVE_BYTES = 4 << 20,
	RESERVE_PIECE = 1 << 20, /* the most that one may take: large tables of names go without */
	KEPT = 32,		 /* pieces, of so many bytes at most, and of all of them: */
	KEPT_PIECE = 256 << 10,
	KEPT_BYTES = 1 << 20
};

static atomic_size_t mapped;

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

/* ---- the reserve: a stack of pieces, which is empty again when the last of them is given back */

static _Atomic(char *) reserve;
static atomic_ullong reserve_state; /* bytes in use, and 2^32 for each piece */
static __thread bool may_use_reserve;
static const unsigned long long PIECE = 1ull << 32;

void pages_reserve(void)
{
	char *none = NULL, *p = atomic_load(&reserve) ? NULL : pages_map(RESERVE_BYTES);

	if (p && !atomic_compare_exchange_strong(&reserve, &none, p))
		pages_unmap(p, RESERVE_BYTES);
}

bool pages_use_reserve(bool is_on)
{
	bool before = may_use_reserve;

	may_use_reserve = is_on;
	return before;
}

static bool is_reserved(const void *p)
{
	const char *start = atomic_load(&reserve);

	return start && (uintptr_t)p - (uintptr_t)start < RESERVE_BYTES;
}

static void *reserve_take(size_t bytes)
{
	unsigned long long was = atomic_load(&reserve_state);
	char *start = atomic_load(&reserve);

	if (!may_use_reserve || !start || bytes > RESERVE_PIECE)
		return NULL;
	do {
		if ((uint32_t)was + bytes > RESERVE_BYTES)
			return NULL;
	} while (!atomic_compare_exchange_weak(&reserve_state, &was, was + bytes + PIECE));
	return memset(start + (uint32_t)was, 0, bytes);
}

static void reserve_give(const char *p, size_t bytes)
{
	unsigned long long was = atomic_load(&reserve_state), is;

	do {
		bool is_top = p + bytes == atomic_load(&reserve) + (uint32_t)was;

		is = was - PIECE - (is_top ? bytes : 0);
		is = is < PIECE ? 0 : is;
	} while (!atomic_compare_exchange_weak(&reserve_state, &was, is));
}

/* ---- pieces that are kept: in a word the address, and how many pages */

static atomic_uintptr_t kept_pieces[KEPT];
static atomic_size_t kept_bytes;
static __thread bool keeps_pages;

void pages_keep(void)
{
	keeps_pages = true;
}

static void *take_kept(size_t bytes)
{
	for (size_t i = 0; keeps_pages && bytes <= KEPT_PIECE && i < KEPT; i++) {
		uintptr_t piece = atomic_load_explicit(&kept_pieces[i], memory_order_relaxed);

		if (!piece || (piece & (PAGE - 1)) != bytes / PAGE ||
		    !atomic_compare_exchange_strong(&kept_pieces[i], &piece, 0))
			continue;
		atomic_fetch_sub(&kept_bytes, bytes);
		return memset((void *)(piece & ~(uintptr_t)(PAGE - 1)), 0, bytes);
	}
	return NULL;
}

static bool keep(void *p, size_t bytes)
{
	if (!keeps_pages || bytes > KEPT_PIECE)
		return false;
	if (atomic_fetch_add(&kept_bytes, bytes) + bytes <= KEPT_BYTES)
		for (size_t i = 0; i < KEPT; i++) {
			uintptr_t none = 0;

			if (atomic_compare_exchange_strong(&kept_pieces[i], &none,
							   (uintptr_t)p | bytes / PAGE))
				return true;
		}
	atomic_fetch_sub(&kept_bytes, bytes);
	return false;
}

/* ---- pages */

static void *map_fresh(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	atomic_fetch_add(&mapped, bytes);
	return p;
}

void *pages_map(size_t bytes)
{
	int kept = errno;
	void *p;

	bytes = whole_pages(bytes);
	p = take_kept(bytes);
	if (!p)
		p = map_fresh(bytes);
	if (!p)
		p = reserve_take(bytes);
	errno = kept;
	return p;
}

void pages_unmap(void *p, size_t bytes)
{
	int kept = errno;

	bytes = whole_pages(bytes);
	if (p && is_reserved(p))
		reserve_give(p, bytes);
	else if (p && bytes && !keep(p, bytes) && munmap(p, bytes) == 0)
		atomic_fetch_sub(&mapped, bytes);
	errno = kept;
}

static void *move(void *p, size_t old, size_t bytes)
{
	void *moved = pages_map(bytes);

	if (moved) {
		memcpy(moved, p, old);
		pages_unmap(p, old);
	}
	return moved;
}

void *pages_grow(void *p, size_t old, size_t bytes)
{
	int kept = errno;
	void *moved;

	if (!p)
		return pages_map(bytes);
	if (is_reserved(p))
		return move(p, old, bytes);
	moved = mremap(p, whole_pages(old), whole_pages(bytes), MREMAP_MAYMOVE);
	errno = kept;
	if (moved == MAP_FAILED)
		return may_use_reserve ? move(p, old, bytes) : NULL;
	atomic_fetch_add(&mapped, whole_pages(bytes) - whole_pages(old));
	return moved;
}

void pages_trim(void *p, size_t old, size_t bytes)
{
	size_t kept = whole_pages(bytes);

	if (!is_reserved(p) && kept < whole_pages(old))
		pages_unmap((char *)p + kept, old - kept);
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
