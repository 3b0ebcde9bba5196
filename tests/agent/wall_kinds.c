/* wall_kinds.c - a thread that works for a second, and threads that wait for a second. */
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define NO_INLINE __attribute__((noinline, noclone))

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

NO_INLINE int works(void)
{
	double end = now() + 1;

	while (now() < end)
		for (volatile int i = 0; i < 10000; i++)
			;
	return 0;
}

NO_INLINE int polls(void)
{
	return poll(NULL, 0, 1000) + (now() < 0);
}

NO_INLINE int sleeps(void)
{
	return usleep(1000000) + (now() < 0);
}

static void *run(void *function)
{
	return ((int (*)(void))function)() ? NULL : function;
}

int main(void)
{
	int (*kinds[])(void) = { works, polls, sleeps };
	pthread_t threads[3];
	void *result;

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, run, kinds[i]);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &result);
		if (!result)
			return 1;
	}
	return 0;
}
