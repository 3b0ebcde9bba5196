/* hooks_lock.c - functions that wait for other threads.
 *
 * A lock that is free is taken as ever, and who gets it is not changed: hooks look at its state
 * before the real function is called, and never try first. What they look at is glibc's layout,
 * which is part of its ABI: locks are initialised at compile time and shared by processes. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>

#include "agent/agent.h"
#include "agent/local.h"
#include "agent/locks.h"
#include "agent/real.h"
#include "kiln.h"

#define COLD __attribute__((noinline, cold))
#define is_likely(x) __builtin_expect(!!(x), 1)

static inline bool is_watched(void)
{
	return agent_is_on(ON_MUTEX | ON_BLOCK | ON_TRACE);
}

static bool was_waited(int result)
{
	return result == 0 || result == EOWNERDEAD || result == ETIMEDOUT;
}

/* ---- mutexes */

enum {
	MUTEX_RECURSIVE = 1,
	MUTEX_ADAPTIVE = 3,
	MUTEX_TYPE = 3,
	MUTEX_CEILING =
		(int)0xfff80000 /* of the lock word, if it has one: not whether it is held */
};

static inline int lock_word(const pthread_mutex_t *m)
{
	return __atomic_load_n(&m->__data.__lock, __ATOMIC_RELAXED);
}

/* In a lock word 1 is held, 2 is held and awaited; or it is the id of the thread that holds it, and
 * a bit if it is awaited. */
static bool is_free(const pthread_mutex_t *m)
{
	bool has_ceiling = m->__data.__kind & 64; /* PTHREAD_PRIO_PROTECT */

	return (lock_word(m) & (has_ceiling ? ~MUTEX_CEILING : ~0)) == 0;
}

static bool is_mine(const pthread_mutex_t *m)
{
	return (m->__data.__kind & MUTEX_TYPE) != 0 && m->__data.__owner == (int)local_tid();
}

static struct wait mutex_wait_begins(const pthread_mutex_t *m)
{
	if (!is_watched() || local.inside || is_free(m) || is_mine(m))
		return (struct wait){ 0 };
	return wait_begins_for_holder(m);
}

/* Who spins for an adaptive one does not say so in the word. */
static inline bool is_not_awaited(const pthread_mutex_t *m)
{
	return lock_word(m) == 1 && (m->__data.__kind & MUTEX_TYPE) != MUTEX_ADAPTIVE;
}

static struct charge mutex_releases(const pthread_mutex_t *m)
{
	bool is_kept = (m->__data.__kind & MUTEX_TYPE) == MUTEX_RECURSIVE && m->__data.__count > 1;

	if (is_kept || !agent_is_on(ON_MUTEX))
		return (struct charge){ 0 };
	return holder_releases(m);
}

static COLD int lock_slowly(pthread_mutex_t *m)
{
	struct wait w = mutex_wait_begins(m);
	int result = REAL_CALL(pthread_mutex_lock)(m);

	wait_ends(&w, "mutex", was_waited(result));
	return result;
}

KILN_API int pthread_mutex_lock(pthread_mutex_t *m)
{
	__typeof__(&pthread_mutex_lock) real_lock = REAL_KNOWN(pthread_mutex_lock);

	if (is_likely(real_lock && (!is_watched() || lock_word(m) == 0)))
		return real_lock(m);
	return lock_slowly(m);
}

KILN_API int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *until)
{
	struct wait w = mutex_wait_begins(m);
	int result = REAL_CALL(pthread_mutex_timedlock)(m, until);
	wait_ends(&w, "mutex", was_waited(result));
	return result;
}

KILN_API int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock,
				     const struct timespec *until)
{
	struct wait w = mutex_wait_begins(m);
	int result = REAL_CALL(pthread_mutex_clocklock)(m, clock, until);
	wait_ends(&w, "mutex", was_waited(result));
	return result;
}

static COLD int unlock_slowly(pthread_mutex_t *m)
{
	struct charge c = mutex_releases(m);
	int result = REAL_CALL(pthread_mutex_unlock)(m);

	if (result == 0)
		charge_holder(&c);
	return result;
}

KILN_API int pthread_mutex_unlock(pthread_mutex_t *m)
{
	__typeof__(&pthread_mutex_unlock) real_unlock = REAL_KNOWN(pthread_mutex_unlock);

	if (is_likely(real_unlock && (!agent_is_on(ON_MUTEX) || is_not_awaited(m))))
		return real_unlock(m);
	return unlock_slowly(m);
}

