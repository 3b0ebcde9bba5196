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
#include "agent/plt.h"
#include "agent/real.h"
#include "agent/wait.h"
#include "kiln.h"

#define COLD __attribute__((noinline, cold))
#define is_likely(x) __builtin_expect(!!(x), 1)

enum { SECOND = 1000000000 };

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
	MUTEX_ROBUST = 16,
	MUTEX_PROTECT = 64, /* has a ceiling of priorities */
	CEILING_BITS = 19   /* of its lock word, below the ceiling */
};

static inline int lock_word(const pthread_mutex_t *m)
{
	return __atomic_load_n(&m->__data.__lock, __ATOMIC_RELAXED);
}

/* In a lock word 1 is held, 2 is held and awaited; or it is the id of the thread that holds it, and
 * a bit if it is awaited, or if who held it has died. */
static bool is_free(const pthread_mutex_t *m)
{
	int word = lock_word(m);

	if (m->__data.__kind & MUTEX_PROTECT)
		word &= (1 << CEILING_BITS) - 1;
	else if (m->__data.__kind & MUTEX_ROBUST)
		word &= FUTEX_TID_MASK;
	return word == 0;
}

static bool is_mine(const pthread_mutex_t *m)
{
	return (m->__data.__kind & MUTEX_TYPE) != 0 && m->__data.__owner == (int)local_tid();
}

static struct contention mutex_contention_begins(const pthread_mutex_t *m)
{
	if (!is_watched() || local.inside || is_free(m) || is_mine(m))
		return (struct contention){ 0 };
	return contention_begins_with_holder(m);
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
	struct contention c = mutex_contention_begins(m);
	int result = REAL_CALL(pthread_mutex_lock)(m);

	contention_ends(&c, "mutex", was_waited(result));
	return result;
}

/* What is looked at is written next. To have its line of cache for reading first would mean to ask
 * other cores for it twice, and be later at the lock than without us. */
static inline void expect_to_write(const void *p)
{
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
}

static int lock_watched(pthread_mutex_t *m)
{
	__typeof__(&pthread_mutex_lock) real_lock = REAL_KNOWN(pthread_mutex_lock);

	expect_to_write(&m->__data.__lock);
	if (is_likely(real_lock && lock_word(m) == 0))
		return real_lock(m);
	return lock_slowly(m);
}

KILN_API int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *until)
{
	struct contention c = mutex_contention_begins(m);
	int result = REAL_CALL(pthread_mutex_timedlock)(m, until);
	contention_ends(&c, "mutex", was_waited(result));
	return result;
}

KILN_API int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock,
				     const struct timespec *until)
{
	struct contention c = mutex_contention_begins(m);
	int result = REAL_CALL(pthread_mutex_clocklock)(m, clock, until);
	contention_ends(&c, "mutex", was_waited(result));
	return result;
}

static COLD int unlock_slowly(pthread_mutex_t *m)
{
	struct charge owed = mutex_releases(m);
	int result = REAL_CALL(pthread_mutex_unlock)(m);

	if (result == 0)
		charge_holder(&owed);
	return result;
}

static int unlock_watched(pthread_mutex_t *m)
{
	__typeof__(&pthread_mutex_unlock) real_unlock = REAL_KNOWN(pthread_mutex_unlock);

	if (is_likely(real_unlock && is_not_awaited(m)))
		return real_unlock(m);
	return unlock_slowly(m);
}

/* Programs do little else so often: while nobody wants to know, a jump is all it costs, and what
 * the program itself calls is not even that. */
static struct way {
	const char *name;
	_Atomic(int (*)(pthread_mutex_t *m)) to;
	atomic_uintptr_t *slot; /* NULL: nothing is put there */
} lock_way = { .name = "pthread_mutex_lock", .to = lock_watched },
  unlock_way = { .name = "pthread_mutex_unlock", .to = unlock_watched };

