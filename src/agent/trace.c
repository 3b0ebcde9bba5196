/* trace.c - what happened in the program for some seconds, event by event.
 *
 * Events are written to memory that is reserved once and touched as it is needed. A thread takes a
 * chunk of it at a time and then needs nobody else to write an event. Memory is never given back
 * to others, only emptied: whoever was about to write while the trace ended may still do so. */
#include "agent/trace.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/local.h"
#include "agent/memory.h"
#include "agent/profiles.h"
#include "agent/samples.h"
#include "agent/signal.h"
#include "agent/sort.h"
#include "agent/stack.h"
#include "kiln.h"

enum {
	CHUNK = 64, /* events */
	BUFFER_BYTES = 16 << 20,
	CHUNKS = BUFFER_BYTES / (CHUNK * (int)sizeof(struct event)),
	AHEAD_BYTES = 512 << 10,
	TICK_NS = 10000000,
	NAME_MAX_BYTES = 120,
	NAMES_CACHED = 8 /* of each thread */
};

static struct {
	struct lock lock;    /* for all but the atomic ones */
	bool is_on, is_busy; /* busy: on, or being written */
	int64_t start, start_wall;
	size_t populated; /* bytes */
	struct event *_Atomic events;
	atomic_uint nchunks, generation; /* taken; counts traces */
	atomic_ullong lost;
	struct sequences stacks; /* of samples; by whoever drains them */
} trace = { .stacks = STACKS_INIT };

static __thread struct {
	uint32_t generation; /* of the chunk */
	uint32_t depth;	     /* of regions, also while there is no trace */
	struct event *next, *end;
	struct {
		const char *given, *kept;
	} names[NAMES_CACHED];
} mine __attribute__((tls_model("initial-exec")));

static bool take_chunk(void)
{
	struct event *events = atomic_load_explicit(&trace.events, memory_order_acquire);
	uint32_t generation = atomic_load(&trace.generation);
	uint32_t chunk = events ? atomic_fetch_add(&trace.nchunks, 1) : CHUNKS;

	if (chunk >= CHUNKS) {
		atomic_fetch_sub(&trace.nchunks, events ? 1 : 0);
		return false;
	}
	mine.generation = generation;
	mine.next = events + (size_t)chunk * CHUNK;
	mine.end = mine.next + CHUNK;
	return true;
}

void trace_add(const struct event *e)
{
	struct event *to;

	if ((mine.next == mine.end ||
	     mine.generation != atomic_load_explicit(&trace.generation, memory_order_relaxed)) &&
	    !take_chunk()) {
		atomic_fetch_add_explicit(&trace.lost, 1, memory_order_relaxed);
		return;
	}
	to = mine.next++;
	memcpy(to, e, offsetof(struct event, kind));
	atomic_store_explicit(&to->kind, e->kind, memory_order_release);
}

/* ---- what others tell */

void trace_span(const char *what, const void *object, int64_t start)
{
	trace_add(&(struct event){ .time = start,
				   .name = what,
				   .duration = now_ns() - start,
				   .object = (uint64_t)object,
				   .tid = local_tid(),
				   .kind = EVENT_SPAN });
}

static void add_now(enum event_kind kind, const char *name, int64_t value)
{
	trace_add(&(struct event){
		.time = now_ns(), .name = name, .value = value, .tid = local_tid(), .kind = kind });
}

void trace_instant(const char *what, int64_t value)
{
	add_now(EVENT_INSTANT, what, value);
}

void trace_thread_begins(void)
{
	add_now(EVENT_THREAD_BEGINS, NULL, 0);
}

/* Its name is gone with it. */
void trace_thread_ends(void)
{
	struct event e = { .time = now_ns(), .tid = local_tid(), .kind = EVENT_THREAD_ENDS };

	prctl(PR_GET_NAME, e.thread_name);
	trace_add(&e);
}

