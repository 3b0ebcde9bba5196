#include "agent/real.h"

#include <dlfcn.h>
#include <stddef.h>

#include "agent/local.h"

#pragma weak dlvsym /* see weak.h */

struct real real;

static void *find(const char *name, const char *version)
{
	void *found = *version && dlvsym ? dlvsym(RTLD_NEXT, name, version) : NULL;

	return found ? found : dlsym(RTLD_NEXT, name);
}

/* Twice at the same time finds the same. */
void real_init(void)
{
	agent_enter();
#define REAL(name, version) real.name##_ = find(#name, version);
#include "agent/real.def"
#undef REAL
	agent_leave();
}

static const void *file_of(const void *function)
{
	Dl_info info;

	return function && dladdr(function, &info) ? info.dli_fbase : NULL;
}

/* Of functions that nobody else stands in front of. The agent's own names are not seen from here
 * if they are in the program. */
const void *real_other_copy(void)
{
	const void *first = file_of(dlsym(RTLD_DEFAULT, "sigignore"));

	if (first == file_of(&real) ||
	    first == file_of(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")))
		return NULL;
	return first;
}
