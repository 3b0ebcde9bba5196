/* own.h - what a target has of its own instead of its job's settings. Private to collect/. */
#ifndef COLLECT_OWN_H
#define COLLECT_OWN_H

#include "collect/targets.h"

/* Of a copy, with all that it points to. */
size_t own_bytes(const struct target_own *own);
/* The copy, into a block of that size, aligned as a pointer. */
struct target_own *own_put(void *block, const struct target_own *own);
struct target_own *own_copy(struct arena *a, const struct target_own *own);

/* Either may be NULL. */
bool own_same(const struct target_own *a, const struct target_own *b);
bool profile_types_same(const struct profile_type *a, size_t na, const struct profile_type *b,
			size_t nb);

#endif