KILN_API int pthread_mutex_lock(pthread_mutex_t *m)
{
	return atomic_load_explicit(&lock_way.to, memory_order_relaxed)(m);
}

KILN_API int pthread_mutex_unlock(pthread_mutex_t *m)
{
	return atomic_load_explicit(&unlock_way.to, memory_order_relaxed)(m);
}

/* These two, whoever else has functions of their names. */
#define HOOK(name) __attribute__((alias(#name), visibility("hidden"), nothrow, nonnull))
int lock_hook(pthread_mutex_t *m) HOOK(pthread_mutex_lock);
int unlock_hook(pthread_mutex_t *m) HOOK(pthread_mutex_unlock);

void lock_hooks_find_calls(void)
{
	lock_way.slot = plt_find(lock_way.name, (uintptr_t)lock_hook);
	unlock_way.slot = plt_find(unlock_way.name, (uintptr_t)unlock_hook);
}

/* The loader may write the hook's address into the slot meanwhile, which is always right. */
static void choose(struct way *w, int (*to)(pthread_mutex_t *m), int (*called)(pthread_mutex_t *m))
{
	atomic_store_explicit(&w->to, to, memory_order_relaxed);
	if (!w->slot || plt_replace(w->slot, (uintptr_t)called))
		return;
	w->slot = NULL;
	if (to != called)
		agent_say("the program has protected the addresses of what it calls: its own calls "
			  "of %s are not seen; set KILN_MUTEX_FRACTION=1 when it starts, and they "
			  "are",
			  w->name);
}

void lock_hooks_choose(void)
{
	__typeof__(&pthread_mutex_lock) lock = REAL_CALL(pthread_mutex_lock);
	__typeof__(&pthread_mutex_unlock) unlock = REAL_CALL(pthread_mutex_unlock);

	if (is_watched())
		choose(&lock_way, lock_watched, lock_hook);
	else
		choose(&lock_way, lock, lock);
	if (agent_is_on(ON_MUTEX))
		choose(&unlock_way, unlock_watched, unlock_hook);
	else
		choose(&unlock_way, unlock, unlock);
}

/* C11's are the same in other words; libc does not call the functions above for them. */

static pthread_mutex_t *mutex_of(mtx_t *m)
{
	return (pthread_mutex_t *)m;
}

static COLD int c11_lock_slowly(mtx_t *m)
{
	struct contention c = mutex_contention_begins(mutex_of(m));
	int result = REAL_CALL(mtx_lock)(m);

	contention_ends(&c, "mutex", result == thrd_success);
	return result;
}

KILN_API int mtx_lock(mtx_t *m)
{
	if (is_likely(!is_watched() || lock_word(mutex_of(m)) == 0))
		return REAL_CALL(mtx_lock)(m);
	return c11_lock_slowly(m);
}

KILN_API int mtx_timedlock(mtx_t *m, const struct timespec *until)
{
	struct contention c = mutex_contention_begins(mutex_of(m));
	int result = REAL_CALL(mtx_timedlock)(m, until);
	contention_ends(&c, "mutex", result == thrd_success || result == thrd_timedout);
	return result;
}

static COLD int c11_unlock_slowly(mtx_t *m)
{
	struct charge owed = mutex_releases(mutex_of(m));
	int result = REAL_CALL(mtx_unlock)(m);

	if (result == thrd_success)
		charge_holder(&owed);
	return result;
}

KILN_API int mtx_unlock(mtx_t *m)
{
	if (is_likely(!agent_is_on(ON_MUTEX) || is_not_awaited(mutex_of(m))))
		return REAL_CALL(mtx_unlock)(m);
	return c11_unlock_slowly(m);
}

/* ---- locks for readers and writers */

/* glibc: the first word of one. Readers are counted above these bits. */
enum { WRITE_PHASE = 1, WRITE_LOCKED = 2, READER_BITS = 3 };

