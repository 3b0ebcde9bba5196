#include "server/budget.h"

#include "base/stop.h"
#include "base/wait.h"

enum { LOOK_MS = 20 }; /* at whether anybody still wants it */

void budget_init(struct budget *b, uint64_t total, unsigned max_waiting)
{
	*b = (struct budget){ .total = total, .max_waiting = max_waiting };
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->has_more, NULL);
}

void budget_release(struct budget *b)
{
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->has_more);
}

static bool is_there(const struct budget *b, uint64_t amount)
{
	return amount <= b->total && b->taken <= b->total - amount;
}

static void wait_for(struct budget *b, uint64_t amount, int wait_ms, const atomic_bool *stop)
{
	int64_t end = clock_now_ms() + wait_ms;

	b->nwaiting++;
	while (!is_there(b, amount) && !stop_asked(stop) && clock_now_ms() < end)
		wait_for_ms(&b->has_more, &b->lock, LOOK_MS);
	b->nwaiting--;
}

bool budget_take(struct budget *b, uint64_t amount, int wait_ms, const atomic_bool *stop)
{
	bool ok;

	pthread_mutex_lock(&b->lock);
	if (!is_there(b, amount) && wait_ms && amount <= b->total && b->nwaiting < b->max_waiting)
		wait_for(b, amount, wait_ms, stop);
	ok = is_there(b, amount);
	if (ok)
		b->taken += amount;
	if (b->taken > b->highest)
		b->highest = b->taken;
	pthread_mutex_unlock(&b->lock);
	return ok;
}

void budget_give(struct budget *b, uint64_t amount)
{
	if (!amount)
		return;
	pthread_mutex_lock(&b->lock);
	b->taken -= amount;
	pthread_cond_broadcast(&b->has_more);
	pthread_mutex_unlock(&b->lock);
}

uint64_t budget_taken(struct budget *b, unsigned *nwaiting)
{
	uint64_t taken;

	pthread_mutex_lock(&b->lock);
	taken = b->taken;
	*nwaiting = b->nwaiting;
	pthread_mutex_unlock(&b->lock);
	return taken;
}
