/* linked_static.c - in libkiln-static.a alone: the functions behind the agent, by reference. In a
 * static program nothing can stand in front of libc's functions, and dlsym finds none. */
#include <stddef.h>
#include <string.h>

#include "agent/real.h"

/* What they are does not matter here, and some are in no header. */
#define REAL(name, version) extern const char static_##name[] __asm__(#name);
#include "agent/real.def"
#include "agent/static.def"
#undef REAL

static const struct {
	const char *name;
	const void *at;
} known[] = {
#define REAL(name, version) { #name, static_##name },
#include "agent/real.def"
#include "agent/static.def"
#undef REAL
};

static void *find(const char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(known[i].name, name) == 0)
			return (void *)(uintptr_t)known[i].at;
	return NULL;
}

void *(*real_find_static)(const char *name) = find;
