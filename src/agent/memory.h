/* memory.h - memory from the kernel. The agent never uses the program's allocator: that may be
 * broken, locked or profiled. Nothing here aborts: what cannot be had is NULL. */
#ifndef AGENT_MEMORY_H
#define AGENT_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Whole pages, zeroed, touched only when used. Any context. */
void *pages_map(size_t bytes);
void pages_unmap(void *p, size_t bytes);
/* Makes it larger, maybe elsewhere. NULL: it could not, and is as it was. */
void *pages_grow(void *p, size_t old, size_t bytes);
/* Gives those back that are behind the first `bytes`. */
void pages_trim(void *p, size_t old, size_t bytes);
/* What is in *to; if that is NULL pages are put there, once, whoever comes first. Any context. */
void *pages_once(_Atomic(void *) *to, size_t bytes);
/* What this thread gives back, it keeps for itself and others that do, up to a megabyte: for those
 * that do the same again and again. Each time that the kernel gets memory back it interrupts all
 * cores that the program runs on. */
void pages_keep(void);
/* Bytes that are mapped now, kept ones too. */
size_t pages_total(void);

/* Sets a few megabytes aside, for profiles that are written when there is no more to be had. */
void pages_reserve(void);
/* May what this thread maps come from there, if the kernel has no more? That is for what is soon
 * given back. Returns what held before. */
bool pages_use_reserve(bool is_on);

/* Memory that is given back as a whole. Zero-initialised it is empty. Not for several threads. */
struct region {
	struct region_block *last;
};
void *region_alloc(struct region *r, size_t bytes); /* zeroed; NULL */
char *region_text(struct region *r, const char *s, size_t n);
void region_release(struct region *r);

/* A lock for the agent's own data, never held while the program's code runs. Not for signal
 * handlers. Zero-initialised it is open. Whoever holds it is inside the agent (local.h). */
struct lock {
	atomic_int state;
};
void lock_take(struct lock *l);
bool lock_try(struct lock *l);
void lock_give(struct lock *l);

#endif