static inline bool is_read_free(const pthread_rwlock_t *l)
{
	unsigned word = __atomic_load_n(&l->__data.__readers, __ATOMIC_RELAXED);
	unsigned held = WRITE_LOCKED;

	/* A writer that waits for readers stops others only if it is preferred. */
	if (l->__data.__flags == PTHREAD_RWLOCK_PREFER_READER_NP)
		held |= WRITE_PHASE;
	return (word & held) != held;
}

static inline bool is_write_free(const pthread_rwlock_t *l)
{
	unsigned word = __atomic_load_n(&l->__data.__readers, __ATOMIC_RELAXED);

	return (word & WRITE_LOCKED) == 0 && word >> READER_BITS == 0;
}

static struct contention rwlock_contention_begins(const pthread_rwlock_t *l)
{
	struct contention none = { 0 };

	return local.inside ? none : contention_begins_with_holder(l);
}

/* `name` with what it is given, for a lock `l` that is free if `is_free` says so. */
#define RWLOCK_HOOK(name, is_free, what, parameters, ...)          \
	static COLD int name##_slowly parameters                   \
	{                                                          \
		struct contention c = rwlock_contention_begins(l); \
		int result = REAL_CALL(name)(__VA_ARGS__);         \
                                                                   \
		contention_ends(&c, what, was_waited(result));     \
		return result;                                     \
	}                                                          \
	KILN_API int name parameters                               \
	{                                                          \
		if (is_likely(!is_watched() || is_free(l)))        \
			return REAL_CALL(name)(__VA_ARGS__);       \
		return name##_slowly(__VA_ARGS__);                 \
	}

RWLOCK_HOOK(pthread_rwlock_rdlock, is_read_free, "rwlock read", (pthread_rwlock_t * l), l)
RWLOCK_HOOK(pthread_rwlock_wrlock, is_write_free, "rwlock write", (pthread_rwlock_t * l), l)
RWLOCK_HOOK(pthread_rwlock_timedrdlock, is_read_free, "rwlock read",
	    (pthread_rwlock_t * l, const struct timespec *until), l, until)
RWLOCK_HOOK(pthread_rwlock_timedwrlock, is_write_free, "rwlock write",
	    (pthread_rwlock_t * l, const struct timespec *until), l, until)
RWLOCK_HOOK(pthread_rwlock_clockrdlock, is_read_free, "rwlock read",
	    (pthread_rwlock_t * l, clockid_t clock, const struct timespec *until), l, clock, until)
RWLOCK_HOOK(pthread_rwlock_clockwrlock, is_write_free, "rwlock write",
	    (pthread_rwlock_t * l, clockid_t clock, const struct timespec *until), l, clock, until)

/* Of readers only the last does. Those who wait for a writer are counted, too. */
static bool lets_somebody_in(const pthread_rwlock_t *l)
{
	return l->__data.__cur_writer || l->__data.__readers >> READER_BITS <= 1;
}

static COLD int rwlock_unlock_slowly(pthread_rwlock_t *l)
{
	struct charge owed = { 0 };
	int result;

	if (lets_somebody_in(l))
		owed = holder_releases(l);
	result = REAL_CALL(pthread_rwlock_unlock)(l);
	if (result == 0)
		charge_holder(&owed);
	return result;
}

KILN_API int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
	if (is_likely(!agent_is_on(ON_MUTEX)))
		return REAL_CALL(pthread_rwlock_unlock)(l);
	return rwlock_unlock_slowly(l);
}

/* ---- conditions: the wait is one, and lets others into the mutex */

static struct contention cond_contention_begins(const void *cond, const pthread_mutex_t *m)
{
	struct charge owed = { 0 };

	if (local.inside)
		return (struct contention){ 0 };
	if (agent_is_on(ON_MUTEX) && !is_not_awaited(m))
		owed = mutex_releases(m);
	charge_holder(&owed);
	return contention_begins(cond);
}

