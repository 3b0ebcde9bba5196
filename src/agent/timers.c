/* The kernel looks at such timers when it interrupts a thread anyway, 100 to 1000 times a second: a
 * signal stands for all ticks since the last one. What a thread used after that, until it ends, is
 * known from its clock.
 *
 * The first tick is at a random time, so that a thread that uses a tenth of a period is seen once
 * in ten times. Programs that start threads all the time have many that end long before that: where
 * others that started in the same function did, the timer is put off until the thread turns out to
 * be another kind. Nothing is lost by that, as ticks are told from the clock.
 */
#include "agent/timers.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/kernel.h"
#include "agent/local.h"
#include "agent/memory.h"
#include "agent/perf.h"
#include "agent/signal.h"
#include "agent/sort.h"
#include "agent/thread.h"

enum {
	SECOND = 1000000000,
	LOOK_NS = 250000000,	  /* for threads; each time costs as much as ten ticks do */
	LOOK_LATE_NS = 100000000, /* for timers that were put off, if some were lately */
	FEW_THREADS = 64,	  /* more are looked for less often */
	LIVES = 256,
	LIFE_DECAY = 128,
	/* Clocks differ by less than this part of a time. */
	CLOCKS_DIFFER = 64,
	UNSEEN_NS = 100000, /* what a thread uses before its first act; it is a tenth of that */
};

static struct lock lock;
static int64_t next_scan;
static atomic_bool takes_threads; /* those that start now get a timer */
static atomic_uint scan;	  /* odd while threads are looked for */
static atomic_uint nthreads;	  /* that had a timer */
static uint64_t first_chance;

/* What there is to say about a profile. */
static struct {
	uint32_t without_timer;
	int error;
	bool has_common_timer, had_no_common_timer;
} notes;

/* ---- timers by thread
 *
 * A thread of which we saw the start has the timer of its place (thread.h), and starts and ends it
 * by itself. Others have one of the second half, near where their id says, and get it from whoever
 * holds the lock: of its first ones, unless they are many, so that few pages are touched however
 * many come and go. Who takes the thread's id out of a timer ends it. */

enum { OTHERS = TIMERS_MAX / 2, FEW_OTHERS = 256, NEAR = 32 };

static struct cpu_timer *own_timer(const struct thread *thread)
{
	struct cpu_timer *all = atomic_load_explicit(&cpu_timers, memory_order_acquire);

	return all && thread && thread->number <= OTHERS ? &all[thread->number - 1] : NULL;
}

/* Of another thread: the one with `content` as its id; NULL: there is none. */
static struct cpu_timer *other_timer(uint32_t tid, uint32_t content)
{
	struct cpu_timer *all = atomic_load_explicit(&cpu_timers, memory_order_acquire) + OTHERS;
	uint32_t first = tid * 0x9e3779b1u >> 16;

	for (uint32_t i = 0; i < 2 * NEAR; i++) {
		uint32_t room = i < NEAR ? FEW_OTHERS : TIMERS_MAX - OTHERS;
		struct cpu_timer *t = &all[(first + i) % room];

		if (atomic_load(&t->tid) == content)
			return t;
	}
	return NULL;
}

/* Which timers of other threads were ever somebody's: few, and they lie far apart. */
static atomic_ullong others_used[(TIMERS_MAX - OTHERS) / 64];

static void use_other(const struct cpu_timer *t)
{
	size_t i = (size_t)(t - cpu_timers) - OTHERS;

	atomic_fetch_or(&others_used[i / 64], 1ull << i % 64);
}

/* The first that was used, from number `i` on. */
static uint32_t next_used(uint32_t i)
{
	uint32_t places = threads_places() < OTHERS ? threads_places() : OTHERS;

	if (i >= places && i < OTHERS)
		i = OTHERS;
	while (i >= OTHERS && i < TIMERS_MAX) {
		uint32_t at = i - OTHERS;
		uint64_t bits = atomic_load_explicit(&others_used[at / 64], memory_order_relaxed) >>
				at % 64;

		if (bits)
			return i + (uint32_t)__builtin_ctzll(bits);
		i += 64 - at % 64;
	}
	return i;
}

