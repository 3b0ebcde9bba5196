/* hooks_malloc.c - malloc and its family.
 *
 * The hooks that matter are one jump through a pointer. It leads to the next allocator while
 * nothing is counted, else to a function that counts bytes and jumps there too. Before the next
 * allocator is known it leads to one that finds it; the loader's functions that it needs for that
 * may allocate themselves, and get memory that is never freed.
 */
#include "agent/hooks_malloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/real.h"
#include "kiln.h"

#pragma weak dladdr1 /* see weak.h */

enum { EARLY_BYTES = 64 << 10, EARLY_ALIGN = 16, PAGE = 4096 };

/* ---- who is next */

#define FAMILY(F)  \
	F(malloc)  \
	F(free)    \
	F(calloc)  \
	F(realloc) \
	F(memalign) F(aligned_alloc) F(posix_memalign) F(valloc) F(pvalloc) F(malloc_usable_size)

static struct {
#define FIELD(name) __typeof__(&name) name;
	FAMILY(FIELD)
#undef FIELD
	void (*free_sized)(void *, size_t);
	void (*free_aligned_sized)(void *, size_t, size_t);
} next;

static void *counted_malloc(size_t size);
static void counted_free(void *p);
static void *counted_calloc(size_t n, size_t size);
static void *counted_realloc(void *p, size_t size);
static void early_free(void *p);
static void *first_malloc(size_t size);
static void first_free(void *p);
static void *first_calloc(size_t n, size_t size);
static void *first_realloc(void *p, size_t size);

struct malloc_ways malloc_ways = {
	.malloc = first_malloc, .free = first_free, .calloc = first_calloc, .realloc = first_realloc
};

static bool is_counting, has_counted; /* has_counted: there may be samples to be freed */
static bool is_bypassed;	      /* malloc is not ours */
static __thread bool is_searching;

/* ---- memory for the search */

static char early[EARLY_BYTES] __attribute__((aligned(EARLY_ALIGN)));
static atomic_size_t early_used;

static bool is_early(const void *p)
{
	return (uintptr_t)p - (uintptr_t)early < EARLY_BYTES;
}

/* Its size is in front of it. */
static size_t early_size(const void *p)
{
	return *(const size_t *)(const void *)((const char *)p - EARLY_ALIGN);
}

static void *early_alloc(size_t size)
{
	size_t whole = (size + 2 * EARLY_ALIGN - 1) & ~(size_t)(EARLY_ALIGN - 1), at;

	if (size < EARLY_BYTES) {
		at = atomic_fetch_add(&early_used, whole);
		if (at + whole <= EARLY_BYTES) {
			*(size_t *)(void *)(early + at) = size;
			return early + at + EARLY_ALIGN;
		}
		atomic_fetch_sub(&early_used, whole);
	}
	errno = ENOMEM;
	return NULL;
}

/* ---- the search */

/* The compiler believes that dlsym never calls back into this file. */
static void set_searching(bool is_on)
{
	__asm__ volatile("" ::: "memory");
	is_searching = is_on;
	__asm__ volatile("" ::: "memory");
}

static bool is_ours(uintptr_t function)
{
	return real_file_of(function) == real_file_of((uintptr_t)counted_malloc);
}

/* Two copies would call each other for ever. */
static bool is_of_a_copy(uintptr_t function)
{
	const struct link_map *copy = real_other_copy();

	return copy && real_file_of(function) == copy;
}

/* The message is not the program's. dlerror would translate it, and wait for a lock of setlocale
 * that the caller of malloc may have; a call that succeeds takes it away as well. */
static void forget_error(void)
{
	dlsym(RTLD_DEFAULT, "malloc");
}

/* A program that is not position-independent and uses a function's address has a stub of that name,
 * which dlsym takes for the function; it leads to whatever comes first among the libraries. */