KILN_API int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *m)
{
	struct contention c;
	int result;

	if (!is_watched())
		return REAL_CALL(pthread_cond_wait)(cond, m);
	c = cond_contention_begins(cond, m);
	result = REAL_CALL(pthread_cond_wait)(cond, m);
	contention_ends(&c, "cond", was_waited(result));
	return result;
}

KILN_API int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *m,
				    const struct timespec *until)
{
	struct contention c;
	int result;

	if (!is_watched())
		return REAL_CALL(pthread_cond_timedwait)(cond, m, until);
	c = cond_contention_begins(cond, m);
	result = REAL_CALL(pthread_cond_timedwait)(cond, m, until);
	contention_ends(&c, "cond", was_waited(result));
	return result;
}

KILN_API int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *m, clockid_t clock,
				    const struct timespec *until)
{
	struct contention c;
	int result;

	if (!is_watched())
		return REAL_CALL(pthread_cond_clockwait)(cond, m, clock, until);
	c = cond_contention_begins(cond, m);
	result = REAL_CALL(pthread_cond_clockwait)(cond, m, clock, until);
	contention_ends(&c, "cond", was_waited(result));
	return result;
}

KILN_API int cnd_wait(cnd_t *cond, mtx_t *m)
{
	struct contention c;
	int result;

	if (!is_watched())
		return REAL_CALL(cnd_wait)(cond, m);
	c = cond_contention_begins(cond, mutex_of(m));
	result = REAL_CALL(cnd_wait)(cond, m);
	contention_ends(&c, "cond", result == thrd_success);
	return result;
}

KILN_API int cnd_timedwait(cnd_t *cond, mtx_t *m, const struct timespec *until)
{
	struct contention c;
	int result;

	if (!is_watched())
		return REAL_CALL(cnd_timedwait)(cond, m, until);
	c = cond_contention_begins(cond, mutex_of(m));
	result = REAL_CALL(cnd_timedwait)(cond, m, until);
	contention_ends(&c, "cond", result == thrd_success || result == thrd_timedout);
	return result;
}

/* ---- semaphores */

static bool was_waited_errno(int result)
{
	return result == 0 || errno == ETIMEDOUT;
}

static inline bool is_available(const sem_t *sem)
{
	const unsigned *value = (const unsigned *)sem; /* glibc: its value is the first word */

	return __atomic_load_n(value, __ATOMIC_RELAXED) > 0;
}

static struct contention sem_contention_begins(const sem_t *sem)
{
	if (!is_watched() || is_available(sem))
		return (struct contention){ 0 };
	return contention_begins(sem);
}

static COLD int sem_wait_slowly(sem_t *sem)
{
	struct contention c = contention_begins(sem);
	int result = REAL_CALL(sem_wait)(sem);

	contention_ends(&c, "semaphore", was_waited_errno(result));
	return result;
}

KILN_API int sem_wait(sem_t *sem)
{
	if (is_likely(!is_watched() || is_available(sem)))
		return REAL_CALL(sem_wait)(sem);
	return sem_wait_slowly(sem);
}

KILN_API int sem_timedwait(sem_t *sem, const struct timespec *until)
{
	struct contention c = sem_contention_begins(sem);
	struct wait w = wait_begin(false);
	int result;

	while ((result = REAL_CALL(sem_timedwait)(sem, until)) == -1 && wait_goes_on(&w))
		;
	contention_ends(&c, "semaphore", was_waited_errno(result));
	return result;
}

