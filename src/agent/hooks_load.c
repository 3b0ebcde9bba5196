/* hooks_load.c - files that are loaded and unloaded while the program runs. */
#include <dlfcn.h>
#include <errno.h>

#include "agent/agent.h"
#include "agent/local.h"
#include "agent/module.h"
#include "agent/real.h"
#include "kiln.h"

/* dlopen looks at its caller to know where to search: it must be jumped to, not called. */
#ifdef __clang__
#define JUMPS
#define JUMP __attribute__((musttail))
#else
#define JUMPS __attribute__((optimize("O2")))
#define JUMP
#endif

JUMPS KILN_API void *dlopen(const char *file, int mode)
{
	if (!local.inside && agent_is_on(~0u))
		modules_expect();
	JUMP return REAL_CALL(dlopen)(file, mode);
}

JUMPS KILN_API void *dlmopen(Lmid_t space, const char *file, int mode)
{
	if (!local.inside && agent_is_on(~0u))
		modules_expect();
	JUMP return REAL_CALL(dlmopen)(space, file, mode);
}

/* Something else may soon be where the file was. */
KILN_API int dlclose(void *handle)
{
	int failed = REAL_CALL(dlclose)(handle), kept = errno;

	if (!local.inside && agent_is_on(~0u)) {
		agent_enter();
		modules_update(true);
		agent_leave();
	}
	errno = kept;
	return failed;
}
