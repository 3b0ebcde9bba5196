/* cpu.c - CPU time: samples of all threads (timers.h) become a profile.
 *
 * What a thread used after its last tick, until it ends, goes to the stack that was last seen in
 * that thread, or else in another that started in the same function.
 */
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/local.h"
#include "agent/memory.h"
#include "agent/profiles.h"
#include "agent/samples.h"
#include "agent/timers.h"

enum {
	SECOND = 1000000000,
	HZ_MAX = 10000,
	KINS_MAX = 1024,
	YOUNG_NS = 50000000,
	/* Who used so much without a tick has our signal blocked. */
	BLOCKED_NS = 50000000,
};

/* Threads that started in the same function, with the same argument or with any. Of the latter
 * those that live on do other things than those that soon end: only the first samples of each
 * count. */
struct kin {
	uint64_t key; /* 0: free */
	frame_t origin;
	uint32_t stack, labels; /* the last that was seen */
	uint64_t owed;		/* ticks, while there is none */
};

/* The last that was seen of a timer's thread, in which profile. */
struct last {
	uint32_t tid, stack, labels, profile;
	uint64_t ticks;
};

static struct lock lock;     /* of profiles; taken before those of timers.c and samples.c */
static struct lock counting; /* of what is counted; taken after them */
static atomic_bool is_on;
static int64_t period, started, started_wall;
static struct last *lasts;
static struct sequences stacks = STACKS_INIT; /* of this profile, as the next */
static struct buckets sums;
static uint32_t nprofiles;
static struct kin kins[KINS_MAX];

/* What there is to say about a profile. */
static struct {
	uint64_t lost, no_room, samples, sampled_ticks;
	uint32_t blocked;
	uint64_t blocked_ticks;
} notes;

/* ---- counting */

/* NULL: nothing is known of the thread, or there is no room. */
static struct kin *kin_of(uint64_t key)
{
	uint32_t slot = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 40) % KINS_MAX;

	for (uint32_t i = 0; key && i < KINS_MAX / 4; i++, slot = (slot + 1) % KINS_MAX)
		if (!kins[slot].key || kins[slot].key == key) {
			kins[slot].key = key;
			return &kins[slot];
		}
	return NULL;
}

static void add_ticks(uint32_t stack, uint32_t labels, uint64_t ticks)
{
	struct bucket *b = stack ? bucket_of(&sums, stack, labels) : NULL;

	if (b)
		bucket_add(b, 0, (double)ticks);
	else
		notes.no_room += ticks;
}

static void remember(uint64_t key, uint32_t stack, uint32_t labels)
{
	struct kin *k = kin_of(key);

	if (!k)
		return;
	k->stack = stack;
	k->labels = labels;
	add_ticks(stack, labels, k->owed);
	k->owed = 0;
}

static bool is_of(const struct last *last, const struct sample *s)
{
	return last->tid == s->tid && last->profile == nprofiles;
}

static void count_sample(const struct sample *s)
{
	struct last *last = &lasts[s->source];
	uint32_t stack = s->nframes ? sequence_add(&stacks, s->frames, s->nframes) : 0;

	add_ticks(stack, s->labels, s->weight);
	notes.samples++;
	notes.sampled_ticks += s->weight;
	if (s->source == TIMERS_MAX)
		return;
	if (!is_of(last, s))
		last->ticks = 0;
	*last = (struct last){ s->tid, stack, s->labels, nprofiles, last->ticks + s->weight };
	remember(s->kin, stack, s->labels);
	if ((last->ticks - s->weight) * (uint64_t)period < YOUNG_NS)
		remember(s->origin, stack, s->labels);
}

/* Of a thread of which nothing else is known. */
static void count_at_origin(frame_t origin, uint64_t ticks)
{
	frame_t frame = origin ? origin : FRAME_NO_UNWIND;

	add_ticks(sequence_add(&stacks, &frame, 1), 0, ticks);
}

/* Those of other arguments are asked last, when all is known. */
static void count_like_kin(const struct sample *s)
{
	struct kin *k = kin_of(s->kin);

	if (!k) {
		count_at_origin(s->origin, s->weight);
	} else if (k->stack) {
		add_ticks(k->stack, k->labels, s->weight);
	} else {
		k->owed += s->weight;
		k->origin = s->origin;
	}
}

/* What a thread used after its last tick. */
static void count_rest(const struct sample *s)
{
	const struct last *last = &lasts[s->source];

	if (is_of(last, s) && last->stack) {
		add_ticks(last->stack, last->labels, s->weight);
	} else if (s->kind == SAMPLE_REST && s->weight * period > BLOCKED_NS) {
		notes.blocked++;
		notes.blocked_ticks += s->weight;
		count_at_origin(s->origin, s->weight);
	} else {
		count_like_kin(s);
	}
}

void cpu_count(const struct sample *s)
{
	lock_take(&counting);
	if (s->kind == SAMPLE_REST || s->kind == SAMPLE_REST_UNTIMED)
		count_rest(s);
	else
		count_sample(s);
	lock_give(&counting);
}

void cpu_count_lost(uint64_t ticks)
{
	if (!ticks)
		return;
	lock_take(&counting);
	notes.lost += ticks;
	lock_give(&counting);
}

