/* holds.h - how much of something each client has now.
 *
 * Clients that have nothing are not known. Threads: any number. */
#ifndef SERVER_HOLDS_H
#define SERVER_HOLDS_H

#include <stdint.h>

#include "base/str.h"

struct holds;

struct holds *holds_new(void);
void holds_free(struct holds *h);
void holds_add(struct holds *h, struct str client, uint64_t amount);
/* Of what it has added. */
void holds_remove(struct holds *h, struct str client, uint64_t amount);
uint64_t holds_of(struct holds *h, struct str client);
/* Of all together. */
uint64_t holds_total(struct holds *h);

#endif
