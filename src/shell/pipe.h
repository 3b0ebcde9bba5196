/* pipe.h - a shell command that reads a report: "top | head". */
#ifndef SHELL_PIPE_H
#define SHELL_PIPE_H

#include <signal.h>
#include <sys/types.h>
#include <termios.h>

#include "base/err.h"

struct shell_pipe {
	int fd; /* write here; EPIPE means that the command wants no more */
	pid_t pid;
	struct sigaction sigpipe; /* as it was */
	struct termios terminal;  /* as it was */
	bool has_terminal;
};

/* Starts the command with `sh -c`. */
bool shell_pipe_open(struct shell_pipe *p, const char *command, struct err *e);
/* Waits for it, and gives the terminal back as it was, whatever the command did to it. */
void shell_pipe_close(struct shell_pipe *p);

#endif
