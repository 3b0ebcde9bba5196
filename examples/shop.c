/* shop.c - a small service with something to see in each of its profiles: what `make run` shows.
 *
 *	cc -g -O2 -o shop shop.c $(pkg-config --cflags --libs kiln) -pthread
 *	KILN_PPROF_ADDR=localhost:8070 KILN_MUTEX_FRACTION=1 KILN_BLOCK_RATE=10000 ./shop &
 *	kiln -top -seconds=5 http://localhost:8070
 *
 * Customers come all the time. Four threads serve them: they search the catalogue (CPU), keep what
 * was found for the next who asks (memory), and sell, one at a time as there is one stock (a lock).
 * Samples have the label "handler". It runs until it is told to stop, or for so many seconds.
 */
#include <kiln.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	PRODUCTS = 20000,
	NAME_BYTES = 24,
	WORKERS = 4,
	QUEUED = 64,
	CACHED = 256,
	PER_SECOND = 800, /* customers */
};

struct product {
	char name[NAME_BYTES];
	unsigned price, stock;
};

enum handler { SEARCH, CHECKOUT, REPORT, NHANDLERS };
static const char *const handler_names[NHANDLERS] = { "search", "checkout", "report" };

struct customer {
	enum handler wants;
	unsigned seed;
};

static struct product catalogue[PRODUCTS];
static pthread_mutex_t stock_lock = PTHREAD_MUTEX_INITIALIZER;

/* What was found last, for those who ask for the same. */
struct result {
	char *text;
	unsigned seed;
};
static struct result cache[CACHED];
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;

static struct customer queue[QUEUED];
static unsigned first, n_queued;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_customers = PTHREAD_COND_INITIALIZER;

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static void fill_catalogue(void)
{
	static const char *const words[] = { "red",  "blue",  "small", "old", "round",
					     "lamp", "chair", "cup",   "hat", "kite" };
	unsigned seed = 1;

	for (unsigned i = 0; i < PRODUCTS; i++) {
		struct product *p = &catalogue[i];

		snprintf(p->name, sizeof(p->name), "%s %s %05u", words[next_random(&seed) % 5],
			 words[5 + next_random(&seed) % 5], i);
		p->price = 100 + next_random(&seed) % 10000;
		p->stock = 1000;
	}
}

/* ---- searching */

static bool is_match(const struct product *p, const char *what)
{
	return strstr(p->name, what) != NULL;
}

static int by_price(const void *a, const void *b)
{
	unsigned x = ((const struct product *)a)->price, y = ((const struct product *)b)->price;

	return x < y ? -1 : x > y;
}

static size_t find_products(const char *what, struct product *found)
{
	size_t n = 0;

	for (unsigned i = 0; i < PRODUCTS; i++)
		if (is_match(&catalogue[i], what))
			found[n++] = catalogue[i];
	qsort(found, n, sizeof(*found), by_price);
	return n;
}

static char *print_products(const struct product *found, size_t n)
{
	size_t bytes = 0, room = n * (NAME_BYTES + 16) + 1;
	char *text = malloc(room);

	for (size_t i = 0; text && i < n; i++)
		bytes += (size_t)snprintf(text + bytes, room - bytes, "%s %u\n", found[i].name,
					  found[i].price);
	return text;
}

static void keep_result(char *text, unsigned seed)
{
	struct result *r = &cache[seed % CACHED];

	pthread_mutex_lock(&cache_lock);
	free(r->text);
	*r = (struct result){ text, seed };
	pthread_mutex_unlock(&cache_lock);
}

static void search(unsigned seed)
{
	struct product *found = malloc(sizeof(catalogue));
	char what[16];

	snprintf(what, sizeof(what), "%02u", seed % 100);
	if (found)
		keep_result(print_products(found, find_products(what, found)), seed);
	free(found);
}

/* ---- selling */

static uint64_t sign_receipt(const struct product *p, unsigned rounds)
{
	uint64_t h = 14695981039346656037u;

	while (rounds--)
		for (const char *c = p->name; *c; c++)
			h = (h ^ (unsigned char)*c) * 1099511628211u;
	return h;
}

/* That the receipt is signed with the lock held is what the mutex profile tells. */
static void checkout(unsigned seed)
{
	struct product *p = &catalogue[next_random(&seed) % PRODUCTS];

	pthread_mutex_lock(&stock_lock);
	p->stock = p->stock ? p->stock - 1 : 1000;
	p->price += (unsigned)(sign_receipt(p, 20000) % 3);
	pthread_mutex_unlock(&stock_lock);
}

static void report(unsigned seed)
{
	uint64_t worth = 0;

	pthread_mutex_lock(&stock_lock);
	for (unsigned i = seed % 2; i < PRODUCTS; i += 2)
		worth += (uint64_t)catalogue[i].price * catalogue[i].stock;
	pthread_mutex_unlock(&stock_lock);
	keep_result(calloc(1, 1000 + worth % 60000), seed);
}

/* ---- customers */

static void serve(struct customer c)
{
	KILN_LABEL("handler", handler_names[c.wants]);
	if (c.wants == SEARCH)
		search(c.seed);
	else if (c.wants == CHECKOUT)
		checkout(c.seed);
	else
		report(c.seed);
}

static void *work(void *arg)
{
	for (;;) {
		struct customer c;

		pthread_mutex_lock(&queue_lock);
		while (!n_queued)
			pthread_cond_wait(&has_customers, &queue_lock);
		c = queue[first];
		first = (first + 1) % QUEUED;
		n_queued--;
		pthread_mutex_unlock(&queue_lock);
		serve(c);
	}
	return arg;
}

/* They come in groups of four; who finds a full queue goes away. */
static void let_in(unsigned *seed)
{
	pthread_mutex_lock(&queue_lock);
	for (int i = 0; i < 4 && n_queued < QUEUED; i++) {
		unsigned r = next_random(seed) % 10;

		queue[(first + n_queued++) % QUEUED] =
			(struct customer){ r < 5   ? SEARCH
					   : r < 9 ? CHECKOUT
						   : REPORT,
					   next_random(seed) % 5000 };
	}
	pthread_cond_broadcast(&has_customers);
	pthread_mutex_unlock(&queue_lock);
}

int main(int argc, char **argv)
{
	long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	time_t end = time(NULL) + seconds;
	pthread_t thread;
	unsigned seed = 42;

	fill_catalogue();
	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&thread, NULL, work, NULL) != 0)
			return 1;
	while (!seconds || time(NULL) < end) {
		let_in(&seed);
		usleep(4 * 1000000 / PER_SECOND);
	}
	return 0;
}