void trace_sample(const struct sample *s)
{
	trace_add(&(struct event){ .time = s->time,
				   .name = s->kind == SAMPLE_WALL ? "wall" : "cpu",
				   .value = s->weight,
				   .stack = sequence_add(&trace.stacks, s->frames, s->nframes),
				   .tid = s->tid,
				   .kind = EVENT_SAMPLE });
}

/* ---- what the program tells */

static struct sequences names = { .slots = 1 << 13, .words_max = 1 << 16 };

/* A copy that stays. */
static const char *keep_name(const char *name)
{
	uint64_t words[NAME_MAX_BYTES / 8 + 1] = { 0 };
	size_t n = strnlen(name, NAME_MAX_BYTES);
	uint32_t kept;

	memcpy(words, name, n);
	kept = sequence_add(&names, words, (uint32_t)(n / 8 + 1));
	return kept ? (const char *)sequence_words(&names, kept, &(uint32_t){ 0 })
		    : "(too many names)";
}

/* The same, faster for a name at the same place as before, if it still is the same. */
static const char *find_name(const char *name)
{
	unsigned i = (unsigned)((uintptr_t)name * 0x9e3779b97f4a7c15u >> 32) % NAMES_CACHED;

	if (!name)
		return "";
	if (mine.names[i].given != name || strcmp(mine.names[i].kept, name) != 0) {
		mine.names[i].kept = keep_name(name);
		mine.names[i].given = name;
	}
	return mine.names[i].kept;
}

static void add_of_program(enum event_kind kind, const char *name, int64_t value)
{
	int kept = errno;

	agent_enter();
	add_now(kind, kind == EVENT_REGION_ENDS ? NULL : find_name(name), value);
	agent_leave();
	errno = kept;
}

KILN_API void kiln_region_begin(const char *name)
{
	mine.depth++;
	if (agent_is_on(ON_TRACE) && !local.inside)
		add_of_program(EVENT_REGION_BEGINS, name, mine.depth);
}

KILN_API void kiln_region_end(void)
{
	if (mine.depth == 0)
		return;
	if (agent_is_on(ON_TRACE) && !local.inside)
		add_of_program(EVENT_REGION_ENDS, NULL, mine.depth);
	mine.depth--;
}

KILN_API void kiln_counter(const char *name, int64_t value)
{
	if (agent_is_on(ON_TRACE) && !local.inside)
		add_of_program(EVENT_COUNTER, name, value);
}

/* ---- from start to stop */

static bool reserve(void)
{
	if (!atomic_load(&trace.events))
		atomic_store(&trace.events, pages_map(BUFFER_BYTES));
	return atomic_load(&trace.events);
}

/* Touches what will be needed soon, so that the program's threads need not wait for the kernel to
 * clear a page. Only that is lost if it fails. */
static void populate(void)
{
	char *events = (char *)atomic_load(&trace.events);
	size_t used = (size_t)atomic_load(&trace.nchunks) * CHUNK * sizeof(struct event);
	size_t end = (used + AHEAD_BYTES) & ~(size_t)(AHEAD_BYTES - 1);

	end = end < BUFFER_BYTES ? end : BUFFER_BYTES;
	if (end > trace.populated)
		madvise(events + trace.populated, end - trace.populated, MADV_POPULATE_WRITE);
	trace.populated = end > trace.populated ? end : trace.populated;
}

static bool begin(void)
{
	if (trace.is_busy || !reserve()) {
		errno = trace.is_busy ? EBUSY : ENOMEM;
		return false;
	}
	atomic_store(&trace.nchunks, 0);
	atomic_store(&trace.lost, 0);
	atomic_fetch_add(&trace.generation, 1);
	trace.populated = 0;
	populate();
	trace.start = now_ns();
	trace.start_wall = wall_ns();
	sched_start(trace.start);
	trace.is_on = trace.is_busy = true;
	return true;
}

