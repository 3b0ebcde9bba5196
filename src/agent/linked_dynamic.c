/* linked_dynamic.c - in libkiln.a alone: has the linker refuse a static program, in which the hooks
 * would stand in front of nothing. Only a shared libc has versions of its functions; the linker
 * names the function that wants one. */
#include "agent/real.h"

extern const char *shared_libc(void);
__asm__(".symver shared_libc, gnu_get_libc_version@GLIBC_2.2.5");

const char *static_programs_are_linked_with_libkiln_static_a(void)
{
	return shared_libc();
}
