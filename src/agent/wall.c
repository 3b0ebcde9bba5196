/* wall.c - wall-clock time of all threads, whether they run or wait.
 *
 * Each thread is asked where it is, so many times a second. One that waits would be woken up for
 * it, so it is asked once: as long as its CPU clock stands still it must still be there.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/kernel.h"
#include "agent/local.h"
#include "agent/memory.h"
#include "agent/profiles.h"
#include "agent/samples.h"
#include "agent/thread.h"

enum {
	SECOND = 1000000000,
	PLACES = 1 << 15, /* a power of two; threads that are remembered, at most three quarters */
	ASKED_AT_ONCE = 200,
	HZ_MAX = 1000,
	/* What a thread uses to go back to sleep when it has answered. */
	RETURN_NS = 50000,
	LAST_ANSWERS_NS = 20000000,
	PATIENCE_NS = 1000000000, /* a thread may wait for a processor */
};

enum state { RUNNING, WAITING, NSTATES };
static const char *const state_names[] = { "running", "waiting" };

/* A thread as it was last seen. */
struct seen {
	uint32_t tid; /* 0: free */
	uint32_t stack, labels;
	bool is_waiting, is_asked;
	uint64_t clock; /* its CPU clock then */
	double ns;	/* that the answer will stand for */
	int64_t asked;	/* when */
};

static struct lock lock; /* taken inside that of samples.c */
static atomic_bool is_on;
static int64_t period, started, started_wall, last_round;
static struct seen *places;
static uint32_t nplaces, nasked;
static struct sequences stacks = STACKS_INIT; /* of this profile, as the next */
static struct buckets sums[NSTATES];
static struct {
	uint32_t threads;
	uint64_t silent;
	double lost_ns;
} notes;

/* ---- threads that were seen */

static struct seen *find(uint32_t tid)
{
	uint32_t slot = tid * 0x9e3779b1u >> 16 & (PLACES - 1);

	while (places[slot].tid && places[slot].tid != tid)
		slot = (slot + 1) & (PLACES - 1);
	if (!places[slot].tid && nplaces >= PLACES / 4 * 3)
		return NULL;
	nplaces += !places[slot].tid;
	places[slot].tid = tid;
	return &places[slot];
}

