#include "agent/local.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"

__thread struct local local;

uint64_t local_random(void)
{
	uint64_t x = local.random;

	if (!x)
		x = ((uint64_t)now_ns() << 20 ^ (uintptr_t)&local ^ local_tid()) | 1;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	local.random = x;
	return x * 0x2545f4914f6cdd1du;
}

uint32_t local_tid(void)
{
	if (!local.tid)
		local.tid = (uint32_t)syscall(SYS_gettid);
	return local.tid;
}

/* As the kernel has the number of such a clock: ~tid with the kind of clock below. */
uint32_t tid_of_thread(pthread_t thread)
{
	enum { KIND_BITS = 3, OF_THREAD = 6 };
	clockid_t clock = 0;

	if (pthread_getcpuclockid(thread, &clock) != 0 ||
	    (clock & ((1 << KIND_BITS) - 1)) != OF_THREAD)
		return 0;
	return ~(uint32_t)(clock >> KIND_BITS);
}

uint32_t local_tid_at_start(void)
{
	if (!local.tid)
		local.tid = tid_of_thread(pthread_self());
	return local_tid();
}

static int64_t read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}
