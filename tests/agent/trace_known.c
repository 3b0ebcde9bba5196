/* Things to be seen in a trace. Prints "wait NAME NANOSECONDS" and "cpu TID NANOSECONDS" as it saw
 * them itself. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kiln.h"

__attribute__((weak)) void kiln_region_begin(const char *name);
__attribute__((weak)) void kiln_region_end(void);
__attribute__((weak)) void kiln_counter(const char *name, int64_t value);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t meet;

static int64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void burn(int64_t ns)
{
	int64_t end = now(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		for (volatile int i = 0; i < 1000; i++)
			;
}

static void report_cpu(void)
{
	printf("cpu %ld %lld\n", (long)syscall(SYS_gettid),
	       (long long)now(CLOCK_THREAD_CPUTIME_ID));
}

static void *holder(void *nothing)
{
	pthread_setname_np(pthread_self(), "the holder");
	for (int i = 0; i < 5; i++) {
		pthread_mutex_lock(&mutex);
		pthread_barrier_wait(&meet);
		usleep(4000);
		pthread_mutex_unlock(&mutex);
		pthread_barrier_wait(&meet);
	}
	burn(60000000);
	report_cpu();
	return nothing;
}

static void *waiter(void *nothing)
{
	/* What is no text has to become some. */
	pthread_setname_np(pthread_self(), "\"\\\n\x1b[31m\xff\xc3");
	for (int i = 0; i < 5; i++) {
		int64_t start;

		pthread_barrier_wait(&meet);
		kiln_region_begin("outer");
		kiln_region_begin("\x01 \"quoted\" \\ \xe4\xb8\xad \xed\xa0\x80 \xf8");
		start = now(CLOCK_MONOTONIC);
		pthread_mutex_lock(&mutex);
		printf("wait mutex %lld\n", (long long)(now(CLOCK_MONOTONIC) - start));
		pthread_mutex_unlock(&mutex);
		kiln_region_end();
		kiln_counter("round", i - 2);
		kiln_region_end();
		pthread_barrier_wait(&meet);
	}
	kiln_region_end(); /* there is none */
	kiln_region_begin("never ends");
	burn(20000000);
	report_cpu();
	return nothing;
}

static void *flood(void *nothing)
{
	for (int i = 0; i < 400000; i++)
		kiln_counter("flood", i);
	return nothing;
}

/* Both want the lock all the time, and have it for a moment only. */
static void *fight(void *nothing)
{
	for (int i = 0; i < 2000000; i++) {
		pthread_mutex_lock(&mutex);
		for (volatile int k = 0; k < 20; k++)
			;
		pthread_mutex_unlock(&mutex);
	}
	return nothing;
}

static sem_t turns[2];

/* They wake each other all the time, and then have something to do. */
static void *take_turns(void *nothing)
{
	static atomic_int n;
	int me = n++;

	for (int i = 0; i < 30000; i++) {
		sem_post(&turns[!me]);
		sem_wait(&turns[me]);
	}
	usleep(200000);
	burn(50000000);
	report_cpu();
	return nothing;
}

static const struct {
	const char *name;
	void *(*first)(void *), *(*second)(void *);
} plays[] = {
	{ "known", holder, waiter },
	{ "flood", flood, flood },
	{ "fight", fight, fight },
	{ "turns", take_turns, take_turns },
};

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "known";
	pthread_t threads[2];
	size_t play = 0;

	if (!kiln_counter)
		return 1;
	while (strcmp(plays[play].name, name) != 0)
		play++;
	pthread_barrier_init(&meet, NULL, 2);
	sem_init(&turns[0], 0, 0);
	sem_init(&turns[1], 0, 0);
	pthread_create(&threads[0], NULL, plays[play].first, NULL);
	pthread_create(&threads[1], NULL, plays[play].second, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	free(malloc(16 << 20));
	return 0;
}
