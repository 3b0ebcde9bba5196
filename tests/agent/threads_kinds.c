/* Threads of all kinds, each in a function of its own; then where they are goes to the file
 * argv[1]. With more arguments: so many threads that wait, and how long it took. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "kiln.h"

#define FUNCTION __attribute__((noinline, noclone)) static

static atomic_int ready;
static atomic_bool is_over;

FUNCTION void wait_in_pause(void)
{
	ready++;
	while (!is_over)
		pause();
	__asm__ volatile("");
}

FUNCTION void *posix_thread(void *name)
{
	prctl(PR_SET_NAME, name);
	kiln_label_set("work", "posix");
	wait_in_pause();
	return NULL;
}

FUNCTION int c11_thread(void *name)
{
	prctl(PR_SET_NAME, name);
	wait_in_pause();
	return 0;
}

FUNCTION void *busy_thread(void *name)
{
	volatile unsigned n = 0;

	prctl(PR_SET_NAME, name);
	ready++;
	while (!is_over)
		n++;
	return NULL;
}

FUNCTION void *deaf_thread(void *name)
{
	sigset_t all;
	struct timespec time = { 20, 0 };

	prctl(PR_SET_NAME, name);
	sigfillset(&all);
	syscall(14, SIG_SETMASK, &all, NULL, 8); /* rt_sigprocmask: not through libc */
	ready++;
	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
	return NULL;
}

/* No libc in it: it has no thread-local data of its own. */
FUNCTION int raw_thread(void *unused)
{
	(void)unused;
	ready++;
	for (;;)
		__asm__ volatile("syscall" : : "a"(34) : "rcx", "r11", "memory"); /* pause */
	return 0;
}

static int write_to(const char *path, const char *profile)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
	int failed = fd < 0 ? -1 : kiln_write_profile(profile, fd);

	close(fd);
	return failed;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void start(pthread_t *t, size_t stack, void *(*run)(void *), const char *name)
{
	pthread_attr_t a;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, stack);
	if (pthread_create(t, &a, run, (void *)name)) {
		perror("pthread_create");
		exit(2);
	}
}

static int many(int n, const char *path)
{
	double begun, took = 1e9;
	pthread_t t;

	for (int i = 0; i < n; i++)
		start(&t, 32 << 10, posix_thread, "many");
	while (ready < n)
		usleep(1000);
	for (int i = 0; i < 3; i++) {
		begun = now();
		if (write_to(path, "threads"))
			return 1;
		took = now() - begun < took ? now() - begun : took;
	}
	printf("%d threads in %.1f ms\n", n, took * 1e3);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	static char stack[64 << 10] __attribute__((aligned(16)));
	pthread_t t;
	thrd_t c11;

	if (argc > 2)
		return many(atoi(argv[2]), argv[1]);
	start(&t, 1 << 20, posix_thread, "posix");
	start(&t, 16 << 10, posix_thread, "small");
	start(&t, 1 << 20, busy_thread, "busy");
	start(&t, 1 << 20, deaf_thread, "deaf");
	thrd_create(&c11, c11_thread, (void *)"c11");
	/* Shares thread-local data with this one, which the agent must survive. */
	clone(raw_thread, stack + sizeof(stack),
	      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
	      NULL);
	while (ready < 6)
		usleep(1000);
	if (write_to(argv[1], "threads"))
		return 1;
	if (getenv("SLEEP"))
		for (double until = now() + 10; now() < until;)
			usleep(1000);
	_exit(0);
}
