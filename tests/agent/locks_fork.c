/* Forks while others wait; the child's threads wait too. Its profile has no waits of the parent's.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln.h"

__attribute__((weak)) int kiln_write_profile(const char *name, int fd);
__attribute__((weak)) void kiln_set_mutex_fraction(int one_of);
__attribute__((weak)) void kiln_set_block_rate(int64_t nanoseconds);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return NULL;
}

__attribute__((noinline, noclone)) static void let_wait(pthread_mutex_t *lock)
{
	pthread_t threads[4];

	pthread_mutex_lock(lock);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, wait_for, lock);
	usleep(20000);
	pthread_mutex_unlock(lock);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	__asm__ volatile("");
}

__attribute__((noinline, noclone)) static int run_child(void)
{
	const char *path = getenv("CHILD_PROFILE");
	int fd = open(path ? path : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600), result = 0;

	if (kiln_set_mutex_fraction && getenv("KILN_BLOCK_RATE")) {
		kiln_set_mutex_fraction(1);
		kiln_set_block_rate(1);
	}
	let_wait(&other);
	if (kiln_write_profile && getenv("KILN_BLOCK_RATE"))
		result = kiln_write_profile("mutex", fd);
	close(fd);
	pthread_mutex_unlock(&mutex); /* as it was when we were forked */
	return result != 0;
}

int main(void)
{
	pthread_t threads[4];
	int status = 0;

	let_wait(&mutex);
	for (int round = 0; round < 10; round++) {
		pthread_mutex_lock(&mutex);
		for (int i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, wait_for, &mutex);
		usleep(1000);
		if (fork() == 0)
			_exit(run_child());
		pthread_mutex_unlock(&mutex);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		wait(&status);
		if (status)
			return printf("child: %x\n", status), 1;
	}
	return 0;
}