KILN_API int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until)
{
	struct contention c = sem_contention_begins(sem);
	struct wait w = wait_begin(false);
	int result;

	while ((result = REAL_CALL(sem_clockwait)(sem, clock, until)) == -1 && wait_goes_on(&w))
		;
	contention_ends(&c, "semaphore", was_waited_errno(result));
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
	struct contention c = { 0 };
	int result;

	if (!is_watched() || is_last(b))
		return REAL_CALL(pthread_barrier_wait)(b);
	c = contention_begins(b);
	result = REAL_CALL(pthread_barrier_wait)(b);
	contention_ends(&c, "barrier", result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
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
	struct contention c;
	int result;

	if (!is_watched() || local.inside)
		return REAL_CALL(pthread_join)(thread, value);
	if (has_ended(thread, value, &result))
		return result;
	c = contention_begins((const void *)thread);
	result = REAL_CALL(pthread_join)(thread, value);
	contention_ends(&c, "join", was_waited(result));
	return result;
}

KILN_API int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until)
{
	struct contention c;
	int result;

	if (!is_watched() || local.inside)
		return REAL_CALL(pthread_timedjoin_np)(thread, value, until);
	c = contention_begins((const void *)thread);
	result = REAL_CALL(pthread_timedjoin_np)(thread, value, until);
	contention_ends(&c, "join", was_waited(result));
	return result;
}

KILN_API int pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock,
				  const struct timespec *until)
{
	struct contention c;
	int result;

	if (!is_watched() || local.inside)
		return REAL_CALL(pthread_clockjoin_np)(thread, value, clock, until);
	c = contention_begins((const void *)thread);
	result = REAL_CALL(pthread_clockjoin_np)(thread, value, clock, until);
	contention_ends(&c, "join", was_waited(result));
	return result;
}

KILN_API int thrd_join(thrd_t thread, int *value)
{
	struct contention c;
	int result;

	if (!is_watched() || local.inside)
		return REAL_CALL(thrd_join)(thread, value);
	c = contention_begins((const void *)thread);
	result = REAL_CALL(thrd_join)(thread, value);
	contention_ends(&c, "join", result == thrd_success);
	return result;
}

/* ---- futexes: what std::atomic::wait, Rust and abseil build upon */

typedef long syscall_function(long, long, long, long, long, long, long);

/* Arguments were ints to the caller: the upper half of what they came in is anything. */
static int futex_command(long operation)
{
	return (int)operation & FUTEX_CMD_MASK;
}

static bool is_futex_wait(long operation)
{
	switch (futex_command(operation)) {
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

/* Of all those one alone has a timeout that is not a point in time. */
static const struct timespec *shorten(struct timespec *left, const struct timespec *total,
				      const struct wait *w)
{
	int64_t ns = wait_left(w, (int64_t)total->tv_sec * SECOND + total->tv_nsec);

	*left = (struct timespec){ ns / SECOND, ns % SECOND };
	return left;
}

static long futex_wait(syscall_function *real_one, long word, long operation, long value,
		       long timeout, long word2, long value3)
{
	bool is_relative = timeout && futex_command(operation) == FUTEX_WAIT;
	const struct timespec *total = (const struct timespec *)timeout;
	struct timespec left;
	struct contention c = { 0 };
	struct wait w = wait_begin(is_relative);
	long result;

	if (is_watched())
		c = contention_begins((const void *)word);
	for (;;) {
		result = real_one(SYS_futex, word, operation, value, timeout, word2, value3);
		if (result != -1 || !wait_goes_on(&w))
			break;
		if (is_relative)
			timeout = (long)shorten(&left, total, &w);
	}
	contention_ends(&c, "futex", result == 0 || errno == ETIMEDOUT || errno == EINTR);
	return result;
}

#ifdef __clang__
#define NO_TAIL_CALLS __attribute__((disable_tail_calls))
#else
#define NO_TAIL_CALLS __attribute__((optimize("no-optimize-sibling-calls")))
#endif

/* A copy of the last argument is passed on. Were it left to the compiler to write it back where it
 * came from, that would be a variable of whoever gave fewer arguments. */
NO_TAIL_CALLS __attribute__((used)) static long syscall_slowly(long number, long a, long b, long c,
							       long d, long e, long f)
{
	syscall_function *real_one = __extension__(syscall_function *)(void *) REAL_CALL(syscall);

	if (number == SYS_futex && !local.inside && is_futex_wait(b))
		return futex_wait(real_one, a, b, c, d, e, f);
	return real_one(number, a, b, c, d, e, f);
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
