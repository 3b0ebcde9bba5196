/* life.h - what the files about the agent's life share: agent.c, settings.c, say.c, fork.c, exit.c.
 */
#ifndef AGENT_LIFE_H
#define AGENT_LIFE_H

#include <stdbool.h>

#include "agent/agent.h"

/* Fills `settings` with copies of what the environment has: programs overwrite it. */
void settings_read(void);
/* Files that they name are this process's now: what it starts gets other names. */
void settings_claim(void);
/* Remembers what standard error is. */
void say_init(void);

/* Is this the process that the agent works in? Children of fork and vfork are not. Any context. */
bool agent_is_ours(void);
/* In a child: from now on this process is the agent's, and all parts are set up once more. */
void agent_restart(void);
/* Lets all parts do what they do at exit, once, by the agent's thread if it runs, and waits for it,
 * but not for ever. Not for signal handlers. */
void agent_finish(void);
/* The same begun from a signal handler, which does not wait; then the program dies by `signal`. */
void agent_finish_by_signal(int signal);

/* As the signal would have done without us: the exit status tells. Any context. */
void die_by(int signal);
/* Called by the main thread when it ends before the others (pthread_exit). */
void agent_main_ends(void);

/* What this process is to the one that loaded the agent. */
enum child { CHILD_NONE, CHILD_LEFT_ALONE, CHILD_FOLLOWED };
extern enum child agent_child;

void fork_init(void);
void exit_init(void);
/* Something is to be written at exit: also if that is by SIGTERM, SIGINT or SIGHUP. */
void exit_watch_signals(void);
/* The parts' functions of the same names, in order; the last ones first before a fork. */
void parts_before_fork(void);
void parts_after_fork(void);
void parts_in_child(void);

#endif
