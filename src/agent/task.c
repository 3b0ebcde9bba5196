#include "agent/task.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/kernel.h"

enum { STATUS_BYTES = 4096 };

static bool read_file(uint32_t tid, const char *file, char *text, size_t size)
{
	char path[64];
	long fd, n;

	text[0] = '\0';
	snprintf(path, sizeof(path), "/proc/self/task/%u/%s", tid, file);
	fd = kernel_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	n = kernel_call(SYS_read, fd, (long)text, (long)size - 1, 0);
	kernel_call(SYS_close, fd, 0, 0, 0);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool task_name(uint32_t tid, char name[NAME_MAX_THREAD])
{
	char text[NAME_MAX_THREAD + 1]; /* with the end of the line */
	bool is_there = read_file(tid, "comm", text, sizeof(text));

	text[strcspn(text, "\n")] = '\0';
	snprintf(name, NAME_MAX_THREAD, "%.*s", NAME_MAX_THREAD - 1, text);
	return is_there;
}

/* What follows `field` in /proc's status; "" if it is not there. */
static const char *field_of(const char *status, const char *field)
{
	const char *at = strstr(status, field);

	return at ? at + strlen(field) : "";
}

char task_state(uint32_t tid, int signal, bool *blocks)
{
	char status[STATUS_BYTES];
	const char *state;

	if (!read_file(tid, "status", status, sizeof(status)))
		return '?';
	if (blocks)
		*blocks = strtoull(field_of(status, "\nSigBlk:\t"), NULL, 16) >> (signal - 1) & 1;
	state = field_of(status, "\nState:\t");
	return *state ? *state : '?';
}

void task_waits_in(uint32_t tid, char *text, size_t size)
{
	char call[64];

	/* A thread that runs has "0" as the one, "running" as the other; -1 is no system call. */
	if (read_file(tid, "wchan", text, size) && strcmp(text, "0") != 0)
		return;
	text[0] = '\0';
	if (!read_file(tid, "syscall", call, sizeof(call)) || call[0] < '0' || call[0] > '9')
		return;
	call[strcspn(call, " \n")] = '\0';
	snprintf(text, size, "system call %s", call);
}

int64_t task_cpu(uint32_t tid)
{
	struct timespec t = { 0, 0 };

	/* The clock's number as the kernel makes it of a thread's; libc has no name for that. */
	kernel_call(SYS_clock_gettime, (long)(int)(~tid << 3 | 6), (long)&t, 0, 0);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
