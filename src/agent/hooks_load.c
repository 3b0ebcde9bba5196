/* hooks_load.c - files that are unloaded. What is loaded is noticed later, by the agent's thread:
 * dlopen looks at its caller to know where to search, and must not be stood in front of. */
#include <dlfcn.h>
#include <errno.h>

#include "agent/agent.h"
#include "agent/local.h"
#include "agent/module.h"
#include "agent/real.h"
#include "kiln.h"

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