/* C11's are the same in other words; libc does not call the functions above for them. */

static pthread_mutex_t *mutex_of(mtx_t *m)
{
	return (pthread_mutex_t *)m;
}

KILN_API int mtx_lock(mtx_t *m)
{
	struct wait w = { 0 };
	int result;

	if (is_watched() && lock_word(mutex_of(m)) != 0)
		w = mutex_wait_begins(mutex_of(m));
	result = REAL_CALL(mtx_lock)(m);
	wait_ends(&w, "mutex", result == thrd_success);
	return result;
}

KILN_API int mtx_timedlock(mtx_t *m, const struct timespec *until)
{
	struct wait w = mutex_wait_begins(mutex_of(m));
	int result = REAL_CALL(mtx_timedlock)(m, until);
	wait_ends(&w, "mutex", result == thrd_success || result == thrd_timedout);
	return result;
}

KILN_API int mtx_unlock(mtx_t *m)
{
	struct charge c = { 0 };
	int result;

	if (agent_is_on(ON_MUTEX) && !is_not_awaited(mutex_of(m)))
		c = mutex_releases(mutex_of(m));
	result = REAL_CALL(mtx_unlock)(m);
	if (result == thrd_success)
		charge_holder(&c);
	return result;
}

/* ---- locks for readers and writers */

/* glibc: the first word of one. Readers are counted above these bits. */
enum { WRITE_PHASE = 1, WRITE_LOCKED = 2, READER_BITS = 3 };

static struct wait read_wait_begins(const pthread_rwlock_t *l)
{
	unsigned word = __atomic_load_n(&l->__data.__readers, __ATOMIC_RELAXED);
	unsigned held = WRITE_LOCKED;

	/* A writer that waits for readers stops others only if it is preferred. */
	if (l->__data.__flags == PTHREAD_RWLOCK_PREFER_READER_NP)
		held |= WRITE_PHASE;
	if (local.inside || (word & held) != held)
		return (struct wait){ 0 };
	return wait_begins_for_holder(l);
}

static struct wait write_wait_begins(const pthread_rwlock_t *l)
{
	unsigned word = __atomic_load_n(&l->__data.__readers, __ATOMIC_RELAXED);

	if (local.inside || ((word & WRITE_LOCKED) == 0 && word >> READER_BITS == 0))
		return (struct wait){ 0 };
	return wait_begins_for_holder(l);
}

#define RWLOCK_HOOK(name, begins, what, parameters, ...) \
	KILN_API int name parameters                     \
	{                                                \
		struct wait w = { 0 };                   \
		int result;                              \
                                                         \
		if (is_watched())                        \
			w = begins(l);                   \
		result = REAL_CALL(name)(__VA_ARGS__);   \
		wait_ends(&w, what, was_waited(result)); \
		return result;                           \
	}

RWLOCK_HOOK(pthread_rwlock_rdlock, read_wait_begins, "rwlock read", (pthread_rwlock_t * l), l)
RWLOCK_HOOK(pthread_rwlock_wrlock, write_wait_begins, "rwlock write", (pthread_rwlock_t * l), l)
RWLOCK_HOOK(pthread_rwlock_timedrdlock, read_wait_begins, "rwlock read",
	    (pthread_rwlock_t * l, const struct timespec *until), l, until)
RWLOCK_HOOK(pthread_rwlock_timedwrlock, write_wait_begins, "rwlock write",
	    (pthread_rwlock_t * l, const struct timespec *until), l, until)
RWLOCK_HOOK(pthread_rwlock_clockrdlock, read_wait_begins, "rwlock read",
	    (pthread_rwlock_t * l, clockid_t clock, const struct timespec *until), l, clock, until)
RWLOCK_HOOK(pthread_rwlock_clockwrlock, write_wait_begins, "rwlock write",
	    (pthread_rwlock_t * l, clockid_t clock, const struct timespec *until), l, clock, until)

KILN_API int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
	struct charge c = { 0 };
	int result;

	/* Of readers only the last lets somebody in. */
	if (agent_is_on(ON_MUTEX) && l->__data.__readers >> READER_BITS <= 1)
		c = holder_releases(l);
	result = REAL_CALL(pthread_rwlock_unlock)(l);
	if (result == 0)
		charge_holder(&c);
	return result;
}

