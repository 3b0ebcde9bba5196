/* hooks_proc.c - how many threads the program has, as it counts them itself: by the links of
 * /proc/self/task. What makes a sandbox for others must have one only, and gives up if it has more,
 * as Chromium's zygote does; the agent's are not to be among them. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/local.h"
#include "agent/real.h"
#include "agent/thread.h"
#include "kiln.h"

static bool has_name_of_tasks(const char *path)
{
	static const char name[] = "self/task";
	size_t n = strlen(path), own = sizeof(name) - 1;

	while (n > 0 && path[n - 1] == '/')
		n--;
	return n >= own && memcmp(path + n - own, name, own) == 0;
}

static void hide_agents(const char *path, struct stat *s)
{
	struct stat tasks;
	int kept = errno;

	if (local.inside || !has_name_of_tasks(path))
		return;
	agent_enter();
	if (REAL_CALL(stat)("/proc/self/task", &tasks) == 0 && tasks.st_dev == s->st_dev &&
	    tasks.st_ino == s->st_ino)
		s->st_nlink -= threads_of_agent();
	agent_leave();
	errno = kept;
}

KILN_API int stat(const char *path, struct stat *s)
{
	int failed = REAL_CALL(stat)(path, s);

	if (!failed)
		hide_agents(path, s);
	return failed;
}

KILN_API int fstatat(int folder, const char *path, struct stat *s, int flags)
{
	int failed = REAL_CALL(fstatat)(folder, path, s, flags);

	if (!failed)
		hide_agents(path, s);
	return failed;
}

/* They are the same here, in other words. */

KILN_API int stat64(const char *path, struct stat64 *s)
{
	return stat(path, (struct stat *)s);
}

KILN_API int fstatat64(int folder, const char *path, struct stat64 *s, int flags)
{
	return fstatat(folder, path, (struct stat *)s, flags);
}
