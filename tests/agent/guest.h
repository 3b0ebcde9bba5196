/* guest.h - what the programs of guest.py share. Each runs one case, named by its argument, and
 * prints what it saw: the same with the agent and without. */
#ifndef AGENT_GUEST_H
#define AGENT_GUEST_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOT_INLINED __attribute__((noinline, noclone))
/* Keeps the frame of a function whose last act is a call. */
#define STAYS __asm__ volatile("" ::: "memory")

static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* CPU time of this thread, so that the machine's load does not matter. */
NOT_INLINED __attribute__((unused)) static void burn(int milliseconds)
{
	int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + (int64_t)milliseconds * 1000000;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 50000; i++)
			STAYS;
}

__attribute__((unused)) static void nap(int milliseconds)
{
	usleep((useconds_t)milliseconds * 1000);
}

/* What does not hold is printed, and so differs from what the other run prints. */
#define CHECK(what)                                                       \
	do {                                                              \
		if (!(what))                                              \
			printf("line %d: not so: %s\n", __LINE__, #what); \
	} while (0)

struct guest_case {
	const char *name;
	int (*run)(void);
};

__attribute__((unused)) static int run_case(int argc, char **argv, const struct guest_case *cases)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	for (; cases->name; cases++)
		if (argc > 1 && strcmp(cases->name, argv[1]) == 0)
			return cases->run();
	printf("no such case\n");
	return 99;
}

#endif
