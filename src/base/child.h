/* child.h - other programs: run to their end with bytes in and bytes out, or started for a person.
 *
 * Programs are looked for in $PATH, and failures are told in the words of Go's os/exec: `exec:
 * "dot": executable file not found in $PATH`, `exit status 1`. A child that is run is in a process
 * group of its own and is killed with all of it: when its time is up, when it prints more than is
 * allowed, and when this process dies. Its stderr is ours.
 */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/stop.h"

struct child_params {
	const char *const *argv; /* NULL at the end; argv[0] is a name for $PATH, or has a slash */
	struct str input;	 /* what it reads; it need not read all of it */
	int64_t max_seconds;	 /* 0: as long as it likes */
	size_t max_output;	 /* in bytes */
	const atomic_bool *stop; /* or NULL; looked at every 50 ms */
	const char *const *environment; /* NULL at the end; NULL: ours */
	const char *path;		/* what is run, whatever argv[0] says; NULL: argv[0] */
};

/* Appends what the child prints to `out`, and waits for it. Fails if it cannot be started
 * (ERR_NOTFOUND if there is no such program), runs for too long or prints too much (ERR_LIMIT), or
 * ends with another status than 0 or was stopped (ERR_IO). */
bool child_run(const struct child_params *params, struct buf *out, struct err *e);

/* Starts a program that a person will look at; it has no stdin and no stdout, and outlives us. */
bool child_start(const char *const *argv, pid_t *pid, struct err *e);
/* Waits for it. Fails as child_run does if its status is not 0. */
bool child_wait(pid_t pid, struct err *e);

#endif
