/* locks.c - the profiles "block", by those who wait, and "mutex", by those who let others wait. */
#include "agent/locks.h"

#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/local.h"
#include "agent/profiles.h"
#include "agent/real.h"
#include "agent/signal.h"
#include "agent/sort.h"
#include "agent/stack.h"
#include "agent/ticks.h"

enum { COUNT, DELAY };

static struct buckets waiters, holders;
static atomic_int fraction;
static atomic_llong rate;
static atomic_ullong waits_lost, charges_lost;

/* ---- who waits for which lock
 *
 * A place has the number of those who wait for one lock, and the sum of the times they have waited
 * since, in one word, so that both change together: the number in the lower 16 bits. Times are in
 * units of 16 ns, and sums are taken modulo 2^48: their differences are right as long as a holder
 * keeps others waiting for less than 52 days in total. */
enum {
	NUMBER_BITS = 16,
	NUMBER_MAX = (1 << NUMBER_BITS) - 1,
	UNIT_BITS = 4,
	LINES = 1024,
	PLACES = 2 /* locks that share a line of the cache */
};

struct holder_place {
	_Atomic(const void *) lock;
	atomic_ullong waiting;
	atomic_ullong
		charged; /* up to then, in units; who has waited longer is in the sum with this */
};

static struct {
	_Alignas(64) struct holder_place places[PLACES];
} lines[LINES];
static atomic_bool is_used; /* a child that has nothing to forget does not touch them */

static struct holder_place *places_of(const void *lock)
{
	return lines[(uintptr_t)lock * 0x9e3779b97f4a7c15u >> 54].places;
}

static uint64_t to_units(int64_t ns)
{
	return (uint64_t)ns >> UNIT_BITS;
}

/* A place that nobody waits at may be had for another lock. Whoever was about to wait there for the
 * one before sees it in the end. */
static bool enter_place(struct holder_place *p, const void *lock, uint64_t start)
{
	const void *was = atomic_load(&p->lock);

	if (was != lock && ((atomic_load(&p->waiting) & NUMBER_MAX) != 0 ||
			    !atomic_compare_exchange_strong(&p->lock, &was, lock)))
		return false;
	if ((atomic_load(&p->waiting) & NUMBER_MAX) == NUMBER_MAX)
		return false;
	atomic_fetch_add(&p->waiting, (start << NUMBER_BITS) + 1);
	return true;
}

static void leave_place(struct holder_place *p, uint64_t start)
{
	unsigned long long was = atomic_load(&p->waiting), left;
	uint64_t charged = atomic_load(&p->charged);
	uint64_t mine = start > charged ? start : charged;

	do /* the last one takes small errors along */
		left = (was & NUMBER_MAX) <= 1 ? 0 : was - (mine << NUMBER_BITS) - 1;
	while (!atomic_compare_exchange_weak(&p->waiting, &was, left));
}

static struct holder_place *find_place(const void *lock, int64_t start)
{
	struct holder_place *p = places_of(lock);

	for (int i = 0; i < PLACES; i++) {
		if (!enter_place(&p[i], lock, to_units(start)))
			continue;
		if (atomic_load(&p[i].lock) == lock)
			return &p[i];
		leave_place(&p[i], to_units(start));
	}
	atomic_fetch_add(&charges_lost, 1);
	return NULL;
}

/* In units: what those at the place have waited; from now on they wait for somebody else. */
static uint64_t take_charge(struct holder_place *p, uint64_t now)
{
	unsigned long long was = atomic_load(&p->waiting), left;
	uint64_t n, delay;

	if (!(was & NUMBER_MAX))
		return 0;
	atomic_store(&p->charged, now);
	do {
		n = was & NUMBER_MAX;
		left = (n * now) << NUMBER_BITS;
		delay = (left - (was & ~(unsigned long long)NUMBER_MAX)) >> NUMBER_BITS;
	} while (!atomic_compare_exchange_weak(&p->waiting, &was, left | n));
	return delay >> 47 ? 0 : delay; /* below 0: clocks were read in another order */
}

/* ---- what is recorded */