static bool is_stub(uintptr_t function)
{
	const struct link_map *map = real_file_of(function);
	ElfW(Sym) *symbol = NULL;
	Dl_info info;

	return dladdr1 && map && !map->l_prev &&
	       dladdr1((const void *)function, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
	       symbol->st_shndx == SHN_UNDEF;
}

/* The first definition in the libraries that come before us. */
static uintptr_t find_before(const char *name)
{
	struct link_map *map = real_file_of((uintptr_t)counted_malloc);
	uintptr_t found = 0, here;
	void *handle;

	if (!map)
		return 0;
	for (map = map->l_prev; map && map->l_prev; map = map->l_prev) {
		handle = strchr(map->l_name, '/') ? dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD)
						  : NULL;
		if (!handle)
			continue;
		here = (uintptr_t)dlsym(handle, name);
		dlclose(handle);
		if (here && real_file_of(here) == map)
			found = here;
	}
	return found;
}

/* An allocator that comes before us gets all calls but for what it does not have, as reallocarray:
 * of all others its own definition is the one to go on with. */
static uintptr_t find_first(const char *name)
{
	uintptr_t found = (uintptr_t)dlsym(RTLD_DEFAULT, name);

	return found && is_stub(found) ? find_before(name) : found;
}

uintptr_t malloc_find_next(const char *name)
{
	uintptr_t found;

	if (real_is_static())
		return (uintptr_t)real_find_static(name);
	set_searching(true);
	found = find_first(name);
	if (!found || is_ours(found) || is_of_a_copy(found))
		found = (uintptr_t)dlsym(RTLD_NEXT, name);
	if (!found)
		forget_error();
	set_searching(false);
	return found;
}

bool malloc_is_kin(uintptr_t function)
{
	return function && real_file_of(function) == real_file_of((uintptr_t)next.malloc);
}

bool malloc_is_first(const char *name)
{
	uintptr_t first;

	if (real_is_static())
		return false;
	set_searching(true);
	first = find_first(name);
	set_searching(false);
	return !first || is_ours(first); /* it may be that only a stub comes before us */
}

/* jemalloc has no pvalloc, for one: that of libc would give memory that jemalloc cannot free. */
static void drop_strangers(void)
{
	if (!malloc_is_kin((uintptr_t)next.memalign) &&
	    !malloc_is_kin((uintptr_t)next.aligned_alloc) &&
	    !malloc_is_kin((uintptr_t)next.posix_memalign))
		return;
#define DROP(name)                                \
	if (!malloc_is_kin((uintptr_t)next.name)) \
		next.name = NULL;
	DROP(memalign)
	DROP(aligned_alloc)
	DROP(posix_memalign)
	DROP(valloc)
	DROP(pvalloc)
#undef DROP
}

static void choose_ways(void)
{
	malloc_ways.next_malloc = next.malloc;
	malloc_ways.next_free = next.free;
	malloc_ways.free = atomic_load(&early_used) ? early_free
			   : has_counted	    ? counted_free
						    : next.free;
	malloc_ways.realloc =
		has_counted || atomic_load(&early_used) ? counted_realloc : next.realloc;
	malloc_ways.calloc = is_counting ? counted_calloc : next.calloc;
	malloc_ways.malloc = is_counting ? counted_malloc : next.malloc;
}

/* Not in all allocators. Those that are not found leave a message behind, which is allocated: so
 * not before the others are there. */
static void search_more(void)
{
	next.free_sized = (void (*)(void *, size_t))malloc_find_next("free_sized");
	next.free_aligned_sized =
		(void (*)(void *, size_t, size_t))malloc_find_next("free_aligned_sized");
}

/* False: not now, since this is called by the search itself. Twice at a time finds the same. */
static bool search(void)
{
	int kept = errno;

	if (is_searching)
		return false;
#define FIND(name) next.name = (__typeof__(&name))malloc_find_next(#name);
	FAMILY(FIND)
#undef FIND
	is_bypassed = !malloc_is_first("malloc");
	errno = kept;
	if (!next.malloc || !next.free || !next.calloc || !next.realloc)
		return false;
	drop_strangers();
	choose_ways();
	search_more();
	errno = kept;
	return true;
}

static void *first_malloc(size_t size)
{
	return search() ? malloc_ways.malloc(size) : early_alloc(size);
}

static void first_free(void *p)
{
	if (p && !is_early(p) && search())
		malloc_ways.free(p);
}

static void *first_calloc(size_t n, size_t size)
{
	size_t bytes;

	if (search())
		return malloc_ways.calloc(n, size);
	return early_alloc(__builtin_mul_overflow(n, size, &bytes) ? SIZE_MAX : bytes);
}

