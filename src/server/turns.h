/* turns.h - so many at a time, others wait, and nobody takes all of it.
 *
 * A turn that gets free goes to the client that has the fewest, and of several to one that was not
 * the last to get one, so that one client's many wait for each other; the last turn, if there are
 * several, to none that has all others. Whoever comes when all places to wait are taken takes that
 * of the client that has most. Threads: any number. */
#ifndef SERVER_TURNS_H
#define SERVER_TURNS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/str.h"

struct turns;

struct turns *turns_new(unsigned max, unsigned max_waiting);
void turns_free(struct turns *t);
/* False: none got free within wait_ms, or there are too many of this client's; or `stop`, which may
 * be NULL, has become true. */
bool turns_take(struct turns *t, struct str client, int wait_ms, const atomic_bool *stop);
void turns_give(struct turns *t, struct str client);
void turns_count(struct turns *t, unsigned *nrunning, unsigned *nwaiting);

#endif