/* The timer after number `i`, -1 at first, that is somebody's; TIMERS_MAX: there is none. */
static uint32_t next_timer(uint32_t i)
{
	uint32_t tid;

	for (i = next_used(i + 1); cpu_timers && i < TIMERS_MAX; i = next_used(i + 1)) {
		tid = atomic_load_explicit(&cpu_timers[i].tid, memory_order_relaxed);
		if (tid && tid != TIMER_ENDING)
			return i;
	}
	return TIMERS_MAX;
}

struct cpu_timer *cpu_timer_of(uint32_t tid)
{
	struct cpu_timer *own = own_timer(local.self);

	return own && atomic_load(&own->tid) == tid ? own : other_timer(tid, tid);
}

bool timers_reserve(void)
{
	static _Atomic(void *) timers;

	cpu_timers = pages_once(&timers, TIMERS_MAX * sizeof(struct cpu_timer));
	return cpu_timers;
}

static clockid_t clock_of(uint32_t tid)
{
	return (clockid_t)((~tid) << 3 | 6);
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t = { 0, 0 };

	kernel_call(SYS_clock_gettime, clock, (long)&t, 0, 0);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* ---- a thread's timer */

/* In place of the kernel's number; no errno value is like that. */
enum { TIMER_PUT_OFF = -100000, TIMER_COMING, TIMER_NONE };

/* Returns its number, or a negative errno value. */
static int create_timer(struct cpu_timer *timer, uint32_t tid)
{
	struct sigevent event;
	int id = 0, error;

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = (int)settings.signal;
	event.sigev_value.sival_ptr = timer;
	event._sigev_un._tid = (pid_t)tid;
	error = (int)kernel_call(SYS_timer_create, clock_of(tid), (long)&event, (long)&id, 0);
	return error ? error : id;
}

/* False: it was put off to the end. */
static bool delete_timer(struct cpu_timer *t)
{
	int id = TIMER_PUT_OFF;

	if (atomic_compare_exchange_strong(&t->id, &id, TIMER_NONE))
		return false;
	for (; id == TIMER_COMING; id = atomic_load(&t->id))
		kernel_call(SYS_sched_yield, 0, 0, 0, 0);
	if (id >= 0)
		kernel_call(SYS_timer_delete, id, 0, 0, 0);
	return true;
}

/* One timer for all who have none of their own. If the program uses it there is none. */
static void start_common_timer(void)
{
	int64_t period = (int64_t)cpu_pace.period;
	struct itimerval now, wanted = { { 0, period / 1000 }, { 0, period / 1000 } };

	if (notes.has_common_timer || notes.had_no_common_timer)
		return;
	if (period >= SECOND)
		wanted.it_interval = wanted.it_value =
			(struct timeval){ period / SECOND, period % SECOND / 1000 };
	notes.had_no_common_timer = kernel_call(SYS_getitimer, ITIMER_PROF, (long)&now, 0, 0) ||
				    now.it_value.tv_sec || now.it_value.tv_usec;
	if (notes.had_no_common_timer)
		return;
	atomic_store(&cpu_has_common_timer, true);
	notes.has_common_timer = kernel_call(SYS_setitimer, ITIMER_PROF, (long)&wanted, 0, 0) == 0;
	notes.had_no_common_timer = !notes.has_common_timer;
}

static void stop_common_timer(void)
{
	struct itimerval none = { { 0, 0 }, { 0, 0 } };

	if (notes.has_common_timer)
		kernel_call(SYS_setitimer, ITIMER_PROF, (long)&none, 0, 0);
}

/* Multiples of the golden ratio fill the range more evenly than chance does: of many short threads
 * as many first ticks are seen as they deserve. */
static uint32_t chance_of(uint32_t number)
{
	return (uint32_t)((first_chance + number * 0x9e3779b97f4a7c15u) >> 32);
}

static void set_origin(struct cpu_timer *t, const struct thread *thread)
{
	t->origin = thread ? frame_of((uintptr_t)thread->routine.posix) : 0;
	t->kin = thread ? t->origin ^ (uintptr_t)thread->argument << 1 : 0;
}

/* By where threads started: the CPU time of those that took longest, of the last ones. */
static atomic_ullong lives[LIVES];

static atomic_ullong *life_from(frame_t origin)
{
	return &lives[origin * 0x9e3779b97f4a7c15u >> 56];
}

static void note_life(frame_t origin, uint64_t used)
{
	uint64_t known = atomic_load_explicit(life_from(origin), memory_order_relaxed);

	if (known > used)
		used = known - (known - used) / LIFE_DECAY;
	atomic_store_explicit(life_from(origin), used, memory_order_relaxed);
}

/* Will it have ended by its first tick? It is not likely to run for half as long again as others of
 * its kind. */
static bool is_short_lived(const struct cpu_timer *t)
{
	uint64_t life = atomic_load_explicit(life_from(t->origin), memory_order_relaxed);

	return t->origin && life && t->first > life + life / 2 &&
	       !atomic_load_explicit(&t->event, memory_order_relaxed);
}

static atomic_uint late_round;
static atomic_bool has_put_off; /* in this round */

/* `from`: the thread's clock when what it uses began to count. Returns an errno value. */
static int start_timer(struct cpu_timer *t, uint32_t tid, uint64_t from,
		       const struct thread *thread)
{
	int id;

	t->chance = chance_of(atomic_fetch_add(&nthreads, 1));
	t->first = from + 1 + timer_delay(t, 0);
	t->credit = 0;
	set_origin(t, thread);
	perf_start(t);
	id = is_short_lived(t) ? TIMER_PUT_OFF : create_timer(t, tid);
	if (id < 0 && id != TIMER_PUT_OFF) {
		atomic_fetch_sub(&nthreads, 1);
		return -id;
	}
	t->round = (uint16_t)atomic_load(&late_round);
	if (id == TIMER_PUT_OFF && !atomic_load_explicit(&has_put_off, memory_order_relaxed))
		atomic_store_explicit(&has_put_off, true, memory_order_relaxed);
	atomic_store_explicit(&t->id, id, memory_order_relaxed);
	atomic_store_explicit(&t->ticks, 0, memory_order_relaxed);
	atomic_store(&t->tid, tid); /* from now on all see it */
	if (id >= 0)
		cpu_timer_arm(id, t->first);
	return 0;
}

#define UNKNOWN_TIME UINT64_MAX

/* Ticks that no signal stood for. */
struct rest {
	uint32_t ticks;
	enum sample_kind kind;
};

/* Ends the timer of a thread that has used no more than `most`. Returns no ticks if another thread
 * does it. The clock costs more than all the rest: it is not asked for a thread that cannot have
 * got to its first tick. */
static struct rest end_timer(struct cpu_timer *t, uint32_t tid, clockid_t clock, uint64_t most)
{
	uint64_t used = 0, due, ticks;
	bool was_on;

	if (!atomic_compare_exchange_strong(&t->tid, &tid, TIMER_ENDING))
		return (struct rest){ 0, SAMPLE_REST };
	was_on = delete_timer(t);
	if (was_on || most >= t->first)
		used = read_clock(clock);
	perf_end(t);
	if (used && t->origin && clock == CLOCK_THREAD_CPUTIME_ID)
		note_life(t->origin, used);
	due = timer_due(t, used);
	ticks = atomic_load_explicit(&t->ticks, memory_order_relaxed);
	atomic_store_explicit(&t->tid, 0, memory_order_release);
	return (struct rest){ due > ticks ? (uint32_t)(due - ticks) : 0,
			      was_on ? SAMPLE_REST : SAMPLE_REST_UNTIMED };
}

/* A thread uses no more CPU time than has gone by since it began. */
static uint64_t most_used(const struct thread *thread)
{
	int64_t past = now_ns() - thread->began;

	return past < 0 ? UNKNOWN_TIME : (uint64_t)(past + past / CLOCKS_DIFFER + UNSEEN_NS);
}

static void lack_timer(int error)
{
	if (error == ESRCH || error == EINVAL)
		return; /* the thread has ended */
	notes.error = error;
	notes.without_timer++;
	start_common_timer();
}

uint32_t timers_scan(void)
{
	return atomic_load(&scan);
}

/* May it have been found before it began to run? */
static bool was_scanned(const struct thread *t)
{
	return t->scan & 1 || t->scan != timers_scan();
}

void timers_thread_starts(void)
{
	uint32_t tid = local_tid();
	struct cpu_timer *t = own_timer(local.self), *other;
	int error;

	if (!t || !atomic_load(&takes_threads))
		return;
	local.self->began = now_ns();
	error = start_timer(t, tid, 0, local.self);
	if (error) {
		lock_take(&lock);
		lack_timer(error);
		lock_give(&lock);
		return;
	}
	/* Was somebody faster? */
	other = was_scanned(local.self) ? other_timer(tid, tid) : NULL;
	if (other || !atomic_load(&takes_threads))
		end_timer(t, tid, CLOCK_THREAD_CPUTIME_ID, UNKNOWN_TIME);
	if (other)
		set_origin(other, local.self);
}

void timers_thread_ends(void)
{
	uint32_t tid = local_tid();
	struct rest rest;
	struct cpu_timer *t = own_timer(local.self), *all = atomic_load(&cpu_timers);
	uint64_t most = UNKNOWN_TIME;

	if (!all)
		return;
	if (t && atomic_load(&t->tid) == tid) {
		most = most_used(local.self);
	} else {
		t = other_timer(tid, tid);
		if (!t)
			return;
		set_origin(t, local.self);
	}
	rest = end_timer(t, tid, CLOCK_THREAD_CPUTIME_ID, most);
	if (rest.ticks)
		sample_rest(rest.kind, (uint32_t)(t - all), tid, rest.ticks);
}

/* ---- threads that we did not see start */

static int compare_tids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static bool has_tid(const uint32_t *tids, uint32_t n, uint32_t tid)
{
	while (n > 0) {
		uint32_t half = n / 2;

		if (tids[half] == tid)
			return true;
		if (tids[half] < tid) {
			tids += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return false;
}

static bool add_other(uint32_t tid, bool from_now)
{
	struct cpu_timer *t = other_timer(tid, 0);
	int error = EAGAIN;

	if (t) {
		use_other(t);
		error = start_timer(t, tid, from_now ? read_clock(clock_of(tid)) : 0, NULL);
	}
	if (error)
		lack_timer(error);
	return !error;
}

/* Timers of threads that have ended unseen, and of those that had begun to start one themselves
 * when they got one. */
static void end_others(const uint32_t *living, uint32_t nliving, const uint32_t *added,
		       uint32_t nadded)
{
	for (uint32_t i = next_timer(-1u); i < TIMERS_MAX; i = next_timer(i)) {
		uint32_t tid = atomic_load(&cpu_timers[i].tid);
		struct cpu_timer *t = &cpu_timers[i];

		if (i < OTHERS)
			t = nadded && has_tid(added, nadded, tid) ? other_timer(tid, tid) : NULL;
		else if (has_tid(living, nliving, tid))
			t = NULL;
		if (t)
			end_timer(t, tid, clock_of(tid), UNKNOWN_TIME);
		else
			perf_check(&cpu_timers[i]);
	}
}

/* As long as it is coming, whoever ends it waits. */
static void start_late(struct cpu_timer *t)
{
	int put_off = TIMER_PUT_OFF, id;
	uint32_t tid;

	if (!atomic_compare_exchange_strong(&t->id, &put_off, TIMER_COMING))
		return;
	tid = atomic_load(&t->tid);
	if (!tid || tid == TIMER_ENDING) {
		atomic_store(&t->id, TIMER_PUT_OFF);
		return;
	}
	id = create_timer(t, tid);
	if (id >= 0)
		cpu_timer_arm(id, t->first);
	atomic_store(&t->id, id < 0 ? TIMER_NONE : id);
	if (id < 0 && atomic_compare_exchange_strong(&t->tid, &tid, 0))
		lack_timer(-id);
}

/* For threads that live longer than others of their kind. */
static void start_late_timers(void)
{
	uint16_t round = (uint16_t)atomic_load(&late_round);

	for (uint32_t i = next_timer(-1u); i < OTHERS; i = next_timer(i)) {
		struct cpu_timer *t = &cpu_timers[i];

		if (atomic_load(&t->id) == TIMER_PUT_OFF && t->round != round)
			start_late(t);
	}
	atomic_fetch_add(&late_round, 1);
}

/* With `from_now` they are not new, and what they used does not count. */
static uint32_t scan_threads(bool from_now)
{
	static struct tids tids; /* the lock is ours */
	static _Atomic(void *) memory;
	uint32_t *known = pages_once(&memory, TIMERS_MAX * 2 * sizeof(*known)),
		 *added = known + TIMERS_MAX, n, nknown = 0, nadded = 0;

	atomic_fetch_add(&scan, 1);
	n = threads_list(&tids);
	for (uint32_t i = next_timer(-1u); known && i < TIMERS_MAX; i = next_timer(i))
		known[nknown++] = atomic_load(&cpu_timers[i].tid);
	if (known && n) {
		sort(known, nknown, sizeof(*known), compare_tids);
		sort(tids.at, n, sizeof(*tids.at), compare_tids);
		for (uint32_t i = 0; i < n && nadded < TIMERS_MAX; i++)
			if (!has_tid(known, nknown, tids.at[i]) &&
			    add_other(tids.at[i], from_now || notes.has_common_timer))
				added[nadded++] = tids.at[i];
		end_others(tids.at, n, added, nadded);
	}
	atomic_fetch_add(&scan, 1);
	return n;
}

/* How many threads there are, which is quicker than which; 0: not known. */
static uint64_t count_threads(void)
{
	struct stat tasks;

	return stat("/proc/self/task", &tasks) == 0 ? (uint64_t)tasks.st_nlink : 0;
}

/* As many threads as last time are mostly the same. */
static void look_for_threads(int64_t now)
{
	static uint64_t last_count;
	static int64_t last;
	uint64_t count = count_threads();
	uint32_t n = 0;

	if (!count || count != last_count || now - last >= SECOND) {
		n = atomic_load(&takes_threads) ? scan_threads(false) : 0;
		last_count = count;
		last = now;
	}
	next_scan = now + (n > FEW_THREADS ? SECOND : LOOK_NS);
}

/* ---- for a profile */

/* Of the one before, where threads ended unseen. */
static void clear(void)
{
	memset(&notes, 0, sizeof(notes));
	for (uint32_t i = next_timer(-1u); i < TIMERS_MAX; i = next_timer(i)) {
		delete_timer(&cpu_timers[i]);
		perf_end(&cpu_timers[i]);
		atomic_store(&cpu_timers[i].tid, 0);
	}
	atomic_store(&nthreads, 0);
	first_chance = local_random();
}

void timers_start(int64_t each_ns)
{
	lock_take(&lock);
	clear();
	perf_prepare(each_ns);
	atomic_store(&takes_threads, true);
	scan_threads(true);
	scan_threads(true); /* what started meanwhile */
	next_scan = now_ns() + SECOND;
	lock_give(&lock);
}

void timers_stop(void)
{
	lock_take(&lock);
	atomic_store(&takes_threads, false);
	for (uint32_t i = next_timer(-1u); i < TIMERS_MAX; i = next_timer(i)) {
		struct cpu_timer *t = &cpu_timers[i];
		uint32_t tid = atomic_load(&t->tid);
		struct rest rest = end_timer(t, tid, clock_of(tid), UNKNOWN_TIME);

		if (rest.ticks)
			sample_rest(rest.kind, i, tid, rest.ticks);
	}
	stop_common_timer();
	lock_give(&lock);
}

int64_t timers_look(int64_t now)
{
	if (lock_try(&lock)) {
		start_late_timers();
		if (now >= next_scan)
			look_for_threads(now);
		lock_give(&lock);
	}
	return now + (atomic_exchange(&has_put_off, false) ? LOOK_LATE_NS : LOOK_NS);
}

void timers_comment(struct record *r)
{
	record_comment(r, "CPU time: %u threads, a tick each %lld us", atomic_load(&nthreads),
		       (long long)cpu_pace.period / 1000);
	perf_comment(r);
	if (notes.without_timer)
		record_comment(
			r, "%u threads have no timer of their own (%s)%s", notes.without_timer,
			strerrorname_np(notes.error),
			notes.has_common_timer
				? ": they share one, by setitimer"
				: ", and the program uses setitimer itself: they are missing");
}

/* ---- fork */

void timers_before_fork(void)
{
	lock_take(&lock);
}

void timers_after_fork(void)
{
	lock_give(&lock);
}

/* The kernel gave it none of them. */
void timers_in_child(void)
{
	for (uint32_t i = next_timer(-1u); i < TIMERS_MAX; i = next_timer(i)) {
		perf_leave(&cpu_timers[i]);
		atomic_store(&cpu_timers[i].tid, 0);
	}
	atomic_store(&takes_threads, false);
	atomic_store(&scan, 0);
	atomic_store(&cpu_has_common_timer, false);
	lock_give(&lock);
}
