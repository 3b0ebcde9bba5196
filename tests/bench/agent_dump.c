/* agent_dump.c - a program of which a profile has much to tell: so many threads that wait, or
 * stacks that allocate.
 *
 *   agent_dump threads N | agent_dump stacks N       "ready" on its output, then it sleeps */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BITS = 24, STACK_BYTES = 64 << 10 };

static pthread_barrier_t all;

static void *wait_for_ever(void *nothing)
{
	pthread_barrier_wait(&all);
	pause();
	return nothing;
}

static int start_threads(unsigned n)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_barrier_init(&all, NULL, n + 1);
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&thread, &attr, wait_for_ever, NULL) != 0)
			return 1;
	pthread_barrier_wait(&all);
	return 0;
}

static void *volatile kept;

__attribute__((noinline)) static void allocate(unsigned path, unsigned depth);

__attribute__((noinline)) static void go_left(unsigned path, unsigned depth)
{
	allocate(path / 2, depth - 1);
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

__attribute__((noinline)) static void go_right(unsigned path, unsigned depth)
{
	allocate(path / 2, depth - 1);
	__asm__ volatile("" ::: "memory");
}

/* The bits of `path` are the way that it is called. */
static void allocate(unsigned path, unsigned depth)
{
	if (depth == 0)
		kept = malloc(100);
	else if (path % 2)
		go_left(path, depth);
	else
		go_right(path, depth);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 0;

	if (argc > 2 && strcmp(argv[1], "threads") == 0 && start_threads(n) != 0)
		return 1;
	for (unsigned i = 0; argc > 2 && strcmp(argv[1], "stacks") == 0 && i < n; i++)
		allocate(i, BITS);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
