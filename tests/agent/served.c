/* served.c - a program to be asked for its profiles: it computes, allocates, waits for a lock, and
 * does what it reads line by line from standard input, until that ends. "daemon" as argument: it
 * first becomes one; "few": it may have few open files. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "kiln.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sum;
static void *volatile kept[1000];

static void pause_ms(int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

__attribute__((noinline)) void compute(void)
{
	for (int i = 0; i < 1000000; i++)
		sum += (unsigned long)i * 3;
}

static void *run_compute(void *arg)
{
	KILN_LABEL("worker", "sums \"up\"");
	for (;;)
		compute();
	return arg;
}

__attribute__((noinline)) void hold_lock(void)
{
	pthread_mutex_lock(&lock);
	pause_ms(2);
	pthread_mutex_unlock(&lock);
	sum++; /* or the call before would be a jump, and this function not on the stack */
}

static void *run_locks(void *arg)
{
	for (;;) {
		hold_lock();
		pause_ms(1); /* or one of them might have it for ever */
	}
	return arg;
}

__attribute__((noinline)) void keep_some(unsigned i)
{
	free(kept[i % 1000]);
	kept[i % 1000] = malloc(100000);
}

static void *run_allocations(void *arg)
{
	for (unsigned i = 0;; i++) {
		keep_some(i);
		pause_ms(1);
	}
	return arg;
}

static void do_line(char *line)
{
	line[strcspn(line, "\n")] = '\0';
	if (strcmp(line, "close") == 0) {
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
	} else if (strncmp(line, "serve ", 6) == 0) {
		printf("%d\n", kiln_serve(line + 6));
	} else if (strcmp(line, "open") == 0) {
		while (dup(0) >= 0)
			;
	} else if (strcmp(line, "fork") == 0) {
		pid_t child = fork();

		if (child == 0) {
			pause_ms(3000);
			_exit(0);
		}
		printf("%d\n", (int)child);
	}
	fflush(stdout);
}

static void prepare(const char *how)
{
	struct rlimit few = { 16, 16 };

	if (strcmp(how, "few") == 0)
		setrlimit(RLIMIT_NOFILE, &few);
	if (strcmp(how, "daemon") == 0 && daemon(1, 1) != 0)
		_exit(1);
}

int main(int argc, char **argv)
{
	static void *(*const runs[])(void *) = { run_compute, run_locks, run_locks,
						 run_allocations };
	kiln_profile *p = kiln_profile_new("my.custom");
	char line[200];
	pthread_t thread;

	if (argc > 1)
		prepare(argv[1]);
	kiln_profile_add(p, &lock, 0);
	kiln_profile_add(p, line, 0);
	for (unsigned i = 0; i < sizeof(runs) / sizeof(*runs); i++)
		pthread_create(&thread, NULL, runs[i], NULL);
	while (fgets(line, sizeof(line), stdin))
		do_line(line);
	_exit(0);
}
