/* Waits of each kind, as often and as long as we say. Prints "wait SITE COUNT NANOSECONDS" as the
 * waiting thread saw it, and "hold SITE COUNT NANOSECONDS" for those that kept others waiting. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 20, HOLD_US = 3000 };
#define SITE __attribute__((noinline, noclone))

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier, meet;
static sem_t sem;
static mtx_t c11_mutex;
static cnd_t c11_cond;
static atomic_int word, is_set;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct timespec in_a_minute(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 60;
	return t;
}

/* A site waits in a function of its own. The asm keeps the call from becoming a jump. */
#define WAIT_SITE(name, before, call, after) \
	static int64_t name##_ns;            \
	SITE static void name(void)          \
	{                                    \
		int64_t start;               \
                                             \
		before;                      \
		start = now();               \
		call;                        \
		name##_ns += now() - start;  \
		after;                       \
		__asm__ volatile("");        \
	}

#define UNTIL (&(struct timespec){ in_a_minute().tv_sec, 0 })

WAIT_SITE(mutex_lock, , pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex))
WAIT_SITE(mutex_timedlock, , pthread_mutex_timedlock(&mutex, UNTIL), pthread_mutex_unlock(&mutex))
WAIT_SITE(mutex_clocklock, , pthread_mutex_clocklock(&mutex, CLOCK_REALTIME, UNTIL),
	  pthread_mutex_unlock(&mutex))
WAIT_SITE(read_lock, , pthread_rwlock_rdlock(&rwlock), pthread_rwlock_unlock(&rwlock))
WAIT_SITE(write_lock, , pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock))
WAIT_SITE(read_timedlock, , pthread_rwlock_timedrdlock(&rwlock, UNTIL),
	  pthread_rwlock_unlock(&rwlock))
WAIT_SITE(c11_lock, , mtx_lock(&c11_mutex), mtx_unlock(&c11_mutex))
WAIT_SITE(cond_wait, pthread_mutex_lock(&cond_mutex),
	  while (!is_set) pthread_cond_wait(&cond, &cond_mutex),
	  (is_set = 0, pthread_mutex_unlock(&cond_mutex)))
WAIT_SITE(cond_timedwait, pthread_mutex_lock(&cond_mutex),
	  while (!is_set) pthread_cond_timedwait(&cond, &cond_mutex, UNTIL),
	  (is_set = 0, pthread_mutex_unlock(&cond_mutex)))
WAIT_SITE(c11_cond_wait, mtx_lock(&c11_mutex), while (!is_set) cnd_wait(&c11_cond, &c11_mutex),
	  (is_set = 0, mtx_unlock(&c11_mutex)))
WAIT_SITE(semaphore_wait, , sem_wait(&sem), )
WAIT_SITE(semaphore_timedwait, , sem_timedwait(&sem, UNTIL), )
WAIT_SITE(barrier_wait, , pthread_barrier_wait(&barrier), )
WAIT_SITE(futex_wait, ,
	  while (!word) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0), word = 0)

/* What the other thread does: it lets one wait for HOLD_US. */
SITE static void release_mutex(void)
{
	pthread_mutex_lock(&mutex);
	pthread_barrier_wait(&meet);
	usleep(HOLD_US);
	pthread_mutex_unlock(&mutex);
	__asm__ volatile("");
}

SITE static void release_reader(void)
{
	pthread_rwlock_rdlock(&rwlock);
	pthread_barrier_wait(&meet);
	usleep(HOLD_US);
	pthread_rwlock_unlock(&rwlock);
	__asm__ volatile("");
}

SITE static void release_writer(void)
{
	pthread_rwlock_wrlock(&rwlock);
	pthread_barrier_wait(&meet);
	usleep(HOLD_US);
	pthread_rwlock_unlock(&rwlock);
	__asm__ volatile("");
}

SITE static void release_c11(void)
{
	mtx_lock(&c11_mutex);
	pthread_barrier_wait(&meet);
	usleep(HOLD_US);
	mtx_unlock(&c11_mutex);
	__asm__ volatile("");
}

static void set_cond(void)
{
	pthread_barrier_wait(&meet);
	usleep(HOLD_US);
	pthread_mutex_lock(&cond_mutex);
	is_set = 1;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&cond_mutex);
}

