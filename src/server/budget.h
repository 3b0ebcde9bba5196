/* budget.h - so much of something, memory or turns, that requests take and give back.
 *
 * Threads: any number. */
#ifndef SERVER_BUDGET_H
#define SERVER_BUDGET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct budget {
	pthread_mutex_t lock;
	pthread_cond_t has_more;
	uint64_t total, taken, highest; /* ever taken */
	unsigned nwaiting, max_waiting;
};

/* Of those that find too little left, max_waiting may wait at a time. */
void budget_init(struct budget *b, uint64_t total, unsigned max_waiting);
void budget_release(struct budget *b);
/* False: there is not so much, nor was there within wait_ms; or `stop`, which may be NULL, has
 * become true. With wait_ms == 0 it does not block. */
bool budget_take(struct budget *b, uint64_t amount, int wait_ms, const atomic_bool *stop);
void budget_give(struct budget *b, uint64_t amount);
uint64_t budget_taken(struct budget *b, unsigned *nwaiting);

#endif
