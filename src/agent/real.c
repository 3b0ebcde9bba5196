#include "agent/real.h"

#include <dlfcn.h>
#include <stddef.h>

#include "agent/local.h"

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
