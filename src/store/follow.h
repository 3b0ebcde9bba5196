/* follow.h - what functions weigh in profiles that have just been put.
 *
 * Whoever asks for a fleet's newest profiles needs the books of all its services, which are on the
 * disk, most of them: that takes seconds. Whoever puts a profile has its book in memory. So the sum
 * of the window that it is in, to which more may come (hot.h), is made right after it is durable:
 * of one type of profiles, as long as that takes a small part of the machine, and nobody waits to
 * put another. What is left out is added with the next one, or read by whoever asks for it first.
 */
#ifndef STORE_FOLLOW_H
#define STORE_FOLLOW_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/str.h"

struct store;
struct writer_task;

struct follow {
	atomic_bool is_on;
	struct str type;
	int ncores;
	pthread_mutex_t lock;
	int64_t left_ns; /* of the CPU, that it may take; below 0: it has taken more */
	int64_t since_ns;
};

void follow_init(struct follow *f);
void follow_release(struct follow *f);
/* It is durable, and its series and book are held. */
void follow_put(struct store *s, const struct writer_task *task);

#endif
