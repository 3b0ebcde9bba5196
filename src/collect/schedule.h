/* schedule.h - when what is due: pure arithmetic of times, and a queue by them. Private to
 * collect/.
 *
 * Time is cut into rounds of one interval, the same for all. In each a target has a place of its
 * own, told by its hash: so thousands of targets are spread evenly, none is taken twice in a round,
 * and each comes a whole interval after the last time. All times are nanoseconds.
 */
#ifndef COLLECT_SCHEDULE_H
#define COLLECT_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* Number of the round that a time lies in. */
static inline int64_t schedule_round(int64_t time, int64_t interval)
{
	return time / interval;
}
/* The first time after `after` at which it is this one's turn. `spread` of the interval is used,
 * 0: all of it. */
int64_t schedule_next(int64_t after, int64_t interval, int64_t spread, uint64_t hash);
/* How long one that has failed `nfailures` times in a row is left alone: intervals, doubled each
 * time, but not more than max (or than one interval, if that is longer), and up to a quarter more
 * or less, so that those that failed together do not come back together. */
int64_t schedule_backoff(int64_t interval, unsigned nfailures, int64_t max, uint64_t random);
/* Good numbers in a row; any state will do to begin with. */
uint64_t random_next(uint64_t *state);

/* ---- a queue */

struct queued {
	int64_t due;
	size_t place; /* in the queue, from 1; 0: it is not in it */
};

struct queue {
	vec(struct queued *) at; /* a binary heap */
};

void queue_put(struct queue *q, struct queued *x, int64_t due);
/* It need not be there. */
void queue_remove(struct queue *q, struct queued *x);
/* The one that is due first, which stays; NULL: there is none. */
struct queued *queue_first(const struct queue *q);

#endif
