/* shell.h - reports asked for one after the other, by a person or a script. */
#ifndef SHELL_SHELL_H
#define SHELL_SHELL_H

#include <signal.h>

#include "analyze/analyze.h"

struct shell_params {
	const struct analyze_options *options; /* to start with */
	/* Prints whole lines to stderr as warnings, and empties the buffer. */
	void (*warn)(struct buf *lines);
	/* NULL when input is a script. At a terminal, what a handler of SIGINT that lets read(2)
	 * fail sets to 1: it ends a report, and at the prompt the shell. */
	volatile sig_atomic_t *interrupted;
};

/* Greets, then does what lines of standard input say, up to the end or "quit". Reports go to
 * stdout, all else to stderr. Fails only when interrupted; wrong lines are told so. */
bool shell_run(struct session *s, const struct shell_params *params, struct err *e);

#endif
