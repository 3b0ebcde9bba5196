/* say.c - what the agent has to tell the user. It is a guest on standard error too. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/life.h"
#include "agent/local.h"

enum { SAID_MAX = 64, LINE_MAX_BYTES = 600 };

static struct {
	bool is_open;
	dev_t device;
	ino_t inode;
	atomic_uint hashes[SAID_MAX]; /* of what was said; 0: free */
} standard_error;

void say_init(void)
{
	struct stat s;

	standard_error.is_open = fstat(STDERR_FILENO, &s) == 0;
	if (standard_error.is_open) {
		standard_error.device = s.st_dev;
		standard_error.inode = s.st_ino;
	}
}

/* Programs close it and open their data files, or get a socket, under the same number. */
static bool is_still_open(void)
{
	struct stat s;

	return standard_error.is_open && fstat(STDERR_FILENO, &s) == 0 &&
	       s.st_dev == standard_error.device && s.st_ino == standard_error.inode;
}

/* Was the same said before, or too much altogether? */
static bool is_said(const char *line)
{
	unsigned hash = 5381;

	for (; *line; line++)
		hash = hash * 33 + (unsigned char)*line;
	hash += !hash;
	for (unsigned i = 0; i < SAID_MAX; i++) {
		unsigned found = 0;

		if (atomic_compare_exchange_strong(&standard_error.hashes[i], &found, hash))
			return false;
		if (found == hash)
			return true;
	}
	return true;
}

/* Neither waits for a reader, nor gets a signal because there is none. */
static void write_line(const char *line, size_t n)
{
	struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };
	struct timespec at_once = { 0 };
	sigset_t all, kept, pipe_only, pending;

	sigfillset(&all);
	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	if (poll(&ready, 1, 0) != 1 || ready.revents != POLLOUT)
		return;
	sigpending(&pending);
	pthread_sigmask(SIG_SETMASK, &all, &kept);
	if (write(STDERR_FILENO, line, n) < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
		sigtimedwait(&pipe_only, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &kept, NULL);
}

void agent_say(const char *format, ...)
{
	char line[LINE_MAX_BYTES] = "kiln: ";
	int kept = errno, n;
	va_list args;

	va_start(args, format);
	n = vsnprintf(line + 6, sizeof(line) - 7, format, args);
	va_end(args);
	n = n < 0 ? 6 : n + 6 < (int)sizeof(line) - 1 ? n + 6 : (int)sizeof(line) - 2;
	agent_enter();
	if (!is_said(line) && is_still_open()) {
		line[n] = '\n';
		write_line(line, (size_t)n + 1);
	}
	agent_leave();
	errno = kept;
}
