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
/* The name of the sanitizer that the program is built with, or NULL. */
const char *find_sanitizer(void);
/* Remembers what standard error is. */
void say_init(void);

/* Is this the process that the agent works in? Children of fork and vfork are not. Any context. */
bool agent_is_ours(void);
/* In a child: from now on this process is the agent's, and all parts are set up once more. */
void agent_restart(void);
/* Does the agent's thread run; is it the caller? */
bool agent_has_thread(void);
bool agent_is_thread(void);
/* Called by the main thread when it ends before the others (pthread_exit). */
void agent_main_ends(void);

/* What this process is to the one that loaded the agent. */
enum child { CHILD_NONE, CHILD_LEFT_ALONE, CHILD_FOLLOWED };
extern enum child agent_child;

void fork_init(void);
void exit_init(void);
/* Something is to be written at exit: also if that is by SIGTERM, SIGINT or SIGHUP. */
void exit_watch(void);
/* For the agent's thread: does what there is to do before the program ends, when that is asked for,
 * and ends the program if it is to die by a signal. */
bool finish_is_asked(void);
void finish_if_asked(void);
void finish_forget(void); /* in a child */

/* Until the word has another value, somebody wakes us, or it is that late (CLOCK_MONOTONIC). */
void futex_sleep(atomic_int *word, int while_it_is, int64_t until);
void futex_wake(atomic_int *word);
/* The parts' functions of the same names, in order; the last ones first before a fork. */
void parts_before_fork(void);
void parts_after_fork(void);
void parts_in_child(void);
void parts_at_exit(void);

#endif