static void count_owed(void)
{
	for (uint32_t i = 0; i < KINS_MAX; i++) {
		const struct kin *same = kins[i].owed ? kin_of(kins[i].origin) : NULL;

		if (same && same->stack)
			add_ticks(same->stack, same->labels, kins[i].owed);
		else if (kins[i].owed)
			count_at_origin(kins[i].origin, kins[i].owed);
		kins[i].owed = 0;
	}
}

/* ---- profiles */

static void forget_stacks(void)
{
	sequences_reset(&stacks);
	buckets_reset(&sums);
	nprofiles++;
}

static bool reserve(void)
{
	static _Atomic(void *) last;

	lasts = pages_once(&last, (TIMERS_MAX + 1) * sizeof(*lasts));
	return lasts && timers_reserve();
}

static bool may_start(void)
{
	bool was = false;

	if (!atomic_compare_exchange_strong(&is_on, &was, true)) {
		errno = EBUSY;
		return false;
	}
	if (!reserve())
		errno = ENOMEM;
	else if (samples_prepare() && agent_start_thread() && agent_switch_on(ON_CPU))
		return true;
	atomic_store(&is_on, false);
	return false;
}

bool cpu_start(int hz)
{
	if (hz <= 0)
		hz = settings.cpu_rate > 0 ? (int)settings.cpu_rate : 100;
	if (!may_start())
		return false;
	samples_drain();
	lock_take(&lock);
	lock_take(&counting);
	forget_stacks();
	memset(kins, 0, sizeof(kins));
	memset(&notes, 0, sizeof(notes));
	lock_give(&counting);
	period = SECOND / (hz < HZ_MAX ? hz : HZ_MAX);
	started = now_ns();
	started_wall = wall_ns();
	timers_start(period);
	lock_give(&lock);
	agent_wake();
	return true;
}

bool cpu_is_on(void)
{
	return atomic_load(&is_on);
}

static void comment(struct record *r)
{
	timers_comment(r);
	record_comment(r, "%llu samples stand for %llu ticks", (unsigned long long)notes.samples,
		       (unsigned long long)notes.sampled_ticks);
	if (notes.lost + notes.no_room)
		record_comment(r, "lost: %llu ticks that there was no room for",
			       (unsigned long long)(notes.lost + notes.no_room));
	if (notes.blocked)
		record_comment(r, "%u threads block signal %d: their %llu ms are at their start",
			       notes.blocked, (int)settings.signal,
			       (unsigned long long)notes.blocked_ticks * (uint64_t)period /
				       1000000);
}

static void add_row(struct record *r, const frame_t *frames, uint32_t n, uint32_t labels,
		    double ticks)
{
	struct record_row *row = record_add_stack(r, frames, n);

	if (!row)
		return;
	row->labels = labels;
	row->values[0] = (int64_t)(ticks + 0.5);
	row->values[1] = row->values[0] * period;
}

static void fill(struct record *r)
{
	static const frame_t lost_frame = FRAME_LOST;

	for (uint32_t i = 0; i < buckets_count(&sums); i++) {
		const struct bucket *b = bucket_at(&sums, i);
		double ticks = atomic_load(&b->values[0]);
		uint32_t n;
		const frame_t *frames = sequence_words(&stacks, b->stack, &n);

		if (ticks > 0)
			add_row(r, frames, n, b->labels, ticks);
	}
	if (notes.lost + notes.no_room)
		add_row(r, &lost_frame, 1, 0, (double)(notes.lost + notes.no_room));
	r->time = started_wall;
	r->duration = now_ns() - started;
	r->period = period;
	comment(r);
}

bool cpu_stop(struct record *r)
{
	if (!atomic_load(&is_on)) {
		errno = ESRCH;
		return false;
	}
	lock_take(&lock);
	timers_stop();
	agent_switch_off(ON_CPU);
	samples_drain();
	lock_take(&counting);
	count_owed();
	fill(r);
	forget_stacks();
	lock_give(&counting);
	lock_give(&lock);
	atomic_store(&is_on, false);
	return true;
}

/* What there is up to now. */
static bool collect(struct record *r)
{
	if (!atomic_load(&is_on)) {
		errno = ESRCH;
		return false;
	}
	lock_take(&lock);
	samples_drain();
	lock_take(&counting);
	fill(r);
	lock_give(&counting);
	lock_give(&lock);
	return true;
}

static uint32_t count_none(void)
{
	return 0;
}

const struct agent_profile profile_cpu = {
	.name = "profile",
	.about = "CPU time of all threads, sampled for ?seconds=N (30)",
	.types = { { "samples", "count" }, { "cpu", "nanoseconds" } },
	.ntypes = 2,
	.period_type = { "cpu", "nanoseconds" },
	.count = count_none,
	.collect = collect,
};

/* ---- the part */

static int64_t work(int64_t now)
{
	int64_t next;

	if (!atomic_load(&is_on))
		return INT64_MAX;
	next = timers_look(now);
	samples_drain();
	return next;
}

static void before_fork(void)
{
	lock_take(&lock);
	timers_before_fork();
	samples_before_fork();
	lock_take(&counting);
}

static void after_fork(void)
{
	lock_give(&counting);
	samples_after_fork();
	timers_after_fork();
	lock_give(&lock);
}

static void in_child(void)
{
	atomic_store(&is_on, false);
	forget_stacks();
	lock_give(&counting);
	samples_in_child();
	timers_in_child();
	lock_give(&lock);
}

const struct agent_part part_cpu = { .name = "cpu",
				     .work = work,
				     .before_fork = before_fork,
				     .after_fork = after_fork,
				     .in_child = in_child };
