#include "server/limits.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/parallel.h"
#include "base/wait.h"

enum {
	MEASURE_NS = 100000000,
	HASHERS = 2,
	MAX_WAITING = 16, /* of the threads that run handlers */
	MAX_WAITING_HASHERS = 4,
	MAX_WAITING_LARGE = 8,
	MAX_WAITING_CODE = 4,
	SCRAPES_SHARE = 4, /* of the requests' memory */
	MIN_MEMORY = 64 << 20,
	MMAP_BYTES = 256 << 10,
	ARENAS = 4,
};

/* glibc would keep large blocks for later, and have an arena for each thread. */
static void tame_malloc(void)
{
	mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
	mallopt(M_TRIM_THRESHOLD, 2 * MMAP_BYTES);
	mallopt(M_ARENA_MAX, ARENAS);
}

static uint64_t total_memory(const struct server_options *o)
{
	return o->max_memory > MIN_MEMORY ? (uint64_t)o->max_memory : MIN_MEMORY;
}

uint64_t limits_store_memory(const struct server_options *o)
{
	return total_memory(o) / 8 * 3;
}

unsigned limits_queries(const struct server_options *o)
{
	uint64_t cores = (uint64_t)parallel_cores(), n = (uint64_t)o->max_queries;

	return (unsigned)(n && n < UINT16_MAX ? n : cores);
}

struct limits *limits_new(const struct server_options *o, void (*log)(void *ctx, const char *line),
			  void *ctx)
{
	struct limits *l = xcalloc(1, sizeof(*l));
	unsigned cores = (unsigned)parallel_cores();
	unsigned queries = limits_queries(o);

	tame_malloc();
	l->max_memory = total_memory(o);
	budget_init(&l->memory, l->max_memory / 2, MAX_WAITING);
	budget_init(&l->scrapes, l->memory.total / SCRAPES_SHARE, (unsigned)o->max_scrapes);
	l->turns = turns_new(queries, MAX_WAITING);
	l->hashing = turns_new(HASHERS, MAX_WAITING_HASHERS);
	l->large = turns_new(cores > 1 ? cores / 2 : 1, MAX_WAITING_LARGE);
	l->code = turns_new(1, MAX_WAITING_CODE);
	l->unread = holds_new();
	l->max_unread = l->memory.total / 8;
	l->rates = rates_new((double)o->rate_profiles, (double)o->rate_bytes);
	l->refusals = refusals_new(log, ctx);
	return l;
}

void limits_free(struct limits *l)
{
	if (!l)
		return;
	budget_release(&l->memory);
	budget_release(&l->scrapes);
	turns_free(l->turns);
	turns_free(l->large);
	turns_free(l->hashing);
	turns_free(l->code);
	holds_free(l->unread);
	rates_free(l->rates);
	refusals_free(l->refusals);
	free(l);
}

uint64_t limits_resident(void)
{
	unsigned long long size = 0, resident = 0, shared = 0;
	char text[200];
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	if (sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3 || resident < shared)
		return 0;
	return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

bool limits_is_short(struct limits *l)
{
	int64_t now = clock_now_ns(), last = l->measured_ns;

	/* Only one of those who find that it is time. */
	if (now - last > MEASURE_NS &&
	    atomic_compare_exchange_strong(&l->measured_ns, &last, now)) {
		l->measured = (int64_t)limits_resident();
		if ((uint64_t)l->measured > l->max_memory / 8 * 7)
			malloc_trim(0);
	}
	return (uint64_t)l->measured > l->max_memory / 8 * 7;
}
