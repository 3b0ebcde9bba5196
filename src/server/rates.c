#include "server/rates.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/vec.h"

enum {
	BURST_S = 5,	       /* of the rate, that a bucket holds */
	MAX_CLIENTS = 1 << 16, /* more, and those are forgotten that have been quiet */
	MAX_NAME_BYTES = 64,
};

enum { PROFILES, BYTES, NKINDS };
static const char *const names[NKINDS] = { "rate-profiles", "rate-bytes" };

struct client {
	char name[MAX_NAME_BYTES];
	unsigned char nname;
	double left[NKINDS];
	int64_t at; /* when that was so */
};

struct rates {
	pthread_mutex_t lock;
	double rate[NKINDS];
	vec(struct client) clients;
	struct map by_name;
};

struct rates *rates_new(double profiles, double bytes)
{
	struct rates *r = xcalloc(1, sizeof(*r));

	r->rate[PROFILES] = profiles;
	r->rate[BYTES] = bytes;
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

void rates_free(struct rates *r)
{
	if (!r)
		return;
	pthread_mutex_destroy(&r->lock);
	vec_release(&r->clients);
	map_release(&r->by_name);
	free(r);
}

static void refill(const struct rates *r, struct client *c, int64_t now)
{
	double seconds = (double)(now - c->at) / 1e9;

	for (size_t i = 0; i < NKINDS; i++) {
		double most = r->rate[i] * BURST_S;

		c->left[i] += seconds * r->rate[i];
		c->left[i] = c->left[i] < most ? c->left[i] : most;
	}
	c->at = now;
}

struct key {
	const struct rates *r;
	struct str name;
};

static bool same_client(const void *key, uint32_t i)
{
	const struct key *k = key;
	const struct client *c = &k->r->clients.at[i];

	return str_eq((struct str){ c->name, c->nname }, k->name);
}

static uint64_t hash_name(struct str name)
{
	return hash_bytes(map_seed(), name.p, name.n);
}

/* A full bucket is like none. If all of them owe something, they are forgiven: memory is dearer. */
static void forget_quiet(struct rates *r, int64_t now)
{
	size_t n = 0;

	for (size_t i = 0; i < r->clients.n; i++) {
		struct client *c = &r->clients.at[i];
		bool is_full = true;

		refill(r, c, now);
		for (size_t k = 0; k < NKINDS; k++)
			is_full &= c->left[k] >= r->rate[k] * BURST_S;
		if (!is_full)
			r->clients.at[n++] = *c;
	}
	r->clients.n = n < MAX_CLIENTS / 2 ? n : 0;
	map_release(&r->by_name);
	r->by_name = (struct map){ 0 };
	for (size_t i = 0; i < r->clients.n; i++) {
		struct client *c = &r->clients.at[i];

		map_add(&r->by_name, hash_name((struct str){ c->name, c->nname }), i);
	}
}

static struct client *find_client(struct rates *r, struct str name, int64_t now)
{
	struct key key = { r, name };
	uint32_t i = map_get(&r->by_name, hash_name(name), same_client, &key);
	struct client new = { .nname = (unsigned char)name.n, .at = now };

	if (i != MAP_NONE)
		return &r->clients.at[i];
	if (r->clients.n == MAX_CLIENTS)
		forget_quiet(r, now);
	memcpy(new.name, name.p, name.n);
	for (size_t k = 0; k < NKINDS; k++)
		new.left[k] = r->rate[k] * BURST_S;
	i = map_add(&r->by_name, hash_name(name), r->clients.n);
	vec_push(&r->clients, new);
	return &r->clients.at[i];
}

/* Seconds until there is something of all left. */
static double wait_of(const struct rates *r, const struct client *c, const char **limit)
{
	double longest = 0;

	for (size_t i = 0; i < NKINDS; i++) {
		double wait = (1 - c->left[i]) / r->rate[i];

		if (r->rate[i] > 0 && c->left[i] <= 0 && wait > longest) {
			longest = wait;
			*limit = names[i];
		}
	}
	return longest;
}

static struct client *refilled(struct rates *r, struct str name, int64_t now)
{
	struct client *c;

	if (name.n > MAX_NAME_BYTES)
		name.n = MAX_NAME_BYTES;
	c = find_client(r, name, now);
	refill(r, c, now);
	return c;
}

double rates_take(struct rates *r, struct str client, int64_t now, const char **limit)
{
	struct client *c;
	double wait;

	if (r->rate[PROFILES] <= 0 && r->rate[BYTES] <= 0)
		return 0;
	pthread_mutex_lock(&r->lock);
	c = refilled(r, client, now);
	wait = wait_of(r, c, limit);
	if (wait <= 0 && r->rate[PROFILES] > 0)
		c->left[PROFILES] -= 1;
	pthread_mutex_unlock(&r->lock);
	return wait;
}

static void owe(struct rates *r, struct str client, size_t kind, double amount, int64_t now)
{
	if (r->rate[kind] <= 0 || amount <= 0)
		return;
	pthread_mutex_lock(&r->lock);
	refilled(r, client, now)->left[kind] -= amount;
	pthread_mutex_unlock(&r->lock);
}

void rates_take_more(struct rates *r, struct str client, size_t profiles, int64_t now)
{
	owe(r, client, PROFILES, (double)profiles, now);
}

void rates_take_bytes(struct rates *r, struct str client, uint64_t bytes, int64_t now)
{
	owe(r, client, BYTES, (double)bytes, now);
}
