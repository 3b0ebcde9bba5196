/* guest_errno.c - what the functions that the agent stands in front of leave in errno, and what
 * they return, with all of them sampled. */
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <threads.h>

#include "guest.h"

enum { MARK = 133 }; /* no call sets this one */

/* Also where it is not said: programs rely on what they see. */
#define SHOW(call)                                                            \
	do {                                                                  \
		long result_;                                                 \
		errno = MARK;                                                 \
		result_ = (long)(call);                                       \
		printf("%s: %ld, %s\n", #call, result_,                       \
		       errno == MARK ? "untouched" : strerrorname_np(errno)); \
	} while (0)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int memory(void)
{
	void *p = NULL, *q;

	SHOW((p = malloc(100)) != NULL);
	SHOW((p = realloc(p, 100000)) != NULL);
	SHOW((p = realloc(p, 10)) != NULL);
	SHOW((free(p), 0));
	SHOW((p = calloc(10, 10)) != NULL);
	SHOW((free(p), 0));
	SHOW((p = malloc(0)) != NULL);
	SHOW(realloc(p, 0) != NULL);
	SHOW(malloc(SIZE_MAX / 2) != NULL);
	SHOW(calloc(SIZE_MAX, 2) != NULL);
	SHOW((p = malloc(50)) != NULL);
	SHOW(realloc(p, SIZE_MAX / 2) != NULL);
	SHOW(reallocarray(p, SIZE_MAX, 2) != NULL);
	memset(p, 1, 50);
	SHOW((free(p), 0));
	SHOW(posix_memalign(&q, 3, 10));
	SHOW(posix_memalign(&q, 4096, SIZE_MAX / 2));
	SHOW(posix_memalign(&q, 4096, 10));
	CHECK(((uintptr_t)q & 4095) == 0);
	SHOW((free(q), 0));
	SHOW((q = aligned_alloc(256, 1024)) != NULL);
	CHECK(((uintptr_t)q & 255) == 0);
	SHOW(malloc_usable_size(q) >= 1024);
	SHOW((free(q), 0));
	SHOW((q = memalign(1 << 20, 100)) != NULL);
	CHECK(((uintptr_t)q & ((1 << 20) - 1)) == 0);
	free(q);
	SHOW((q = valloc(100)) != NULL);
	free(q);
	SHOW((q = pvalloc(100)) != NULL);
	CHECK(malloc_usable_size(q) >= 4096);
	free(q);
	SHOW((q = strdup("hello")) != NULL);
	free(q);
	SHOW((p = malloc(50 << 20)) != NULL);
	SHOW((free(p), 0)); /* by munmap */
	SHOW(malloc_trim(0) >= 0);
	return 0;
}

static sem_t is_held, is_tried;

static void *hold(void *argument)
{
	pthread_mutex_lock(&lock);
	sem_post(&is_held);
	sem_wait(&is_tried);
	nap(30);
	pthread_mutex_unlock(&lock);
	return argument;
}

static int locks(void)
{
	struct timespec past = { 1, 0 };
	pthread_mutexattr_t type;
	pthread_mutex_t checked, recursive;
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
	pthread_t thread;
	sem_t sem;
	mtx_t c11;

	sem_init(&sem, 0, 0);
	mtx_init(&c11, mtx_plain);
	sem_init(&is_held, 0, 0);
	sem_init(&is_tried, 0, 0);
	SHOW(pthread_create(&thread, NULL, hold, NULL));
	sem_wait(&is_held);
	SHOW(pthread_mutex_trylock(&lock));
	SHOW(pthread_mutex_timedlock(&lock, &past));
	SHOW(pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &past));
	sem_post(&is_tried);
	SHOW(pthread_mutex_lock(&lock));
	SHOW(pthread_cond_timedwait(&cond, &lock, &past));
	SHOW(pthread_mutex_unlock(&lock));
	SHOW(pthread_join(thread, NULL));
	pthread_mutexattr_init(&type);
	pthread_mutexattr_settype(&type, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&checked, &type);
	SHOW(pthread_mutex_lock(&checked));
	SHOW(pthread_mutex_lock(&checked));
	SHOW(pthread_mutex_unlock(&checked));
	SHOW(pthread_mutex_unlock(&checked));
	pthread_mutexattr_settype(&type, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&recursive, &type);
	SHOW(pthread_mutex_lock(&recursive));
	SHOW(pthread_mutex_lock(&recursive));
	SHOW(pthread_mutex_unlock(&recursive));
	SHOW(pthread_mutex_unlock(&recursive));
	SHOW(pthread_rwlock_wrlock(&rwlock));
	SHOW(pthread_rwlock_wrlock(&rwlock));
	SHOW(pthread_rwlock_timedrdlock(&rwlock, &past));
	SHOW(pthread_rwlock_unlock(&rwlock));
	SHOW(sem_timedwait(&sem, &past));
	SHOW(sem_trywait(&sem));
	SHOW(sem_post(&sem));
	SHOW(sem_wait(&sem));
	SHOW(mtx_lock(&c11));
	SHOW(mtx_unlock(&c11));
	SHOW(pthread_join(pthread_self(), NULL));
	return 0;
}