static void *early_realloc(void *p, size_t size)
{
	void *moved = malloc(size);

	if (moved)
		memcpy(moved, p, size < early_size(p) ? size : early_size(p));
	return moved;
}

static void *first_realloc(void *p, size_t size)
{
	if (is_early(p))
		return early_realloc(p, size);
	if (search())
		return malloc_ways.realloc(p, size);
	return p ? NULL : early_alloc(size);
}

static void early_free(void *p)
{
	if (!is_early(p))
		counted_free(p);
}

/* Is the next allocator known? */
static bool is_ready(void)
{
	return next.malloc || search();
}

/* ---- counting */

static inline bool is_counted(size_t size)
{
	return is_counting && !heap_passes(size) && heap_is_sampled(size);
}

static __attribute__((noinline)) void *slow_malloc(size_t size)
{
	struct walk_start start = walk_caller();
	bool is_sampled = heap_is_sampled(size);
	void *p = next.malloc(size);

	malloc_finish(p, size, is_sampled, &start);
	return p;
}

static void *counted_malloc(size_t size)
{
	return heap_passes(size) ? malloc_ways.next_malloc(size) : slow_malloc(size);
}

static __attribute__((noinline)) void *slow_calloc(size_t n, size_t size)
{
	struct walk_start start = walk_caller();
	size_t bytes;
	bool is_sampled = !__builtin_mul_overflow(n, size, &bytes) && heap_is_sampled(bytes);
	void *p = next.calloc(n, size);

	malloc_finish(p, bytes, is_sampled, &start);
	return p;
}

static void *counted_calloc(size_t n, size_t size)
{
	size_t bytes;

	if (!__builtin_mul_overflow(n, size, &bytes) && heap_passes(bytes))
		return next.calloc(n, size);
	return slow_calloc(n, size);
}

static __attribute__((noinline)) void slow_free(void *p)
{
	malloc_forget(p);
	next.free(p);
}

static void counted_free(void *p)
{
	if (__builtin_expect(live_may_have(p), 0))
		slow_free(p);
	else
		malloc_ways.next_free(p);
}

/* The old sample goes before memory may be freed, since another thread may get it at once. A size
 * of 0 frees, and returns NULL, in some allocators, in others it is a size as all are. */
static void *counted_realloc(void *p, size_t size)
{
	struct walk_start start = walk_caller();
	struct live_sample old;
	bool is_sampled, was_sampled;
	void *moved;

	if (is_early(p))
		return early_realloc(p, size);
	is_sampled = is_counted(size);
	was_sampled = p && live_may_have(p) && heap_remove(p, &old);
	moved = next.realloc(p, size);
	if (!moved && was_sampled && size)
		heap_restore(&old);
	malloc_finish(moved, size, is_sampled, &start);
	return moved;
}

static void say_bypassed(void)
{
	char allocator[512];

	hooks_malloc_describe(allocator, sizeof(allocator));
	agent_say("%s", allocator);
}

void hooks_malloc_switch(bool is_on)
{
	if (!is_ready())
		return;
	if (is_bypassed) {
		if (is_on)
			say_bypassed();
		return;
	}
	is_counting = is_on;
	has_counted |= is_on;
	choose_ways();
	hooks_new_switch(is_on);
}

/* ---- the hooks */

KILN_API void *malloc(size_t size)
{
	return malloc_ways.malloc(size);
}

KILN_API void free(void *p)
{
	malloc_ways.free(p);
}

KILN_API void *calloc(size_t n, size_t size)
{
	return malloc_ways.calloc(n, size);
}

KILN_API void *realloc(void *p, size_t size)
{
	return malloc_ways.realloc(p, size);
}

/* Not that of the next: libc's would come back here through realloc. */
KILN_API void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (!__builtin_mul_overflow(n, size, &bytes))
		return malloc_ways.realloc(p, bytes);
	errno = ENOMEM;
	return NULL;
}

KILN_API size_t malloc_usable_size(void *p)
{
	if (is_early(p))
		return early_size(p);
	return p && (next.malloc_usable_size || search()) ? next.malloc_usable_size(p) : 0;
}

/* ---- the aligned ones */