static void set_c11_cond(void)
{
	pthread_barrier_wait(&meet);
	usleep(HOLD_US);
	mtx_lock(&c11_mutex);
	is_set = 1;
	cnd_signal(&c11_cond);
	mtx_unlock(&c11_mutex);
}

static void post(void)
{
	pthread_barrier_wait(&meet);
	usleep(HOLD_US);
	sem_post(&sem);
}

static void come_late(void)
{
	pthread_barrier_wait(&meet);
	usleep(HOLD_US);
	pthread_barrier_wait(&barrier);
}

static void wake_futex(void)
{
	pthread_barrier_wait(&meet);
	usleep(HOLD_US);
	word = 1;
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static const struct {
	const char *name, *holder;
	void (*wait)(void), (*release)(void);
	int64_t *ns;
} kinds[] = {
#define KIND(name, holder, release)                      \
	{                                                \
#name, holder, name, release, &name##_ns \
	}
	KIND(mutex_lock, "release_mutex", release_mutex),
	KIND(mutex_timedlock, "release_mutex", release_mutex),
	KIND(mutex_clocklock, "release_mutex", release_mutex),
	KIND(read_lock, "release_writer", release_writer),
	KIND(write_lock, "release_reader", release_reader),
	KIND(read_timedlock, "release_writer", release_writer),
	KIND(c11_lock, "release_c11", release_c11),
	KIND(cond_wait, "", set_cond),
	KIND(cond_timedwait, "", set_cond),
	KIND(c11_cond_wait, "", set_c11_cond),
	KIND(semaphore_wait, "", post),
	KIND(semaphore_timedwait, "", post),
	KIND(barrier_wait, "", come_late),
	KIND(futex_wait, "", wake_futex),
};
enum { NKINDS = sizeof(kinds) / sizeof(*kinds) };

static void *release_all(void *nothing)
{
	for (int k = 0; k < NKINDS; k++)
		for (int i = 0; i < ROUNDS; i++) {
			kinds[k].release();
			pthread_barrier_wait(&meet);
		}
	return nothing;
}

static void *sleep_shortly(void *nothing)
{
	usleep(HOLD_US);
	return nothing;
}

static int sleep_shortly_c11(void *nothing)
{
	usleep(HOLD_US);
	return nothing != NULL;
}

SITE static int64_t join_threads(void)
{
	int64_t ns = 0, start;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, sleep_shortly, NULL);
		start = now();
		pthread_join(thread, NULL);
		ns += now() - start;
	}
	return ns;
}

SITE static int64_t join_c11_threads(void)
{
	int64_t ns = 0, start;

	for (int i = 0; i < ROUNDS; i++) {
		thrd_t thread;

		thrd_create(&thread, sleep_shortly_c11, NULL);
		start = now();
		thrd_join(thread, NULL);
		ns += now() - start;
	}
	return ns;
}

/* Nobody waits here: none of it may be recorded. */
SITE static void take_free_locks(void)
{
	for (int i = 0; i < 100000; i++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
		pthread_mutex_timedlock(&mutex, UNTIL);
		pthread_mutex_unlock(&mutex);
		pthread_rwlock_rdlock(&rwlock);
		pthread_rwlock_rdlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
		pthread_rwlock_wrlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
		sem_post(&sem);
		sem_wait(&sem);
		mtx_lock(&c11_mutex);
		mtx_unlock(&c11_mutex);
	}
}

int main(void)
{
	pthread_t other;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_barrier_init(&meet, NULL, 2);
	sem_init(&sem, 0, 0);
	mtx_init(&c11_mutex, mtx_plain);
	cnd_init(&c11_cond);
	pthread_create(&other, NULL, release_all, NULL);
	for (int k = 0; k < NKINDS; k++)
		for (int i = 0; i < ROUNDS; i++) {
			pthread_barrier_wait(&meet);
			kinds[k].wait();
			pthread_barrier_wait(&meet);
		}
	pthread_join(other, NULL);
	take_free_locks();
	for (int k = 0; k < NKINDS; k++)
		printf("wait %s %d %lld %s\n", kinds[k].name, ROUNDS, (long long)*kinds[k].ns,
		       kinds[k].holder);
	printf("wait join_threads %d %lld \n", ROUNDS, (long long)join_threads());
	printf("wait join_c11_threads %d %lld \n", ROUNDS, (long long)join_c11_threads());
	return 0;
}
