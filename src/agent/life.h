/* life.h - what the files about the agent's life share: agent.c, settings.c, say.c, fork.c, exit.c.
 */
#ifndef AGENT_LIFE_H
#define AGENT_LIFE_H

#include <stdbool.h>

#include "agent/agent.h"

/* Fills `settings` with copies of what the environment has: programs overwrite it. */
void settings_read(void);
/* Remembers what standard error is. */
void say_init(void);

/* Is this the process that the agent works in? Children of fork and vfork are not. Any context. */
bool agent_is_ours(void);
/* In a child: from now on this process is the agent's, and all parts are set up once more. */
void agent_restart(void);
/* Does a part have something to do before the program ends? */
bool agent_has_work_at_exit(void);
/* Lets all parts do what they do at exit, once, by the agent's thread if it runs, and waits for it,
 * but not for ever. Not for signal handlers. */
void agent_finish(void);
/* The same begun from a signal handler, which does not wait; then the program dies by `signal`. */
void agent_finish_by_signal(int signal);

void fork_init(void);
void exit_init(void);
/* The parts' functions of the same names, in order; the last ones first before a fork. */
void parts_before_fork(void);
void parts_after_fork(void);
void parts_in_child(void);

#endif
