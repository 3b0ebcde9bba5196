/* limit.c - the heap profile is written when memory gets short, before the kernel ends the process:
 * when so many per cent (KILN_HEAP_AT_LIMIT) are used of what a control group or a resource limit
 * allows. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/files.h"
#include "agent/push.h"

enum {
	MILLISECOND = 1000000,
	PAUSE = 500,
	PAUSE_NEAR = 50,  /* milliseconds; it may go fast then */
	NEAR = 25,	  /* per cent below */
	REARM_BELOW = 10, /* so far below it is written again the next time */
	PAGE = 4096,
};

/* A control group: version 2, or the memory controller of version 1. */
static struct {
	char path[PATH_MAX];
	size_t root; /* what of the path is not to be left when going up */
	bool is_v1;
} group;
static bool is_armed;

/* ---- small files */

/* The length; 0: it is not there, or empty. */
static size_t read_text(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, to, size - 1);

	if (fd >= 0)
		close(fd);
	to[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

/* 0: it is no number ("max"). */
static uint64_t parse_number(const char *s)
{
	uint64_t n = 0;

	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(n, 10u, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
			return UINT64_MAX;
	return n;
}

static uint64_t read_group_number(const char *name)
{
	char path[PATH_MAX + 64], text[64];

	snprintf(path, sizeof(path), "%s/%s", group.path, name);
	return read_text(path, text, sizeof(text)) ? parse_number(text) : 0;
}

/* Pages of files that the kernel takes back before it ends anybody. */
static uint64_t read_reclaimable(void)
{
	const char *key = group.is_v1 ? "\ntotal_inactive_file " : "\ninactive_file ", *at;
	char path[PATH_MAX + 64], text[8192];

	snprintf(path, sizeof(path), "%s/memory.stat", group.path);
	if (!read_text(path, text, sizeof(text)))
		return 0;
	at = strstr(text, key);
	return at ? parse_number(at + strlen(key)) : 0;
}

/* ---- control groups */

/* "0::/path" or "4:memory:/path" in /proc/self/cgroup. */
static bool find_line(const char *text, const char *mark, char *path, size_t size)
{
	const char *at = strstr(text, mark), *end;
	size_t n;

	if (!at)
		return false;
	at += strlen(mark);
	end = strchr(at, '\n');
	n = end ? (size_t)(end - at) : strlen(at);
	n -= n > 0 && at[n - 1] == '/'; /* the root */
	if (n >= size)
		return false;
	memcpy(path, at, n);
	path[n] = '\0';
	return true;
}

static bool has_file(const char *name)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", group.path, name);
	return access(path, R_OK) == 0;
}

/* In a container its own group may be shown as the root, whatever its name is. */
static bool choose_group(const char *root, const char *own, bool is_v1)
{
	const char *usage = is_v1 ? "memory.usage_in_bytes" : "memory.current";

	group.is_v1 = is_v1;
	group.root = strlen(root);
	snprintf(group.path, sizeof(group.path), "%s%s", root, own);
	if (has_file(usage))
		return true;
	snprintf(group.path, sizeof(group.path), "%s", root);
	return has_file(usage);
}

static void find_group(void)
{
	char text[4096], own[PATH_MAX - 64];

	if (!read_text("/proc/self/cgroup", text, sizeof(text)))
		return;
	if (find_line(text, ":memory:", own, sizeof(own)) &&
	    choose_group("/sys/fs/cgroup/memory", own, true))
		return;
	if (find_line(text, "0::", own, sizeof(own)) && choose_group("/sys/fs/cgroup", own, false))
		return;
	group.path[0] = '\0';
}

static unsigned per_cent(uint64_t used, uint64_t limit)
{
	return limit ? (unsigned)((double)used / (double)limit * 100) : 0;
}

/* Of the group itself; groups around it count too. */
static unsigned group_use(void)
{
	uint64_t limit = read_group_number(group.is_v1 ? "memory.limit_in_bytes" : "memory.max");
	uint64_t used = read_group_number(group.is_v1 ? "memory.usage_in_bytes" : "memory.current");
	uint64_t reclaimable;

	if (!limit || limit >= 1ull << 60 || !used)
		return 0;
	reclaimable = read_reclaimable();
	return per_cent(used > reclaimable ? used - reclaimable : 0, limit);
}

static unsigned groups_use(void)
{
	char kept[sizeof(group.path)];
	unsigned most = 0;

	if (!group.path[0])
		return 0;
	memcpy(kept, group.path, sizeof(kept));
	for (;;) {
		unsigned use = group_use();
		char *slash = strrchr(group.path, '/');

		most = use > most ? use : most;
		if (!slash || (size_t)(slash - group.path) < group.root)
			break;
		*slash = '\0';
	}
	memcpy(group.path, kept, sizeof(kept));
	return most;
}

/* ---- resource limits */

static unsigned resource_use(int resource, uint64_t used)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return 0;
	return per_cent(used, limit.rlim_cur);
}

static unsigned resources_use(void)
{
	unsigned long long size = 0, data = 0;
	unsigned a, d;
	char text[128];

	/* size resident shared text lib data dt */
	if (!read_text("/proc/self/statm", text, sizeof(text)) ||
	    sscanf(text, "%llu %*u %*u %*u %*u %llu", &size, &data) != 2)
		return 0;
	a = resource_use(RLIMIT_AS, size * PAGE);
	d = resource_use(RLIMIT_DATA, data * PAGE);
	return a > d ? a : d;
}

/* ---- the part */

static void init(void)
{
	if (settings.memory_limit_heap <= 0)
		return;
	find_group();
	is_armed = true;
	agent_start_thread();
}

static void save_heap(unsigned use)
{
	bool is_sent = push_heap(use), is_written = files_write("heap", ".limit");

	if (is_sent || is_written)
		agent_say("%u %% of the memory limit are used: the heap profile is %s", use,
			  !is_sent	? "written"
			  : !is_written ? "sent"
					: "written and sent");
}

static int64_t work(int64_t now)
{
	unsigned at = (unsigned)settings.memory_limit_heap, in_group, use;

	if (settings.memory_limit_heap <= 0)
		return INT64_MAX;
	in_group = groups_use();
	use = resources_use();
	use = in_group > use ? in_group : use;
	if (is_armed && use >= at) {
		is_armed = false;
		save_heap(use);
	} else if (use + REARM_BELOW < at) {
		is_armed = true;
	}
	return now + (int64_t)(use + NEAR < at ? PAUSE : PAUSE_NEAR) * MILLISECOND;
}

static void in_child(void)
{
	is_armed = false;
}

const struct agent_part part_limit = {
	.name = "limit", .init = init, .work = work, .in_child = in_child
};
