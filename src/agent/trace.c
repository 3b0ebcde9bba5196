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
	BUFFER_BYTES = 16 << 20,
	CHUNKS = BUFFER_BYTES / (int)sizeof(struct chunk),
	AHEAD_BYTES = 512 << 10,
	HEAP_NS = 10000000, /* between two of its numbers */
	THREADS_NS = 10000000,
	SHORT_NS = 1000,
	NAME_MAX_BYTES = 120,
	NAMES_CACHED = 8 /* of each thread */
};

static struct {
	struct lock lock;    /* for all but the atomic ones */
	bool is_on, is_busy; /* busy: on, or being written */
	int64_t start, start_wall;
	size_t populated; /* bytes */
	struct chunk *_Atomic chunks;
	atomic_uint nchunks, generation; /* taken; counts traces */
	atomic_ullong lost;
	atomic_llong heap_told, threads_told; /* when, the last time */
	struct sequences stacks;	      /* of samples; by whoever drains them */
} trace = { .stacks = STACKS_INIT };

static __thread struct {
	uint32_t generation; /* of the chunk */
	uint32_t depth;	     /* of regions, also while there is no trace */
	struct chunk *chunk;
	struct event *next, *end; /* in there */
	struct {
		const char *given, *kept;
	} names[NAMES_CACHED];
} mine __attribute__((tls_model("initial-exec")));

static bool take_chunk(void)
{
	struct chunk *chunks = atomic_load_explicit(&trace.chunks, memory_order_acquire);
	uint32_t generation = atomic_load(&trace.generation);
	uint32_t chunk = chunks ? atomic_fetch_add(&trace.nchunks, 1) : CHUNKS;

	if (chunk >= CHUNKS) {
		atomic_fetch_sub(&trace.nchunks, chunks ? 1 : 0);
		return false;
	}
	atomic_store_explicit(&chunks[chunk].owner, local_tid(), memory_order_relaxed);
	mine.generation = generation;
	mine.chunk = &chunks[chunk];
	mine.next = mine.chunk->events;
	mine.end = mine.next + CHUNK_EVENTS;
	return true;
}

static bool has_room(void)
{
	if (mine.next != mine.end &&
	    mine.generation == atomic_load_explicit(&trace.generation, memory_order_relaxed))
		return true;
	if (take_chunk())
		return true;
	atomic_fetch_add_explicit(&trace.lost, 1, memory_order_relaxed);
	return false;
}

void trace_add(const struct event *e)
{
	struct event *to;

	if (!has_room())
		return;
	to = mine.next++;
	memcpy(to, e, offsetof(struct event, kind));
	atomic_store_explicit(&to->kind, e->kind, memory_order_release);
}

/* ---- what others tell */

static void count_short_wait(void)
{
	uint32_t n;

	if (!has_room())
		return;
	n = atomic_load_explicit(&mine.chunk->short_waits, memory_order_relaxed);
	atomic_store_explicit(&mine.chunk->short_waits, n + 1, memory_order_relaxed);
}

/* Who finds a lock held, and has it before the kernel is asked, did not wait in earnest. Of a busy
 * lock there are a hundred such for each that did, and they would take its room. */
void trace_span(const char *what, const void *object, int64_t start, int64_t end)
{
	if (end - start < SHORT_NS) {
		count_short_wait();
		return;
	}
	trace_add(&(struct event){ .time = start,
				   .name = what,
				   .duration = end - start,
				   .object = (uint64_t)object,
				   .tid = local_tid(),
				   .kind = EVENT_SPAN });
}

static void add_at(int64_t time, enum event_kind kind, const char *name, int64_t value)
{
	trace_add(&(struct event){
		.time = time, .name = name, .value = value, .tid = local_tid(), .kind = kind });
}

static void add_now(enum event_kind kind, const char *name, int64_t value)
{
	add_at(now_ns(), kind, name, value);
}

/* Has it been so long since `last`? Then it was just now, and whoever asks at the same time is told
 * that it was not. */
