/* api.c - kiln.h's functions about whole profiles and rates. */
#include <errno.h>
#include <limits.h>

#include "agent/agent.h"
#include "agent/local.h"
#include "agent/profiles.h"
#include "kiln.h"

enum { CPU_RATE_MAX = 1000000 };

/* The descriptor of kiln_start_cpu_profile and 1; 0: it was not called. */
static atomic_int cpu_fd;

static int write_record(const struct agent_profile *p, struct record *r, int fd)
{
	struct out o = { 0 };
	int failed;

	record_write(&o, p, r);
	failed = out_to_fd(&o, fd) ? 0 : -errno;
	out_release(&o);
	return failed;
}

KILN_API int kiln_start_cpu_profile(int fd)
{
	int kept = errno, failed;

	if (fd < 0)
		return -EBADF;
	agent_enter();
	failed = agent_is_inert ? -EPERM : cpu_start((int)settings.cpu_rate) ? 0 : -errno;
	if (!failed)
		atomic_store(&cpu_fd, fd + 1); /* a child may still have its parent's */
	agent_leave();
	errno = kept;
	return failed;
}

KILN_API int kiln_stop_cpu_profile(void)
{
	struct record r = { 0 };
	int kept = errno, failed, fd = atomic_exchange(&cpu_fd, 0) - 1;

	if (fd < 0)
		return -EINVAL;
	agent_enter();
	failed = cpu_stop(&r) ? write_record(&profile_cpu, &r, fd) : -errno;
	record_release(&r);
	agent_leave();
	errno = kept;
	return failed;
}

KILN_API int kiln_write_profile(const char *name, int fd)
{
	const struct agent_profile *p;
	struct record r = { 0 };
	int kept = errno, failed;

	if (agent_is_inert)
		return -EPERM;
	agent_enter();
	p = profile_find(name);
	failed = !p ? -ENOENT : !profile_collect(p, &r) ? -errno : write_record(p, &r, fd);
	record_release(&r);
	agent_leave();
	errno = kept;
	return failed;
}

KILN_API int kiln_set_cpu_rate(int hz)
{
	if (hz < 1 || hz > CPU_RATE_MAX)
		return -EINVAL;
	if (cpu_is_on())
		return -EBUSY;
	settings.cpu_rate = hz;
	return 0;
}

KILN_API void kiln_set_heap_rate(size_t mean_bytes)
{
	int kept = errno;

	agent_enter();
	settings.heap_rate = (int64_t)mean_bytes; /* for kiln_serve */
	if (!agent_is_inert)
		heap_set_rate(mean_bytes);
	agent_leave();
	errno = kept;
}

KILN_API void kiln_set_mutex_fraction(int one_of)
{
	int kept = errno;

	agent_enter();
	if (!agent_is_inert)
		mutex_set_fraction(one_of);
	agent_leave();
	errno = kept;
}

KILN_API void kiln_set_block_rate(int64_t nanoseconds)
{
	int kept = errno;

	agent_enter();
	if (!agent_is_inert)
		block_set_rate(nanoseconds);
	agent_leave();
	errno = kept;
}