static void add_here(struct buckets *b, double count, double delay, atomic_ullong *lost)
{
	frame_t frames[STACK_MAX];
	struct walk_start here = walk_here();
	uint32_t stack = stack_add(frames, walk_stack(&here, frames, STACK_MAX));
	struct bucket *to = stack ? bucket_of(b, stack, local.labels) : NULL;

	if (to) {
		bucket_add(to, COUNT, count);
		bucket_add(to, DELAY, delay);
	} else {
		atomic_fetch_add(lost, 1);
	}
}

/* Long waits count as they are. Of those below the rate some stand for all. */
static void record_wait(int64_t delay)
{
	int64_t least = atomic_load_explicit(&rate, memory_order_relaxed);

	if (delay < 1)
		delay = 1;
	if (least <= 0 || (delay < least && local_random() % (uint64_t)least >= (uint64_t)delay))
		return;
	if (delay < least)
		add_here(&waiters, (double)least / (double)delay, (double)least, &waits_lost);
	else
		add_here(&waiters, 1, (double)delay, &waits_lost);
}

struct contention contention_begins(const void *object)
{
	struct contention c = { .object = object };

	if (!local.inside)
		c.ticks = ticks_now();
	return c;
}

struct contention contention_begins_with_holder(const void *lock)
{
	struct contention c = contention_begins(lock);

	if (c.ticks && agent_is_on(ON_MUTEX)) {
		atomic_store_explicit(&is_used, true, memory_order_relaxed);
		c.start = now_ns();
		c.place = find_place(lock, c.start);
	}
	return c;
}

void contention_ends(struct contention *c, const char *what, bool has_waited)
{
	int kept = errno;
	int64_t end, waited;
	uint64_t ticks;

	if (!c->ticks)
		return;
	ticks = ticks_now();
	end = now_ns();
	waited = ticks_between(c->ticks, ticks, end);
	if (c->place)
		leave_place(c->place, to_units(c->start));
	if (has_waited) {
		agent_enter();
		if (agent_is_on(ON_TRACE))
			trace_span(what, c->object, end - waited, end);
		if (agent_is_on(ON_BLOCK))
			record_wait(waited);
		agent_leave();
	}
	errno = kept;
}

struct charge holder_releases(const void *lock)
{
	struct holder_place *p = places_of(lock);
	struct charge owed = { 0, atomic_load_explicit(&fraction, memory_order_relaxed) };
	uint64_t now = 0, delay = 0;

	for (int i = 0; i < PLACES; i++) {
		if (atomic_load_explicit(&p[i].lock, memory_order_relaxed) != lock ||
		    !(atomic_load_explicit(&p[i].waiting, memory_order_relaxed) & NUMBER_MAX))
			continue;
		now = now ? now : to_units(now_ns());
		delay += take_charge(&p[i], now);
	}
	if (delay && !local.inside && owed.stands_for > 0 &&
	    (owed.stands_for == 1 || local_random() % (uint64_t)owed.stands_for == 0))
		owed.delay = (int64_t)(delay << UNIT_BITS);
	return owed;
}

void charge_holder(const struct charge *owed)
{
	int kept = errno;

	if (!owed->delay)
		return;
	agent_enter();
	add_here(&holders, (double)owed->stands_for, (double)owed->delay * (double)owed->stands_for,
		 &charges_lost);
	agent_leave();
	errno = kept;
}

/* ---- settings */

/* Both are switched once, however often their settings change. */
static void change(unsigned what, bool was_on, bool is_on)
{
	if (is_on && !was_on && real_is_static())
		agent_say("the program is static: who waits for locks is not seen");
	if (is_on && !was_on)
		agent_switch_on(what);
	if (was_on && !is_on)
		agent_switch_off(what);
}

void mutex_set_fraction(int one_of)
{
	int fresh = one_of > 0 ? one_of : 0;

	change(ON_MUTEX, atomic_exchange(&fraction, fresh) > 0, fresh > 0);
}

int mutex_fraction(void)
{
	return atomic_load(&fraction);
}

void block_set_rate(int64_t nanoseconds)
{
	int64_t fresh = nanoseconds > 0 ? nanoseconds : 0;

	change(ON_BLOCK, atomic_exchange(&rate, fresh) > 0, fresh > 0);
}

int64_t block_rate(void)
{
	return atomic_load(&rate);
}

/* A profile that somebody wants at exit has to be on. */
static int64_t setting(int64_t number, const char *file)
{
	return number > 0 || !file ? number : 1;
}

