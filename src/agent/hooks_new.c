/* hooks_new.c - C++'s operators new and delete, by the names that they have in object files.
 *
 * Those of libstdc++ call malloc and free, which are counted, so calls just go through, or for the
 * plain ones straight to malloc, past what libstdc++ does between; allocators that bring their own
 * do not, and are counted here. All have some of the same three arguments, in the same registers,
 * so one kind of function does for all of them.
 */
#include "agent/hooks_malloc.h"

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "kiln.h"

#pragma weak dladdr1 /* see weak.h */

/* size, [alignment], [nothrow] */
typedef void *new_function(size_t size, size_t second, const void *third);
/* p, [size], [alignment], [nothrow] */
typedef void delete_function(void *p, size_t second, size_t third);

struct operator_new {
	new_function *go_to, *next, *counted;
	const char *name;
	bool is_aligned, is_own; /* is_own: the next allocator's, which does not call malloc */
	bool is_plain;		 /* the next is malloc, but for what happens when it fails */
};

struct operator_delete {
	delete_function *go_to, *next, *counted;
	const char *name;
	bool is_own;
	bool is_plain; /* the next is free */
};

static bool is_counting, has_counted;

/* ---- which are malloc and free */

/* libstdc++ and libc++ make all operators of the two that take a size, or a pointer, and nothing
 * else: `basic`. A program may have replaced only those. */
static bool is_standard(uintptr_t function, const char *basic)
{
	const char *path = malloc_path_of(function), *file = strrchr(path, '/');

	file = file ? file + 1 : path;
	return (strncmp(file, "libstdc++.so", 12) == 0 || strncmp(file, "libc++", 6) == 0) &&
	       malloc_is_first(basic) && malloc_is_first("malloc") && malloc_is_first("free");
}

static bool is_among(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}

static const char *const plain_news[] = { "_Znwm", "_Znam", NULL };
static const char *const plain_deletes[] = { "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm", NULL };

/* ---- operator new */

/* A library that was loaded for itself alone sees a libstdc++ that we do not: as that does it, but
 * for what happens when memory is short, which only the caller's own knows. */
static new_function *find_of_caller(const struct operator_new *op, const void *caller)
{
	Dl_info info;
	uintptr_t found = 0;
	void *handle;

	if (!dladdr(caller, &info) || !info.dli_fname)
		return NULL;
	handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (handle) {
		found = (uintptr_t)dlsym(handle, op->name);
		dlclose(handle);
	}
	return (new_function *)found;
}

static void *new_of_caller(const struct operator_new *op, size_t size, size_t second,
			   const void *third, const void *caller)
{
	size_t whole = (size + second - 1) & ~(second - 1);
	new_function *own;
	void *p = op->is_aligned ? aligned_alloc(second, whole) : malloc(size ? size : 1);

	if (p)
		return p;
	own = find_of_caller(op, caller);
	return own ? own(size, second, third) : NULL;
}

static void hide(uintptr_t function)
{
	ElfW(Sym) *symbol = NULL;
	Dl_info info;

	if (dladdr1 && dladdr1((const void *)function, &info, (void **)&symbol, RTLD_DL_SYMENT) &&
	    symbol)
		heap_hide((uintptr_t)info.dli_saddr, (uintptr_t)info.dli_saddr + symbol->st_size);
}

static void choose_new(struct operator_new *op)
{
	if (op->next)
		op->go_to = op->is_own && is_counting ? op->counted : op->next;
}

static __attribute__((noinline)) void *first_new(struct operator_new *op, size_t size,
						 size_t second, const void *third)
{
	const void *caller = __builtin_return_address(0);

	if (!op->next) {
		op->next = (new_function *)malloc_find_next(op->name);
		op->is_own = malloc_is_kin((uintptr_t)op->next);
		if (op->next && !op->is_own)
			hide((uintptr_t)op->next);
		op->is_plain =
			is_among(op->name, plain_news) && is_standard((uintptr_t)op->next, "_Znwm");
	}
	if (!op->next)
		return new_of_caller(op, size, second, third, caller);
	choose_new(op);
	return op->go_to(size, second, third);
}

static __attribute__((noinline)) void *slow_new(const struct operator_new *op, size_t size,
						size_t second, const void *third)
{
	struct walk_start start = walk_caller();
	bool is_sampled = heap_is_sampled(size);
	void *p = op->next(size, second, third); /* which may throw */

	malloc_finish(p, size, is_sampled, &start);
	return p;
}