static void *any_aligned(size_t alignment, size_t size)
{
	void *p = NULL;
	int failed;

	if (next.memalign)
		return next.memalign(alignment, size);
	if (next.aligned_alloc)
		return next.aligned_alloc(alignment, size);
	failed = next.posix_memalign ? next.posix_memalign(&p, alignment, size) : ENOMEM;
	if (failed)
		errno = failed;
	return failed ? NULL : p;
}

KILN_API void *memalign(size_t alignment, size_t size)
{
	struct walk_start start = walk_caller();
	bool is_sampled = is_counted(size);
	void *p = is_ready() ? any_aligned(alignment, size) : NULL;

	malloc_finish(p, size, is_sampled, &start);
	return p;
}

KILN_API void *aligned_alloc(size_t alignment, size_t size)
{
	struct walk_start start = walk_caller();
	bool is_sampled = is_counted(size);
	void *p = !is_ready()	       ? NULL
		  : next.aligned_alloc ? next.aligned_alloc(alignment, size)
				       : any_aligned(alignment, size);

	malloc_finish(p, size, is_sampled, &start);
	return p;
}

static int any_posix_memalign(void **p, size_t alignment, size_t size)
{
	int kept = errno;
	void *found;

	if (next.posix_memalign)
		return next.posix_memalign(p, alignment, size);
	if (alignment % sizeof(void *) || !alignment || alignment & (alignment - 1))
		return EINVAL;
	found = any_aligned(alignment, size);
	errno = kept;
	if (found)
		*p = found;
	return found ? 0 : ENOMEM;
}

KILN_API int posix_memalign(void **p, size_t alignment, size_t size)
{
	struct walk_start start = walk_caller();
	bool is_sampled = is_counted(size);
	int failed = is_ready() ? any_posix_memalign(p, alignment, size) : ENOMEM;

	if (!failed)
		malloc_finish(*p, size, is_sampled, &start);
	return failed;
}

KILN_API void *valloc(size_t size)
{
	struct walk_start start = walk_caller();
	bool is_sampled = is_counted(size);
	void *p = !is_ready() ? NULL : next.valloc ? next.valloc(size) : any_aligned(PAGE, size);

	malloc_finish(p, size, is_sampled, &start);
	return p;
}

static void *any_pvalloc(size_t size)
{
	if (next.pvalloc)
		return next.pvalloc(size);
	if (size > SIZE_MAX - PAGE) {
		errno = ENOMEM;
		return NULL;
	}
	return any_aligned(PAGE, (size + PAGE - 1) & ~(size_t)(PAGE - 1));
}

KILN_API void *pvalloc(size_t size)
{
	struct walk_start start = walk_caller();
	bool is_sampled = is_counted(size);
	void *p = is_ready() ? any_pvalloc(size) : NULL;

	malloc_finish(p, size, is_sampled, &start);
	return p;
}

/* ---- other ways to free */

KILN_API void cfree(void *p);
KILN_API void free_sized(void *p, size_t size);
KILN_API void free_aligned_sized(void *p, size_t alignment, size_t size);

void cfree(void *p)
{
	malloc_ways.free(p);
}

void free_sized(void *p, size_t size)
{
	if (!next.free_sized || is_early(p)) {
		malloc_ways.free(p);
		return;
	}
	if (live_may_have(p))
		malloc_forget(p);
	next.free_sized(p, size);
}

void free_aligned_sized(void *p, size_t alignment, size_t size)
{
	if (!next.free_aligned_sized || is_early(p)) {
		malloc_ways.free(p);
		return;
	}
	if (live_may_have(p))
		malloc_forget(p);
	next.free_aligned_sized(p, alignment, size);
}

/* ---- which allocator it is */

const char *malloc_path_of(uintptr_t function)
{
	const struct link_map *map = real_file_of(function);

	return map && *map->l_name ? map->l_name : "the program";
}

void hooks_malloc_find(void)
{
	is_ready();
}

void hooks_malloc_describe(char *to, size_t size)
{
	snprintf(to, size,
		 real_is_static() ? "the program is static: what it allocates is not seen"
		 : is_bypassed
			 ? "malloc is that of %s, which comes before the agent: what it allocates "
			   "is not seen"
			 : "allocator: %s",
		 malloc_path_of((uintptr_t)next.malloc));
}
