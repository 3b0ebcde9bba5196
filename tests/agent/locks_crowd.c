/* One holder keeps several waiting at once, for each kind of lock and of waiter. Prints "hold SITE
 * NANOSECONDS": what those who waited for that unlock have seen together. Whoever gets the lock
 * gives it back at once, so that nobody waits for anybody else. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 5, WAITERS = 4, HOLD_US = 20000 };
#define SITE __attribute__((noinline, noclone))

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_llong waited_ns;
static atomic_int nready;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#define WAITER(name, take, give)                             \
	static void *name(void *nothing)                     \
	{                                                    \
		int64_t start;                               \
                                                             \
		atomic_fetch_add(&nready, 1);                \
		start = now();                               \
		take;                                        \
		atomic_fetch_add(&waited_ns, now() - start); \
		give;                                        \
		return nothing;                              \
	}
WAITER(read_it, pthread_rwlock_rdlock(&rwlock), pthread_rwlock_unlock(&rwlock))
WAITER(write_it, pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock))
WAITER(lock_it, pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex))

/* The asm keeps the call from becoming a jump. */
#define HOLDER(name, take, give)       \
	static void name##_takes(void) \
	{                              \
		take;                  \
	}                              \
	SITE static void name(void)    \
	{                              \
		give;                  \
		__asm__ volatile("");  \
	}
HOLDER(writer_before_readers, pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock))
HOLDER(writer_before_writers, pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock))
HOLDER(reader_before_writers, pthread_rwlock_rdlock(&rwlock), pthread_rwlock_unlock(&rwlock))
HOLDER(mutex_before_others, pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex))

static void hold(void (*takes)(void), void (*gives)(void), void *(*waiter)(void *))
{
	pthread_t threads[WAITERS];

	atomic_store(&nready, 0);
	takes();
	for (int i = 0; i < WAITERS; i++)
		pthread_create(&threads[i], NULL, waiter, NULL);
	while (atomic_load(&nready) < WAITERS)
		usleep(1000);
	usleep(HOLD_US);
	gives();
	for (int i = 0; i < WAITERS; i++)
		pthread_join(threads[i], NULL);
}

#define CROWD(name, waiter)                       \
	atomic_store(&waited_ns, 0);              \
	for (int i = 0; i < ROUNDS; i++)          \
		hold(name##_takes, name, waiter); \
	printf("hold " #name " %lld\n", (long long)atomic_load(&waited_ns))

int main(void)
{
	CROWD(writer_before_readers, read_it);
	CROWD(writer_before_writers, write_it);
	CROWD(reader_before_writers, write_it);
	CROWD(mutex_before_others, lock_it);
	return 0;
}
