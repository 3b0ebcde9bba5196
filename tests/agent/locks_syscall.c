/* syscall() with up to six arguments, its errors, and futexes with all that they return. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failed;

#define EXPECT(condition)                                                      \
	do {                                                                   \
		if (!(condition)) {                                            \
			printf("%s: errno %s\n", #condition, strerror(errno)); \
			failed = 1;                                            \
		}                                                              \
	} while (0)

static int word;

static void *wake_later(void *nothing)
{
	usleep(3000);
	__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &word, FUTEX_WAKE, 1);
	return nothing;
}

static void check_futex(void)
{
	struct timespec shortly = { 0, 2000000 }, until;
	pthread_t thread;

	errno = 0;
	EXPECT(syscall(SYS_futex, &word, FUTEX_WAIT, 5, NULL) == -1 && errno == EAGAIN);
	EXPECT(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &shortly) == -1 && errno == ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &until);
	EXPECT(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 0, &until, NULL,
		       FUTEX_BITSET_MATCH_ANY) == -1 &&
	       errno == ETIMEDOUT);
	/* The sixth: no bits are an error. */
	EXPECT(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 0, &until, NULL, 0) == -1 &&
	       errno == EINVAL);
	EXPECT(syscall(SYS_futex, NULL, FUTEX_WAIT, 0, NULL) == -1 && errno == EFAULT);
	EXPECT(syscall(SYS_futex, &word, FUTEX_WAKE, 1) == 0);
	pthread_create(&thread, NULL, wake_later, NULL);
	errno = 77;
	EXPECT(syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL) == 0 || errno == EAGAIN);
	pthread_join(thread, NULL);
}

/* One thread counts in a variable that may lie where a sixth argument would. A hook that writes it
 * back loses some. */
static void *count(void *counter)
{
	for (int i = 0; i < 2000000; i++)
		__atomic_add_fetch((long *)counter, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void check_stack(void)
{
	volatile long counters[4] = { 0 };
	pthread_t threads[4];
	int done = 0;

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, count, (void *)(uintptr_t)&counters[i]);
	while (!done) {
		syscall(SYS_getppid);
		syscall(SYS_futex, &word, FUTEX_WAKE, 1);
		done = 1;
		for (int i = 0; i < 4; i++)
			done &= counters[i] >= 1999000;
		if (pthread_tryjoin_np(threads[0], NULL) == 0) {
			threads[0] = 0;
			break;
		}
	}
	for (int i = 0; i < 4; i++)
		if (threads[i])
			pthread_join(threads[i], NULL);
	for (int i = 0; i < 4; i++)
		EXPECT(counters[i] == 2000000);
}

int main(void)
{
	long page;
	int status;

	errno = 0;
	page = syscall(SYS_mmap, NULL, 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1L, 0L);
	EXPECT(page != -1 && errno == 0);
	*(char *)page = 1;
	EXPECT(syscall(SYS_munmap, page, 4096L) == 0);
	EXPECT(syscall(SYS_close, -1) == -1 && errno == EBADF);
	errno = 5;
	EXPECT(syscall(SYS_getpid) == getpid() && errno == 5);
	if (syscall(SYS_fork) == 0)
		_exit(3);
	EXPECT(wait(&status) > 0 && WEXITSTATUS(status) == 3);
	check_futex();
	check_stack();
	return failed;
}