/* ---- conditions: the wait is one, and lets others into the mutex */

static struct wait cond_wait_begins(const void *cond, const pthread_mutex_t *m)
{
	struct charge c = { 0 };

	if (local.inside)
		return (struct wait){ 0 };
	if (agent_is_on(ON_MUTEX) && !is_not_awaited(m))
		c = mutex_releases(m);
	charge_holder(&c);
	return wait_begins(cond);
}

KILN_API int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *m)
{
	struct wait w;
	int result;

	if (!is_watched())
		return REAL_CALL(pthread_cond_wait)(cond, m);
	w = cond_wait_begins(cond, m);
	result = REAL_CALL(pthread_cond_wait)(cond, m);
	wait_ends(&w, "cond", was_waited(result));
	return result;
}

KILN_API int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *m,
				    const struct timespec *until)
{
	struct wait w;
	int result;

	if (!is_watched())
		return REAL_CALL(pthread_cond_timedwait)(cond, m, until);
	w = cond_wait_begins(cond, m);
	result = REAL_CALL(pthread_cond_timedwait)(cond, m, until);
	wait_ends(&w, "cond", was_waited(result));
	return result;
}

KILN_API int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *m, clockid_t clock,
				    const struct timespec *until)
{
	struct wait w;
	int result;

	if (!is_watched())
		return REAL_CALL(pthread_cond_clockwait)(cond, m, clock, until);
	w = cond_wait_begins(cond, m);
	result = REAL_CALL(pthread_cond_clockwait)(cond, m, clock, until);
	wait_ends(&w, "cond", was_waited(result));
	return result;
}

KILN_API int cnd_wait(cnd_t *cond, mtx_t *m)
{
	struct wait w;
	int result;

	if (!is_watched())
		return REAL_CALL(cnd_wait)(cond, m);
	w = cond_wait_begins(cond, mutex_of(m));
	result = REAL_CALL(cnd_wait)(cond, m);
	wait_ends(&w, "cond", result == thrd_success);
	return result;
}

KILN_API int cnd_timedwait(cnd_t *cond, mtx_t *m, const struct timespec *until)
{
	struct wait w;
	int result;

	if (!is_watched())
		return REAL_CALL(cnd_timedwait)(cond, m, until);
	w = cond_wait_begins(cond, mutex_of(m));
	result = REAL_CALL(cnd_timedwait)(cond, m, until);
	wait_ends(&w, "cond", result == thrd_success || result == thrd_timedout);
	return result;
}

/* ---- semaphores */

/* A call that our own signal has interrupted goes on, see hooks_wait.c. */
static bool was_interrupted_by_us(int result, uint32_t nsignals)
{
	return result == -1 && errno == EINTR && local.nsignals != nsignals;
}

static bool was_waited_errno(int result)
{
	return result == 0 || errno == ETIMEDOUT;
}

static struct wait sem_wait_begins(const sem_t *sem)
{
	const unsigned *value = (const unsigned *)sem; /* glibc: its value is the first word */

	if (!is_watched() || __atomic_load_n(value, __ATOMIC_RELAXED) > 0)
		return (struct wait){ 0 };
	return wait_begins(sem);
}

KILN_API int sem_wait(sem_t *sem)
{
	struct wait w = sem_wait_begins(sem);
	int result;

	if (!w.start)
		return REAL_CALL(sem_wait)(sem);
	result = REAL_CALL(sem_wait)(sem);
	wait_ends(&w, "semaphore", was_waited_errno(result));
	return result;
}

KILN_API int sem_timedwait(sem_t *sem, const struct timespec *until)
{
	struct wait w = sem_wait_begins(sem);
	uint32_t nsignals;
	int result;

	do {
		nsignals = local.nsignals;
		result = REAL_CALL(sem_timedwait)(sem, until);
	} while (was_interrupted_by_us(result, nsignals));
	wait_ends(&w, "semaphore", was_waited_errno(result));
	return result;
}

KILN_API int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until)
{
	struct wait w = sem_wait_begins(sem);
	uint32_t nsignals;
	int result;

	do {
		nsignals = local.nsignals;
		result = REAL_CALL(sem_clockwait)(sem, clock, until);
	} while (was_interrupted_by_us(result, nsignals));
	wait_ends(&w, "semaphore", was_waited_errno(result));
	return result;
}