#define NEW(symbol, aligned)                                                              \
	static new_function first_##symbol, counted_##symbol;                             \
	static struct operator_new op_##symbol = { .go_to = first_##symbol,               \
						   .counted = counted_##symbol,           \
						   .name = #symbol,                       \
						   .is_aligned = aligned };               \
	static void *first_##symbol(size_t size, size_t second, const void *third)        \
	{                                                                                 \
		return first_new(&op_##symbol, size, second, third);                      \
	}                                                                                 \
	static void *counted_##symbol(size_t size, size_t second, const void *third)      \
	{                                                                                 \
		return heap_passes(size) ? op_##symbol.next(size, second, third)          \
					 : slow_new(&op_##symbol, size, second, third);   \
	}                                                                                 \
	KILN_API new_function symbol;                                                     \
	void *symbol(size_t size, size_t second, const void *third)                       \
	{                                                                                 \
		void *p = op_##symbol.is_plain && size ? malloc_ways.malloc(size) : NULL; \
                                                                                          \
		return p ? p : op_##symbol.go_to(size, second, third);                    \
	}

NEW(_Znwm, false)
NEW(_Znam, false)
NEW(_ZnwmRKSt9nothrow_t, false)
NEW(_ZnamRKSt9nothrow_t, false)
NEW(_ZnwmSt11align_val_t, true)
NEW(_ZnamSt11align_val_t, true)
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, true)
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, true)

static struct operator_new *const news[] = {
	&op__Znwm,
	&op__Znam,
	&op__ZnwmRKSt9nothrow_t,
	&op__ZnamRKSt9nothrow_t,
	&op__ZnwmSt11align_val_t,
	&op__ZnamSt11align_val_t,
	&op__ZnwmSt11align_val_tRKSt9nothrow_t,
	&op__ZnamSt11align_val_tRKSt9nothrow_t,
};

/* ---- operator delete */

static void choose_delete(struct operator_delete *op)
{
	if (op->next)
		op->go_to = op->is_own && has_counted ? op->counted : op->next;
}

static void first_delete(struct operator_delete *op, void *p, size_t second, size_t third)
{
	if (!op->next) {
		op->next = (delete_function *)malloc_find_next(op->name);
		op->is_own = malloc_is_kin((uintptr_t)op->next);
		op->is_plain = is_among(op->name, plain_deletes) &&
			       is_standard((uintptr_t)op->next, "_ZdlPv");
	}
	choose_delete(op);
	if (op->next)
		op->go_to(p, second, third);
	else
		free(p);
}

static __attribute__((noinline)) void slow_delete(const struct operator_delete *op, void *p,
						  size_t second, size_t third)
{
	malloc_forget(p);
	op->next(p, second, third);
}

#define DELETE(symbol)                                                             \
	static delete_function first_##symbol, counted_##symbol;                   \
	static struct operator_delete op_##symbol = { .go_to = first_##symbol,     \
						      .counted = counted_##symbol, \
						      .name = #symbol };           \
	static void first_##symbol(void *p, size_t second, size_t third)           \
	{                                                                          \
		first_delete(&op_##symbol, p, second, third);                      \
	}                                                                          \
	static void counted_##symbol(void *p, size_t second, size_t third)         \
	{                                                                          \
		if (__builtin_expect(live_may_have(p), 0))                         \
			slow_delete(&op_##symbol, p, second, third);               \
		else                                                               \
			op_##symbol.next(p, second, third);                        \
	}                                                                          \
	KILN_API delete_function symbol;                                           \
	void symbol(void *p, size_t second, size_t third)                          \
	{                                                                          \
		if (op_##symbol.is_plain)                                          \
			malloc_ways.free(p);                                       \
		else                                                               \
			op_##symbol.go_to(p, second, third);                       \
	}

DELETE(_ZdlPv)
DELETE(_ZdaPv)
DELETE(_ZdlPvm)
DELETE(_ZdaPvm)
DELETE(_ZdlPvRKSt9nothrow_t)
DELETE(_ZdaPvRKSt9nothrow_t)
DELETE(_ZdlPvSt11align_val_t)
DELETE(_ZdaPvSt11align_val_t)
DELETE(_ZdlPvmSt11align_val_t)
DELETE(_ZdaPvmSt11align_val_t)
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t)
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t)

static struct operator_delete *const deletes[] = {
	&op__ZdlPv,
	&op__ZdaPv,
	&op__ZdlPvm,
	&op__ZdaPvm,
	&op__ZdlPvRKSt9nothrow_t,
	&op__ZdaPvRKSt9nothrow_t,
	&op__ZdlPvSt11align_val_t,
	&op__ZdaPvSt11align_val_t,
	&op__ZdlPvmSt11align_val_t,
	&op__ZdaPvmSt11align_val_t,
	&op__ZdlPvSt11align_val_tRKSt9nothrow_t,
	&op__ZdaPvSt11align_val_tRKSt9nothrow_t,
};

void hooks_new_switch(bool is_on)
{
	is_counting = is_on;
	has_counted |= is_on;
	for (size_t i = 0; i < sizeof(news) / sizeof(*news); i++)
		choose_new(news[i]);
	for (size_t i = 0; i < sizeof(deletes) / sizeof(*deletes); i++)
		choose_delete(deletes[i]);
}