static int robust_status;

static void *die_with_lock(void *mutex)
{
	robust_status = pthread_mutex_lock(mutex);
	return NULL;
}

static int robust(void)
{
	pthread_mutexattr_t type;
	pthread_mutex_t mutex;
	pthread_t thread;

	pthread_mutexattr_init(&type);
	pthread_mutexattr_setrobust(&type, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setprotocol(&type, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&mutex, &type);
	pthread_create(&thread, NULL, die_with_lock, &mutex);
	pthread_join(thread, NULL);
	SHOW(pthread_mutex_lock(&mutex));
	SHOW(pthread_mutex_consistent(&mutex));
	SHOW(pthread_mutex_unlock(&mutex));
	SHOW(pthread_mutex_lock(&mutex));
	SHOW(pthread_mutex_unlock(&mutex));
	return robust_status;
}

static int calls(void)
{
	struct timespec moment = { 0, 1000000 }, bad = { 0, -1 };
	struct pollfd none = { -1, POLLIN, 0 };
	sigset_t set;
	char c;
	void *handle;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	SHOW(poll(&none, 1, 1));
	SHOW(poll((struct pollfd *)1, 1, 1));
	SHOW(nanosleep(&moment, NULL));
	SHOW(nanosleep(&bad, NULL));
	SHOW(clock_nanosleep(CLOCK_MONOTONIC, 0, &bad, NULL));
	SHOW(usleep(10));
	SHOW(sleep(0));
	SHOW(read(-1, &c, 1));
	SHOW(recv(-1, &c, 1, 0));
	SHOW(accept(-1, NULL, NULL));
	SHOW(connect(-1, NULL, 0));
	SHOW(sigtimedwait(&set, NULL, &moment));
	SHOW(sigaction(99, NULL, NULL));
	SHOW(signal(99, SIG_DFL) == SIG_ERR);
	SHOW(signal(SIGPROF, SIG_DFL) == SIG_DFL);
	SHOW((handle = dlopen("libm.so.6", RTLD_NOW)) != NULL);
	SHOW(handle && dlclose(handle) == 0);
	SHOW(setsid() > 0 || true);
	return 0;
}

static int forks(void)
{
	pid_t child;
	int status;

	errno = MARK;
	child = fork();
	if (!child)
		_exit(errno == MARK ? 0 : 1);
	printf("%s\n", errno == MARK ? "untouched" : strerrorname_np(errno));
	waitpid(child, &status, 0);
	printf("%d\n", WEXITSTATUS(status));
	return 0;
}

/* The signal itself: at any instruction. */
static int samples(void)
{
	int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 200000000;
	int nchanged = 0;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
		errno = MARK;
		for (int i = 0; i < 100000; i++)
			STAYS;
		nchanged += errno != MARK;
	}
	printf("changed %d times\n", nchanged);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct guest_case cases[] = {
		{ "memory", memory }, { "locks", locks }, { "robust", robust },
		{ "calls", calls },   { "forks", forks }, { "samples", samples },
		{ NULL, NULL },
	};

	return run_case(argc, argv, cases);
}
