/* taken.h - signals that the agent handles as long as the program leaves them at their default
 * action, without the program seeing it. */
#ifndef AGENT_TAKEN_H
#define AGENT_TAKEN_H

#include <signal.h>
#include <stdbool.h>

/* Takes it, unless the program handles or ignores it now. Again: nothing happens. */
bool signal_take(int signal, void (*handler)(int));
/* Gives all back: in a child after fork. */
void signals_give_back(void);

/* For hooks of sigaction and its likes: does what the program asked for. False: the signal was
 * never taken, the real function is to be called. Any context. */
bool taken_sigaction(int signal, const struct sigaction *action, struct sigaction *old);

#endif
