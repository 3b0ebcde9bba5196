/* Return values of all kinds of mutexes and rwlocks, while others hold them or not. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failed;

#define EXPECT(call, result)                                                         \
	do {                                                                         \
		int got_ = (call);                                                   \
                                                                                     \
		if (got_ != (result)) {                                              \
			printf("%s: %s: %d, not %d\n", kind, #call, got_, (result)); \
			failed = 1;                                                  \
		}                                                                    \
	} while (0)

static struct timespec soon(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += 5000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static pthread_mutex_t *mutex;
static pthread_barrier_t meet;

static void *hold(void *nothing)
{
	pthread_mutex_lock(mutex);
	pthread_barrier_wait(&meet);
	pthread_barrier_wait(&meet);
	usleep(2000);
	pthread_mutex_unlock(mutex);
	return nothing;
}

static void *hold_and_end(void *nothing)
{
	pthread_mutex_lock(mutex);
	return nothing;
}

/* While another thread has it. */
static void check_held(const char *kind)
{
	struct timespec real = soon(CLOCK_REALTIME), monotonic = soon(CLOCK_MONOTONIC);
	pthread_t thread;

	pthread_create(&thread, NULL, hold, NULL);
	pthread_barrier_wait(&meet);
	EXPECT(pthread_mutex_trylock(mutex), EBUSY);
	EXPECT(pthread_mutex_timedlock(mutex, &real), ETIMEDOUT);
	if (strcmp(kind, "inherit") != 0) /* glibc: EINVAL there */
		EXPECT(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &monotonic), ETIMEDOUT);
	pthread_barrier_wait(&meet);
	EXPECT(pthread_mutex_lock(mutex), 0);
	EXPECT(pthread_mutex_unlock(mutex), 0);
	pthread_join(thread, NULL);
}

static void check_kind(const char *kind, const pthread_mutexattr_t *a, int again, int foreign)
{
	static pthread_mutex_t m;

	mutex = &m;
	EXPECT(pthread_mutex_init(mutex, a), 0);
	EXPECT(pthread_mutex_lock(mutex), 0);
	if (again != -1)
		EXPECT(pthread_mutex_lock(mutex), again);
	if (again == 0)
		EXPECT(pthread_mutex_unlock(mutex), 0);
	EXPECT(pthread_mutex_unlock(mutex), 0);
	if (foreign != -1)
		EXPECT(pthread_mutex_unlock(mutex), foreign);
	check_held(kind);
	EXPECT(pthread_mutex_destroy(mutex), 0);
}

static void check_types(void)
{
	static const struct {
		const char *name;
		int type, again, foreign;
	} types[] = { { "normal", PTHREAD_MUTEX_NORMAL, -1, -1 },
		      { "recursive", PTHREAD_MUTEX_RECURSIVE, 0, EPERM },
		      { "errorcheck", PTHREAD_MUTEX_ERRORCHECK, EDEADLK, EPERM },
		      { "adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, -1, -1 } };

	for (int i = 0; i < 4; i++) {
		pthread_mutexattr_t a;

		pthread_mutexattr_init(&a);
		pthread_mutexattr_settype(&a, types[i].type);
		check_kind(types[i].name, &a, types[i].again, types[i].foreign);
		pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
		check_kind("inherit", &a, types[i].again, types[i].foreign);
		pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_NONE);
		pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
		check_kind("robust", &a, types[i].again, types[i].foreign);
		pthread_mutexattr_destroy(&a);
	}
}

static void check_robust(void)
{
	const char *kind = "robust, its holder dead";
	pthread_mutexattr_t a;
	pthread_t thread;
	static pthread_mutex_t m;

	mutex = &m;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	for (int is_mended = 0; is_mended < 2; is_mended++) {
		pthread_mutex_init(mutex, &a);
		pthread_create(&thread, NULL, hold_and_end, NULL);
		pthread_join(thread, NULL);
		EXPECT(pthread_mutex_lock(mutex), EOWNERDEAD);
		if (is_mended)
			EXPECT(pthread_mutex_consistent(mutex), 0);
		EXPECT(pthread_mutex_unlock(mutex), 0);
		EXPECT(pthread_mutex_lock(mutex), is_mended ? 0 : ENOTRECOVERABLE);
		if (is_mended)
			EXPECT(pthread_mutex_unlock(mutex), 0);
		pthread_mutex_destroy(mutex);
	}
}

static void check_shared(void)
{
	const char *kind = "shared by processes";
	pthread_mutexattr_t a;
	int status;

	mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(mutex, &a);
	EXPECT(pthread_mutex_lock(mutex), 0);
	if (fork() == 0) {
		EXPECT(pthread_mutex_lock(mutex), 0);
		EXPECT(pthread_mutex_unlock(mutex), 0);
		_exit(failed);
	}
	usleep(5000);
	EXPECT(pthread_mutex_unlock(mutex), 0);
	wait(&status);
	EXPECT(status, 0);
}

static void *read_lock_held(void *lock)
{
	const char *kind = "rwlock that a writer has";
	struct timespec real = soon(CLOCK_REALTIME), monotonic = soon(CLOCK_MONOTONIC);

	EXPECT(pthread_rwlock_tryrdlock(lock), EBUSY);
	EXPECT(pthread_rwlock_timedrdlock(lock, &real), ETIMEDOUT);
	EXPECT(pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &monotonic), ETIMEDOUT);
	EXPECT(pthread_rwlock_timedwrlock(lock, &real), ETIMEDOUT);
	EXPECT(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &monotonic), ETIMEDOUT);
	pthread_barrier_wait(&meet);
	EXPECT(pthread_rwlock_rdlock(lock), 0);
	EXPECT(pthread_rwlock_unlock(lock), 0);
	return NULL;
}

static void check_rwlock(void)
{
	const char *kind = "rwlock";
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	pthread_t thread;

	EXPECT(pthread_rwlock_wrlock(&lock), 0);
	EXPECT(pthread_rwlock_wrlock(&lock), EDEADLK);
	EXPECT(pthread_rwlock_rdlock(&lock), EDEADLK);
	pthread_create(&thread, NULL, read_lock_held, &lock);
	pthread_barrier_wait(&meet);
	usleep(2000);
	EXPECT(pthread_rwlock_unlock(&lock), 0);
	pthread_join(thread, NULL);
	EXPECT(pthread_rwlock_rdlock(&lock), 0);
	EXPECT(pthread_rwlock_rdlock(&lock), 0);
	EXPECT(pthread_rwlock_unlock(&lock), 0);
	EXPECT(pthread_rwlock_unlock(&lock), 0);
}

static void check_join(void)
{
	const char *kind = "join";
	struct timespec real = soon(CLOCK_REALTIME);
	pthread_t thread;
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

	mutex = &m;
	EXPECT(pthread_join(pthread_self(), NULL), EDEADLK);
	pthread_create(&thread, NULL, hold, NULL);
	EXPECT(pthread_tryjoin_np(thread, NULL), EBUSY);
	EXPECT(pthread_timedjoin_np(thread, NULL, &real), ETIMEDOUT);
	pthread_barrier_wait(&meet);
	pthread_barrier_wait(&meet);
	EXPECT(pthread_join(thread, NULL), 0);
}

int main(void)
{
	pthread_barrier_init(&meet, NULL, 2);
	check_types();
	check_robust();
	check_shared();
	check_rwlock();
	check_join();
	return failed;
}