static uint64_t clock_of(uint32_t tid)
{
	struct timespec t = { 0, 0 };

	kernel_call(SYS_clock_gettime, (int)((~tid) << 3 | 6), (long)&t, 0, 0);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void count(const struct seen *s, double ns)
{
	frame_t unknown = FRAME_NO_UNWIND;
	uint32_t stack = s->stack ? s->stack : sequence_add(&stacks, &unknown, 1);
	struct bucket *b = stack ? bucket_of(&sums[s->is_waiting], stack, s->labels) : NULL;

	if (!b) {
		notes.lost_ns += ns;
		return;
	}
	bucket_add(b, 0, ns / (double)period);
	bucket_add(b, 1, ns);
}

/* An answer. */
void wall_count(const struct sample *sample)
{
	struct seen *s;

	lock_take(&lock);
	s = atomic_load(&is_on) ? find(sample->tid) : NULL;
	if (s && s->is_asked) {
		s->is_asked = false;
		nasked--;
		s->stack = sample->nframes ? sequence_add(&stacks, sample->frames, sample->nframes)
					   : 0;
		s->labels = sample->labels;
		s->is_waiting = sample->source;
		s->clock = sample->kin + RETURN_NS;
		count(s, s->ns);
	}
	lock_give(&lock);
}

/* ---- rounds */

/* It did not answer: it waits in the kernel for what cannot be interrupted, or blocks the signal.
 */
static void give_up(struct seen *s)
{
	notes.silent++;
	nasked--;
	s->is_asked = false;
	s->stack = 0;
	s->is_waiting = true;
	count(s, s->ns);
}

static void look_at(uint32_t tid, double ns, int64_t now)
{
	struct seen *s = find(tid);
	uint64_t clock = clock_of(tid);

	if (!s)
		return;
	if (s->is_asked && now < s->asked + PATIENCE_NS) {
		s->ns += ns;
		return;
	}
	if (s->is_asked)
		give_up(s);
	if (s->stack && s->is_waiting && clock <= s->clock) {
		s->clock = clock;
		count(s, ns);
		return;
	}
	s->ns = ns;
	s->asked = now;
	s->is_asked = wall_ask(tid);
	nasked += s->is_asked;
}

/* Of very many threads some, by chance, stand for all. */
static void do_round(int64_t now)
{
	static struct tids tids; /* of the agent's thread */
	uint32_t n = threads_list(&tids), some = n < ASKED_AT_ONCE ? n : ASKED_AT_ONCE;
	uint32_t first = n ? (uint32_t)(local_random() % n) : 0;
	double ns = (double)(now - last_round) * n / (some ? some : 1);

	last_round = now;
	notes.threads = n > notes.threads ? n : notes.threads;
	if (nplaces + n > PLACES / 2) { /* most have ended */
		memset(places, 0, PLACES * sizeof(*places));
		nplaces = nasked = 0;
	}
	for (uint32_t i = 0; i < some; i++)
		look_at(tids.at[(first + i) % n], ns, now);
}

/* ---- profiles */

static bool may_start(void)
{
	static _Atomic(void *) memory;
	bool was = false;

	if (!atomic_compare_exchange_strong(&is_on, &was, true)) {
		errno = EBUSY;
		return false;
	}
	places = pages_once(&memory, PLACES * sizeof(*places));
	if (!places)
		errno = ENOMEM;
	else if (samples_prepare() && agent_start_thread() && agent_switch_on(ON_WALL))
		return true;
	atomic_store(&is_on, false);
	return false;
}

static void forget_stacks(void)
{
	sequences_reset(&stacks);
	for (unsigned k = 0; k < NSTATES; k++)
		buckets_reset(&sums[k]);
}

static void clear(void)
{
	forget_stacks();
	memset(places, 0, PLACES * sizeof(*places));
	memset(&notes, 0, sizeof(notes));
	nplaces = nasked = 0;
}

bool wall_start(int hz)
{
	if (hz <= 0)
		hz = settings.wall_rate > 0 ? (int)settings.wall_rate : 10;
	if (!may_start())
		return false;
	lock_take(&lock);
	clear();
	period = SECOND / (hz < HZ_MAX ? hz : HZ_MAX);
	last_round = started = now_ns();
	started_wall = wall_ns();
	lock_give(&lock);
	agent_wake();
	return true;
}

static void add_row(struct record *r, const struct bucket *b, enum state state)
{
	uint32_t n;
	const frame_t *frames = sequence_words(&stacks, b->stack, &n);
	struct record_row *row = b->values[1] > 0 ? record_add_stack(r, frames, n) : NULL;

	if (!row)
		return;
	row->labels = b->labels;
	row->values[0] = (int64_t)(b->values[0] + 0.5);
	row->values[1] = (int64_t)b->values[1];
	row->tags[row->ntags++] = (struct tag){ .key = "state", .text = state_names[state] };
}

static void fill(struct record *r)
{
	for (unsigned k = 0; k < NSTATES; k++)
		for (uint32_t i = 0; i < buckets_count(&sums[k]); i++)
			add_row(r, bucket_at(&sums[k], i), (enum state)k);
	r->time = started_wall;
	r->duration = now_ns() - started;
	r->period = period;
	record_comment(r, "wall-clock time: up to %u threads, looked at each %lld ms",
		       notes.threads, (long long)period / 1000000);
	if (notes.silent)
		record_comment(r, "%llu times a thread did not answer (signal %d blocked?)",
			       (unsigned long long)notes.silent, (int)settings.signal);
	if (notes.lost_ns > 0)
		record_comment(r, "lost: %.0f ms that there was no room for", notes.lost_ns / 1e6);
}

/* Those that were asked may still answer. */
static void await_answers(void)
{
	int64_t until = now_ns() + LAST_ANSWERS_NS;
	struct timespec pause = { 0, 1000000 };

	for (samples_drain(); nasked && now_ns() < until; samples_drain())
		kernel_call(SYS_nanosleep, (long)&pause, 0, 0, 0);
}

/* False: there is none. */
static bool read_out(struct record *r, bool ends)
{
	if (!atomic_load(&is_on)) {
		errno = ESRCH;
		return false;
	}
	if (ends)
		await_answers();
	else
		samples_drain();
	lock_take(&lock);
	for (uint32_t i = 0; ends && i < PLACES; i++)
		if (places[i].is_asked)
			give_up(&places[i]);
	fill(r);
	if (ends) {
		forget_stacks();
		atomic_store(&is_on, false);
	}
	lock_give(&lock);
	return true;
}

bool wall_stop(struct record *r)
{
	bool is_done = read_out(r, true);

	if (is_done)
		agent_switch_off(ON_WALL);
	return is_done;
}

static bool collect(struct record *r)
{
	return read_out(r, false);
}

static uint32_t count_stacks(void)
{
	return 0;
}

const struct agent_profile profile_wall = {
	.name = "wall",
	.about = "Wall-clock time of all threads, running or waiting, sampled for ?seconds=N (30)",
	.types = { { "samples", "count" }, { "wall", "nanoseconds" } },
	.ntypes = 2,
	.period_type = { "wall", "nanoseconds" },
	.count = count_stacks,
	.collect = collect,
};

/* ---- the part */

static int64_t work(int64_t now)
{
	if (!atomic_load(&is_on))
		return INT64_MAX;
	if (now < last_round + period)
		return last_round + period;
	samples_drain();
	lock_take(&lock);
	if (atomic_load(&is_on))
		do_round(now);
	lock_give(&lock);
	return now + period;
}

void wall_before_fork(void)
{
	lock_take(&lock);
}

void wall_after_fork(void)
{
	lock_give(&lock);
}

static void in_child(void)
{
	atomic_store(&is_on, false);
}

const struct agent_part part_wall = { .name = "wall", .work = work, .in_child = in_child };
