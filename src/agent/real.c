#include "agent/real.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

#include "agent/local.h"

#pragma weak dlvsym /* see weak.h */
#pragma weak dladdr1
#pragma weak _dl_find_object

struct real real;

/* linked_static.c has another. A weak function would do as well, but gold gives those that are
 * hidden and not there an address. */
__attribute__((weak)) void *(*real_find_static)(const char *name) = NULL;

static void *find(const char *name, const char *version)
{
	void *found;

	if (real_is_static())
		return real_find_static(name);
	found = *version && dlvsym ? dlvsym(RTLD_NEXT, name, version) : NULL;
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

/* dladdr looks for a name, too, among all of the file. */
struct link_map *real_file_of(uintptr_t address)
{
	struct dl_find_object found;
	struct link_map *map = NULL;
	Dl_info info;

	if (_dl_find_object)
		return address && _dl_find_object((void *)address, &found) == 0
			       ? found.dlfo_link_map
			       : NULL;
	if (!address || !dladdr1 ||
	    !dladdr1((const void *)address, &info, (void **)&map, RTLD_DL_LINKMAP))
		return NULL;
	return map;
}

/* Of functions that nobody else stands in front of. The agent's own names are not seen from here
 * if they are in the program. */
const struct link_map *real_other_copy(void)
{
	const struct link_map *first;

	if (real_is_static())
		return NULL;
	first = real_file_of((uintptr_t)dlsym(RTLD_DEFAULT, "sigignore"));
	if (first == real_file_of((uintptr_t)&real) ||
	    first == real_file_of((uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version")))
		return NULL;
	return first;
}
