#include "server/holds.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/vec.h"

struct hold {
	uint64_t client, amount;
};

struct holds {
	pthread_mutex_t lock;
	vec(struct hold) all; /* few: each has an answer under way */
	uint64_t total;
};

struct holds *holds_new(void)
{
	struct holds *h = xcalloc(1, sizeof(*h));

	pthread_mutex_init(&h->lock, NULL);
	return h;
}

void holds_free(struct holds *h)
{
	if (!h)
		return;
	pthread_mutex_destroy(&h->lock);
	vec_release(&h->all);
	free(h);
}

/* NULL: it has nothing. */
static struct hold *find(struct holds *h, struct str client)
{
	uint64_t key = hash_bytes(map_seed(), client.p, client.n);

	for (size_t i = 0; i < h->all.n; i++)
		if (h->all.at[i].client == key)
			return &h->all.at[i];
	return NULL;
}

void holds_add(struct holds *h, struct str client, uint64_t amount)
{
	struct hold *found;

	pthread_mutex_lock(&h->lock);
	found = find(h, client);
	if (found) {
		found->amount += amount;
	} else {
		struct hold new = { hash_bytes(map_seed(), client.p, client.n), amount };

		vec_push(&h->all, new);
	}
	h->total += amount;
	pthread_mutex_unlock(&h->lock);
}

void holds_remove(struct holds *h, struct str client, uint64_t amount)
{
	struct hold *found;

	pthread_mutex_lock(&h->lock);
	found = find(h, client);
	if (found) {
		found->amount -= amount;
		h->total -= amount;
		if (!found->amount)
			*found = h->all.at[--h->all.n];
	}
	pthread_mutex_unlock(&h->lock);
}

uint64_t holds_of(struct holds *h, struct str client)
{
	const struct hold *found;
	uint64_t amount;

	pthread_mutex_lock(&h->lock);
	found = find(h, client);
	amount = found ? found->amount : 0;
	pthread_mutex_unlock(&h->lock);
	return amount;
}

uint64_t holds_total(struct holds *h)
{
	uint64_t total;

	pthread_mutex_lock(&h->lock);
	total = h->total;
	pthread_mutex_unlock(&h->lock);
	return total;
}
