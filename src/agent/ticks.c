#include "agent/ticks.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool ticks_are_counted;

/* When both were read together, long before any time that is asked for ends: a tick's length is
 * known from what went by since then. */
static struct {
	int64_t ns;
	uint64_t ticks;
} origin;

/* It does where they are the same on all processors, and never stand still. */
static bool does_kernel_count(void)
{
	static const char wanted[] = "tsc\n";
	char name[sizeof(wanted)] = "";
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		      O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof(name));

	if (fd >= 0)
		close(fd);
	return n == sizeof(wanted) - 1 && memcmp(name, wanted, sizeof(wanted) - 1) == 0;
}

void ticks_prepare(void)
{
	if (origin.ns)
		return;
	ticks_are_counted = does_kernel_count();
	origin.ticks = ticks_now();
	origin.ns = now_ns();
}

int64_t ticks_between(uint64_t start, uint64_t end, int64_t now)
{
	int64_t ticks = (int64_t)(end - start), all = (int64_t)(end - origin.ticks);

	if (ticks <= 0 || all <= 0 || start < origin.ticks)
		return 0;
	return (int64_t)((double)ticks / (double)all * (double)(now - origin.ns));
}
