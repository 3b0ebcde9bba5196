#include "server/turns.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/stop.h"
#include "base/vec.h"
#include "base/wait.h"

enum { LOOK_MS = 20 }; /* at whether anybody still wants it */

/* Lies on the stack of who waits. */
struct waiter {
	uint64_t client;
	bool has_turn, is_displaced;
};

struct turns {
	pthread_mutex_t lock;
	pthread_cond_t has_changed;
	unsigned max, max_waiting;
	vec(uint64_t) running;	      /* their clients */
	vec(struct waiter *) waiting; /* in the order in which they came */
	uint64_t last;		      /* client that was given a turn */
};

struct turns *turns_new(unsigned max, unsigned max_waiting)
{
	struct turns *t = xcalloc(1, sizeof(*t));

	t->max = max;
	t->max_waiting = max_waiting;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->has_changed, NULL);
	return t;
}

void turns_free(struct turns *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->has_changed);
	vec_release(&t->running);
	vec_release(&t->waiting);
	free(t);
}

static uint64_t client_of(struct str name)
{
	return hash_bytes(map_seed(), name.p, name.n);
}

static unsigned count_running(const struct turns *t, uint64_t client)
{
	unsigned n = 0;

	for (size_t i = 0; i < t->running.n; i++)
		n += t->running.at[i] == client;
	return n;
}

static unsigned count_waiting(const struct turns *t, uint64_t client)
{
	unsigned n = 0;

	for (size_t i = 0; i < t->waiting.n; i++)
		n += t->waiting.at[i]->client == client;
	return n;
}

static void remove_waiter(struct turns *t, size_t i)
{
	t->waiting.n--;
	for (; i < t->waiting.n; i++)
		t->waiting.at[i] = t->waiting.at[i + 1];
}

/* Of a client. One is left for others: who comes then need not wait for the end of long work. */
static unsigned max_running(const struct turns *t)
{
	return t->max > 1 ? t->max - 1 : t->max;
}

/* Whose client has fewest, and may have more; of several, not who was last: many of one client wait
 * for each other, not others for all of them. waiting.n: nobody's. */
static size_t find_next(const struct turns *t)
{
	size_t best = t->waiting.n;
	unsigned fewest = max_running(t);
	bool is_again = false;

	for (size_t i = 0; i < t->waiting.n; i++) {
		uint64_t client = t->waiting.at[i]->client;
		unsigned n = count_running(t, client);

		if (n < fewest || (n == fewest && is_again && client != t->last)) {
			fewest = n;
			best = i;
			is_again = client == t->last;
		}
	}
	return best;
}

static void grant(struct turns *t)
{
	size_t best;

	while (t->running.n < t->max && (best = find_next(t)) < t->waiting.n) {
		t->waiting.at[best]->has_turn = true;
		t->last = t->waiting.at[best]->client;
		vec_push(&t->running, t->last);
		remove_waiter(t, best);
	}
	pthread_cond_broadcast(&t->has_changed);
}

/* The last that came of the client with most of the places gives its own to one that has fewer. */
static bool displace(struct turns *t, uint64_t client)
{
	unsigned most = count_waiting(t, client) + 1;
	size_t worst = t->waiting.n;

	for (size_t i = 0; i < t->waiting.n; i++) {
		unsigned n = count_waiting(t, t->waiting.at[i]->client);

		if (n > most || (n == most && worst < t->waiting.n)) {
			most = n;
			worst = i;
		}
	}
	if (worst == t->waiting.n)
		return false;
	t->waiting.at[worst]->is_displaced = true;
	remove_waiter(t, worst);
	pthread_cond_broadcast(&t->has_changed);
	return true;
}

static void wait_for_turn(struct turns *t, struct waiter *w, int wait_ms, const atomic_bool *stop)
{
	int64_t end = clock_now_ms() + wait_ms;

	vec_push(&t->waiting, w);
	grant(t);
	while (!w->has_turn && !w->is_displaced && !stop_asked(stop) && clock_now_ms() < end)
		wait_for_ms(&t->has_changed, &t->lock, LOOK_MS);
	for (size_t i = 0; i < t->waiting.n; i++)
		if (t->waiting.at[i] == w)
			remove_waiter(t, i);
}

bool turns_take(struct turns *t, struct str client, int wait_ms, const atomic_bool *stop)
{
	struct waiter w = { .client = client_of(client) };

	pthread_mutex_lock(&t->lock);
	if (t->waiting.n < t->max_waiting || displace(t, w.client))
		wait_for_turn(t, &w, wait_ms, stop);
	pthread_mutex_unlock(&t->lock);
	return w.has_turn;
}

void turns_give(struct turns *t, struct str client)
{
	uint64_t key = client_of(client);

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->running.n; i++) {
		if (t->running.at[i] == key) {
			t->running.at[i] = t->running.at[--t->running.n];
			break;
		}
	}
	grant(t);
	pthread_mutex_unlock(&t->lock);
}

void turns_count(struct turns *t, unsigned *nrunning, unsigned *nwaiting)
{
	pthread_mutex_lock(&t->lock);
	*nrunning = (unsigned)t->running.n;
	*nwaiting = (unsigned)t->waiting.n;
	pthread_mutex_unlock(&t->lock);
}
