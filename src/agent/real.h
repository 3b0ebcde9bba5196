/* real.h - the functions that hooks stand in front of. Each is one line in real.def. */
#ifndef AGENT_REAL_H
#define AGENT_REAL_H

#include <stdbool.h>
#include <stdint.h>

/* What is found behind the agent; NULL: not there. Resolved by real_init, or by the first hook that
 * is called, which may be before any constructor ran. */
struct real {
#define REAL(name, version) void *name##_;
#include "agent/real.def"
#undef REAL
};
extern struct real real __attribute__((visibility("hidden"))); /* found without a table */
void real_init(void);

/* Finds what is linked into a static program; NULL but in libkiln-static.a. */
extern void *(*real_find_static)(const char *name) __attribute__((visibility("hidden")));
static inline bool real_is_static(void)
{
	return real_find_static;
}
/* In libkiln.a, see there. */
const char *static_programs_are_linked_with_libkiln_static_a(void);

struct link_map;

/* What the code or data at an address was loaded from; NULL: not known. Not for signal handlers. */
struct link_map *real_file_of(uintptr_t address);
/* Where another copy of the agent is loaded that comes before this one, as in a program that is
 * linked with libkiln.a; NULL: there is none. */
const struct link_map *real_other_copy(void);

/* REAL_CALL(pthread_join)(thread, &result) */
#define REAL_CALL(name)                                               \
	(__extension__(__typeof__(&name))(real.name##_ ? real.name##_ \
						       : (real_init(), real.name##_)))

/* The same for paths where each instruction counts: NULL if it is not resolved yet. */
#define REAL_KNOWN(name) (__extension__(__typeof__(&name))(real.name##_))

#endif