static bool is_due(atomic_llong *last, int64_t now, int64_t each)
{
	long long was = atomic_load_explicit(last, memory_order_relaxed);

	return now - was >= each && atomic_compare_exchange_strong(last, &was, now);
}

static void add_heap(int64_t now)
{
	if (is_due(&trace.heap_told, now, HEAP_NS))
		add_at(now, EVENT_COUNTER, "heap in use", (int64_t)heap_in_use());
}

/* Whoever allocates says how large the heap is: the agent wakes up less often than that. */
void trace_malloc(size_t bytes)
{
	int64_t now = now_ns();

	add_at(now, EVENT_INSTANT, "malloc", (int64_t)bytes);
	add_heap(now);
}

/* So that it is soon seen when it runs. */
void trace_thread_begins(void)
{
	int64_t now = now_ns();

	add_at(now, EVENT_THREAD_BEGINS, NULL, 0);
	if (is_due(&trace.threads_told, now, THREADS_NS))
		agent_wake();
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
	if (!atomic_load(&trace.chunks))
		atomic_store(&trace.chunks, pages_map(BUFFER_BYTES));
	return atomic_load(&trace.chunks);
}

/* Touches what will be needed soon, so that the program's threads need not wait for the kernel to
 * clear a page. Only that is lost if it fails. */
static void populate(void)
{
	char *chunks = (char *)atomic_load(&trace.chunks);
	size_t used = (size_t)atomic_load(&trace.nchunks) * sizeof(struct chunk);
	size_t end = (used + AHEAD_BYTES) & ~(size_t)(AHEAD_BYTES - 1);

	end = end < BUFFER_BYTES ? end : BUFFER_BYTES;
	if (end > trace.populated)
		madvise(chunks + trace.populated, end - trace.populated, MADV_POPULATE_WRITE);
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
	atomic_store(&trace.heap_told, 0);
	atomic_fetch_add(&trace.generation, 1);
	trace.populated = 0;
	populate();
	trace.start = now_ns();
	trace.start_wall = wall_ns();
	sched_start(trace.start);
	trace.is_on = trace.is_busy = true;
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct chunk_place *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	return x->chunk < y->chunk ? -1 : x->chunk > y->chunk;
}

/* A thread takes one chunk after the other, so that all it wrote is in order then. */
static void sort_chunks(struct trace *t)
{
	struct chunk_place *order;
	uint32_t n = atomic_load(&trace.nchunks);

	n = n < CHUNKS ? n : CHUNKS;
	t->chunks = atomic_load(&trace.chunks);
	order = n ? pages_map(n * sizeof(*order)) : NULL;
	if (!order) {
		t->lost += (uint64_t)n * CHUNK_EVENTS;
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		order[i] = (struct chunk_place){ t->chunks[i].owner, i };
	sort(order, n, sizeof(*order), compare);
	t->order = order;
	t->nchunks = n;
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
	t.busy = sched_busy();
	t.scheduling = sched_method();
	trace.is_on = false;
	lock_give(&trace.lock);
	samples_drain(); /* whoever saw that the trace is on has added its samples then */
	sort_chunks(&t);
	trace_write(o, &t);
	pages_unmap(t.order, t.nchunks * sizeof(*t.order));
	sequences_reset(&trace.stacks);
	lock_take(&trace.lock);
	madvise(atomic_load(&trace.chunks), BUFFER_BYTES, MADV_DONTNEED);
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
		add_heap(now);
		sched_tick(now);
	}
	lock_give(&trace.lock);
	return is_on ? now + sched_interval() : INT64_MAX;
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
	struct chunk *chunks = atomic_load(&trace.chunks);

	trace.is_on = trace.is_busy = false;
	sequences_reset(&trace.stacks);
	sched_forget();
	atomic_fetch_add(&trace.generation, 1);
	atomic_store(&trace.nchunks, 0);
	if (chunks)
		madvise(chunks, BUFFER_BYTES, MADV_DONTNEED);
	lock_give(&trace.lock);
}

const struct agent_part part_trace = { .name = "trace",
				       .work = work,
				       .before_fork = before_fork,
				       .after_fork = after_fork,
				       .in_child = in_child };