static void init(void)
{
	int64_t one_of = setting(settings.mutex_fraction, settings.mutex_profile);
	int64_t ns = setting(settings.block_rate, settings.block_profile);

	if (one_of > 0)
		mutex_set_fraction(one_of < INT32_MAX ? (int)one_of : INT32_MAX);
	if (ns > 0)
		block_set_rate(ns);
}

static void in_child(void)
{
	buckets_reset(&waiters);
	buckets_reset(&holders);
	if (atomic_exchange(&is_used, false))
		memset(lines, 0, sizeof(lines));
	atomic_store(&waits_lost, 0);
	atomic_store(&charges_lost, 0);
	atomic_store(&fraction, 0);
	atomic_store(&rate, 0);
}

const struct agent_part part_locks = { .name = "locks", .init = init, .in_child = in_child };

/* ---- profiles */

static bool collect(struct record *r, const struct buckets *from, const atomic_ullong *lost)
{
	uint32_t n = buckets_count(from);

	r->period = 1;
	for (uint32_t i = 0; i < n; i++) {
		struct bucket *b = bucket_at(from, i);
		struct record_row *row;
		double count = atomic_load(&b->values[COUNT]);

		if (!b->stack || count <= 0)
			continue;
		row = record_add(r);
		if (!row)
			break;
		row->frames = stack_frames(b->stack, &row->nframes);
		row->labels = b->labels;
		row->values[COUNT] = (int64_t)(count + 0.5);
		row->values[DELAY] = (int64_t)(atomic_load(&b->values[DELAY]) + 0.5);
	}
	if (atomic_load(lost))
		record_comment(r, "lost contentions: %llu", atomic_load(lost));
	return true;
}

static bool collect_block(struct record *r)
{
	return collect(r, &waiters, &waits_lost);
}

static bool collect_mutex(struct record *r)
{
	return collect(r, &holders, &charges_lost);
}

static uint32_t count_block(void)
{
	return buckets_count(&waiters);
}

static uint32_t count_mutex(void)
{
	return buckets_count(&holders);
}

static int compare_rows(const void *a, const void *b)
{
	const struct record_row *x = a, *y = b;

	return (x->values[DELAY] < y->values[DELAY]) - (x->values[DELAY] > y->values[DELAY]);
}

static void write_rows(struct out *o, struct record *r, int64_t divisor)
{
	sort(r->rows, r->n, sizeof(*r->rows), compare_rows);
	for (size_t i = 0; i < r->n; i++) {
		const struct record_row *row = &r->rows[i];

		out_format(o, "%lld %lld ", (long long)(row->values[DELAY] / divisor),
			   (long long)(row->values[COUNT] / divisor));
		record_write_addresses(o, row);
		record_write_stack(o, row->frames, row->nframes);
		out_text(o, "\n");
	}
}

static void write_block(struct out *o, const struct agent_profile *p, struct record *r, int debug)
{
	(void)p, (void)debug;
	out_text(o, "--- contention:\ncycles/second=1000000000\n");
	write_rows(o, r, 1);
}

/* Readers multiply by the sampling period. */
static void write_mutex(struct out *o, const struct agent_profile *p, struct record *r, int debug)
{
	int one_of = mutex_fraction();

	(void)p, (void)debug;
	out_format(o, "--- mutex:\ncycles/second=1000000000\nsampling period=%d\n", one_of);
	write_rows(o, r, one_of > 0 ? one_of : 1);
}

#define TYPES                                                                             \
	.types = { { "contentions", "count" }, { "delay", "nanoseconds" } }, .ntypes = 2, \
	.period_type = { "contentions", "count" }, .has_delta = true

const struct agent_profile profile_block = {
	.name = "block",
	.about =
		"Waits for other threads, by who waited: mutexes, rwlocks, conditions, semaphores, "
		"barriers, joins. Off until KILN_BLOCK_RATE or kiln_set_block_rate switch it on.",
	TYPES,
	.count = count_block,
	.collect = collect_block,
	.write_text = write_block,
};

const struct agent_profile profile_mutex = {
	.name = "mutex",
	.about = "Contended locks, by who held them: the time that others waited for the unlock. "
		 "Off "
		 "until KILN_MUTEX_FRACTION or kiln_set_mutex_fraction switch it on.",
	TYPES,
	.count = count_mutex,
	.collect = collect_mutex,
	.write_text = write_mutex,
};