/* ---- barriers */

/* glibc: who has come so far, and where the round began. The last to come does not wait. */
static bool is_last(const pthread_barrier_t *b)
{
	const unsigned *word = (const unsigned *)b;
	unsigned in = __atomic_load_n(&word[0], __ATOMIC_RELAXED);
	unsigned round = __atomic_load_n(&word[1], __ATOMIC_RELAXED), count = word[2];

	return in - round + 1 >= count;
}

KILN_API int pthread_barrier_wait(pthread_barrier_t *b)
{
	struct wait w = { 0 };
	int result;

	if (!is_watched() || is_last(b))
		return REAL_CALL(pthread_barrier_wait)(b);
	w = wait_begins(b);
	result = REAL_CALL(pthread_barrier_wait)(b);
	wait_ends(&w, "barrier", result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
	return result;
}

/* ---- ends of threads. Nobody else can be there first, so these may try before they wait. */

static bool has_ended(pthread_t thread, void **value, int *result)
{
	*result = REAL_CALL(pthread_tryjoin_np)(thread, value);
	return *result == 0;
}

KILN_API int pthread_join(pthread_t thread, void **value)
{
	struct wait w;
	int result;

	if (!is_watched() || local.inside)
		return REAL_CALL(pthread_join)(thread, value);
	if (has_ended(thread, value, &result))
		return result;
	w = wait_begins((const void *)thread);
	result = REAL_CALL(pthread_join)(thread, value);
	wait_ends(&w, "join", was_waited(result));
	return result;
}

KILN_API int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until)
{
	struct wait w;
	int result;

	if (!is_watched() || local.inside)
		return REAL_CALL(pthread_timedjoin_np)(thread, value, until);
	w = wait_begins((const void *)thread);
	result = REAL_CALL(pthread_timedjoin_np)(thread, value, until);
	wait_ends(&w, "join", was_waited(result));
	return result;
}

KILN_API int pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock,
				  const struct timespec *until)
{
	struct wait w;
	int result;

	if (!is_watched() || local.inside)
		return REAL_CALL(pthread_clockjoin_np)(thread, value, clock, until);
	w = wait_begins((const void *)thread);
	result = REAL_CALL(pthread_clockjoin_np)(thread, value, clock, until);
	wait_ends(&w, "join", was_waited(result));
	return result;
}

KILN_API int thrd_join(thrd_t thread, int *value)
{
	struct wait w;
	int result;

	if (!is_watched() || local.inside)
		return REAL_CALL(thrd_join)(thread, value);
	w = wait_begins((const void *)thread);
	result = REAL_CALL(thrd_join)(thread, value);
	wait_ends(&w, "join", result == thrd_success);
	return result;
}

/* ---- futexes: what std::atomic::wait, Rust and abseil build upon */

typedef long syscall_function(long, long, long, long, long, long, long);

static bool is_futex_wait(long operation)
{
	switch (operation & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		return true;
	default:
		return false;
	}
}

/* A copy of the last argument is passed on. Were it left to the compiler to write it back where it
 * came from, that would be a variable of whoever gave fewer arguments. */
__attribute__((used, optimize("no-optimize-sibling-calls"))) static long
syscall_slowly(long number, long a, long b, long c, long d, long e, long f)
{
	syscall_function *real_one = __extension__(syscall_function *)(void *) REAL_CALL(syscall);
	struct wait w = { 0 };
	long result;

	if (number == SYS_futex && is_watched() && is_futex_wait(b))
		w = wait_begins((const void *)a);
	result = real_one(number, a, b, c, d, e, f);
	wait_ends(&w, "futex", result == 0 || errno == ETIMEDOUT || errno == EINTR);
	return result;
}

/* All but futex calls is passed on in a jump, with all the arguments that there may be. */
__attribute__((naked)) KILN_API long syscall(__attribute__((unused)) long number, ...)
{
	__asm__("mov real+%c0(%%rip), %%rax\n\t"
		"cmp %1, %%rdi\n\t"
		"je 1f\n\t"
		"test %%rax, %%rax\n\t"
		"je 1f\n\t"
		"jmp *%%rax\n"
		"1:\tjmp syscall_slowly"
		:
		: "i"(offsetof(struct real, syscall_)), "i"(SYS_futex));
}
