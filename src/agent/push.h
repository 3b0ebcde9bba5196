/* push.h - profiles that are sent to a server. */
#ifndef AGENT_PUSH_H
#define AGENT_PUSH_H

#include <stdbool.h>

/* Has the heap profile sent at once, beside its rounds, with a comment that so many per cent of the
 * memory limit are used. Does not wait. False: there is no server. */
bool push_heap(unsigned limit_use);

#endif