/* Events up to now, in memory of their own, `*bytes` of it. */
static void copy_events(struct trace *to, size_t *bytes)
{
	const struct event *from = atomic_load(&trace.events);
	size_t n = (size_t)atomic_load(&trace.nchunks);

	n = (n < CHUNKS ? n : CHUNKS) * CHUNK;
	*bytes = n * sizeof(*from);
	to->events = n ? pages_map(*bytes) : NULL;
	if (n && !to->events)
		to->lost += n;
	for (size_t i = 0; to->events && i < n; i++) {
		struct event *e = &to->events[to->n];
		unsigned kind = atomic_load_explicit(&from[i].kind, memory_order_acquire);

		if (kind == EVENT_NONE)
			continue;
		memcpy(e, &from[i], offsetof(struct event, kind));
		e->kind = kind;
		to->n += e->time <= to->end;
	}
	madvise(atomic_load(&trace.events), BUFFER_BYTES, MADV_DONTNEED);
}

/* Those are nested, the longer ones outside. */
static bool has_duration(const struct event *e)
{
	return e->kind == EVENT_SPAN || e->kind >= EVENT_RAN;
}

static int compare(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (has_duration(x) && has_duration(y) && x->duration != y->duration)
		return x->duration > y->duration ? -1 : 1;
	return 0;
}

bool trace_start(void)
{
	bool has_begun;

	lock_take(&trace.lock);
	has_begun = begin();
	lock_give(&trace.lock);
	if (!has_begun)
		return false;
	if (!agent_switch_on(ON_TRACE)) {
		lock_take(&trace.lock);
		sched_stop(now_ns());
		trace.is_on = trace.is_busy = false;
		lock_give(&trace.lock);
		errno = EAGAIN;
		return false;
	}
	agent_wake();
	return true;
}

void trace_stop(struct out *o)
{
	struct trace t = { .pid = getpid(), .stacks = &trace.stacks };
	size_t bytes = 0;

	if (agent_is_on(ON_CPU | ON_WALL))
		samples_drain();
	lock_take(&trace.lock);
	if (!trace.is_on) {
		lock_give(&trace.lock);
		return;
	}
	agent_switch_off(ON_TRACE);
	t.start = trace.start;
	t.start_wall = trace.start_wall;
	t.end = now_ns();
	sched_stop(t.end);
	t.lost = atomic_load(&trace.lost);
	t.switches_lost = sched_lost();
	t.unwatched = sched_unwatched();
	t.scheduling = sched_method();
	copy_events(&t, &bytes);
	trace.is_on = false;
	lock_give(&trace.lock);
	sort(t.events, t.n, sizeof(*t.events), compare);
	samples_drain(); /* whoever saw that the trace is on has added its samples then */
	trace_write(o, &t);
	pages_unmap(t.events, bytes);
	sequences_reset(&trace.stacks);
	lock_take(&trace.lock);
	trace.is_busy = false;
	lock_give(&trace.lock);
}

static int64_t work(int64_t now)
{
	bool is_on;

	lock_take(&trace.lock);
	is_on = trace.is_on;
	if (is_on) {
		populate();
		add_now(EVENT_COUNTER, "heap in use", (int64_t)heap_in_use());
		sched_tick(now);
	}
	lock_give(&trace.lock);
	return is_on ? now + TICK_NS : INT64_MAX;
}

static void before_fork(void)
{
	lock_take(&trace.lock);
}

static void after_fork(void)
{
	lock_give(&trace.lock);
}

static void in_child(void)
{
	struct event *events = atomic_load(&trace.events);

	trace.is_on = trace.is_busy = false;
	sequences_reset(&trace.stacks);
	sched_forget();
	atomic_fetch_add(&trace.generation, 1);
	atomic_store(&trace.nchunks, 0);
	if (events)
		madvise(events, BUFFER_BYTES, MADV_DONTNEED);
	lock_give(&trace.lock);
}

const struct agent_part part_trace = { .name = "trace",
				       .work = work,
				       .before_fork = before_fork,
				       .after_fork = after_fork,
				       .in_child = in_child };
