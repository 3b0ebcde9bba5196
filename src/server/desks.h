/* desks.h - memory in which profiles are read, used again for the next: to ask the kernel for it
 * each time would cost about as much as to read a small profile.
 *
 * Threads: any number may take desks; a desk is one thread's until it is put back.
 */
#ifndef SERVER_DESKS_H
#define SERVER_DESKS_H

#include <pthread.h>

#include "base/strings.h"

struct desk {
	struct desk *next;
	struct arena arena;
	struct strings strings;
};

struct desks {
	pthread_mutex_t lock;
	struct desk *unused;
	unsigned nunused;
};

void desks_init(struct desks *d);
/* All must have been put back. */
void desks_release(struct desks *d);
/* An empty one. */
struct desk *desk_take(struct desks *d);
void desk_put_back(struct desks *d, struct desk *desk);

/* For store_new: others may use the memory while a put waits for the disk, so what few use stays in
 * the cache. `ctx` is a struct held_desk. */
struct held_desk {
	struct desks *desks;
	struct desk *desk; /* NULL once it is put back */
};
void desk_let_go(void *ctx);

#endif
