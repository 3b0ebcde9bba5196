/* heap_fork.c - forks while other threads allocate: children allocate too, and end well. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, CHILDREN = 60, BLOCKS = 500 };

static atomic_bool is_done;
static void *before[BLOCKS];

static void *run(void *nothing)
{
	void *p[16] = { 0 };

	for (unsigned i = 0; !atomic_load(&is_done); i++) {
		free(p[i % 16]);
		p[i % 16] = malloc(i % 3000);
	}
	for (int i = 0; i < 16; i++)
		free(p[i]);
	return nothing;
}

/* What it got from its parent it may free. */
static void child(void)
{
	for (int i = 0; i < BLOCKS; i++)
		free(before[i]);
	for (int i = 0; i < BLOCKS; i++)
		before[i] = realloc(malloc(100), 1000);
	_exit(7);
}

int main(void)
{
	pthread_t threads[THREADS];
	int good = 0;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < BLOCKS; i++)
		before[i] = malloc(500);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			child();
		if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		    WEXITSTATUS(status) == 7)
			good++;
	}
	atomic_store(&is_done, 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return good == CHILDREN ? 0 : 1;
}
