/* cmd.h - what the subcommands share. Each has its own file, `int cmd_NAME(argc, argv)` here, and a
 * line in main.c's table; argv[0] is its name. */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include <stdatomic.h>

#include "base/buf.h"

enum { EXIT_ERROR = 2 };

int cmd_diff(int argc, char **argv);
int cmd_debuginfo(int argc, char **argv);

/* Prints whole lines to stderr, in red on a terminal as pprof's are, and empties the buffer. */
void print_warnings(struct buf *warnings);
/* Prints all of `out`, frees it, and returns `status`. */
int print_and_exit(struct buf *out, int fd, int status);

/* Becomes true at the first SIGINT or SIGTERM; a second one ends the program. */
atomic_bool *stop_on_signals(void);

int cmd_collect(int argc, char **argv);
int cmd_fetch(int argc, char **argv);
int cmd_kubectl(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_store(int argc, char **argv);

#endif
