/* trace_sched.c - when threads ran.
 *
 * The kernel tells of each switch of a thread of ours (perf_event_open), if it may. Where it may
 * not, as in many containers, and for threads beyond a number, we look at the time that they ran so
 * far every tick (schedstat), which says how much they ran, but not when.
 *
 * So we do for threads that are switched all the time, as long as they are: the kernel needs a
 * microsecond to tell of a switch, and threads that fight for a lock then sleep more often. Their
 * waits are in the trace anyway. An event that is merely disabled would cost as much. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/memory.h"
#include "agent/thread.h"
#include "agent/trace.h"

enum {
	THREADS_MAX = 512, /* that are watched */
	SWITCHES_MAX = 64, /* of them by their switches: each costs a file and a ring */
	PAGE = 4096,
	RING_BYTES = 8 * PAGE,
	MAP_BYTES = PAGE + RING_BYTES,
	LOWEST_FILE = 200,   /* programs expect theirs to have the low numbers */
	TICKS_PER_SCAN = 10, /* of many threads */
	TICK_NS = 40000000,
	TICK_TIME_NS = 10000000, /* where only times are known */
	SWITCHES_BUSY = 40,	 /* in a tick: 1000 a second */
};

struct watched {
	uint32_t tid;
	bool is_seen;	   /* by the last scan */
	bool has_switched; /* since its switches are watched */
	bool is_busy;	   /* its switches are too many: schedstat for now */
	bool was_busy;
	uint32_t switches;		   /* since the last tick */
	int fd;				   /* -1: schedstat */
	struct perf_event_mmap_page *ring; /* NULL: schedstat */
	int64_t since; /* nanoseconds: it runs since then; or when we looked last. 0: it waits */
	uint64_t first_ran, ran; /* nanoseconds of CPU time */
	uint64_t runs;		 /* how often it began to run, while it is busy */
};

static struct {
	struct watched *all; /* pages */
	uint32_t n, nswitches, ticks;
	bool has_switches; /* are we allowed? */
	uint64_t lost;
	uint32_t unwatched; /* threads that there was no room for, at most at a time */
	uint32_t busy;	    /* threads that were, at some time */
} sched;

/* ---- CPU time so far */

struct schedstat {
	uint64_t ran, runs; /* nanoseconds; how often it began to */
};

static struct schedstat read_schedstat(uint32_t tid)
{
	char path[64], text[64] = "", *at = text;
	struct schedstat s = { 0, 0 };
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%u/schedstat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return s;
	if (read(fd, text, sizeof(text) - 1) > 0) {
		s.ran = strtoull(at, &at, 10);
		strtoull(at, &at, 10); /* how long it could have run */
		s.runs = strtoull(at, &at, 10);
	}
	close(fd);
	return s;
}

static void add_run(const struct watched *w, enum event_kind kind, int64_t until, uint64_t ran)
{
	trace_add(&(struct event){ .time = w->since,
				   .duration = until - w->since,
				   .object = ran,
				   .tid = w->tid,
				   .kind = kind });
}

/* Returns how often it began to run since the last time. */
static uint64_t look_at_time(struct watched *w, int64_t now)
{
	struct schedstat s = read_schedstat(w->tid);
	uint64_t runs = s.runs > w->runs ? s.runs - w->runs : 0;

	if (s.ran > w->ran && now > w->since)
		add_run(w, EVENT_RAN_PART, now, s.ran - w->ran);
	w->ran = s.ran;
	w->runs = s.runs;
	w->since = now;
	return runs;
}

/* ---- switches */

static int open_switches(uint32_t tid)
{
	struct perf_event_attr a = { .type = PERF_TYPE_SOFTWARE,
				     .size = sizeof(a),
				     .config = PERF_COUNT_SW_DUMMY,
				     .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
				     .sample_id_all = 1,
				     .context_switch = 1,
				     .task = 1, /* when it ends: no switch is told then */
				     .exclude_kernel = 1,
				     .exclude_hv = 1,
				     .use_clockid = 1,
				     .clockid = CLOCK_MONOTONIC };
	int fd = (int)syscall(SYS_perf_event_open, &a, (long)tid, -1L, -1L,
			      (long)PERF_FLAG_FD_CLOEXEC);
	int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_FILE);

	if (moved >= 0)
		close(fd);
	return moved >= 0 ? moved : fd;
}

/* The program may have closed it, and have another file by that number. */
static bool is_our_file(int fd)
{
	static const char link[] = "anon_inode:[perf_event]";
	char path[32], text[sizeof(link)];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, text, sizeof(text)) == sizeof(link) - 1 &&
	       memcmp(text, link, sizeof(link) - 1) == 0;
}

static void unwatch_switches(struct watched *w)
{
	if (w->ring)
		munmap(w->ring, MAP_BYTES);
	if (w->fd >= 0 && is_our_file(w->fd))
		close(w->fd);
	if (w->ring)
		sched.nswitches--;
	w->ring = NULL;
	w->fd = -1;
}

static bool watch_switches(struct watched *w)
{
	void *ring;

	w->fd = open_switches(w->tid);
	if (w->fd < 0)
		return false;
	ring = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
	if (ring == MAP_FAILED) {
		unwatch_switches(w);
		return false;
	}
	w->ring = ring;
	sched.nswitches++;
	return true;
}

/* As the kernel writes them, up to what we want to know. */
struct switch_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time;
};

struct exit_record {
	struct perf_event_header header;
	uint32_t pid, parent_pid, tid, parent_tid;
	uint64_t time;
};

struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
};

static void stop_running(struct watched *w, int64_t time, enum event_kind kind)
{
	if (w->since && time > w->since)
		add_run(w, kind, time, (uint64_t)(time - w->since));
	w->since = 0;
}

static void take_switch(struct watched *w, const struct switch_record *r)
{
	bool is_preempted = r->header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;

	w->has_switched = true;
	if (r->header.misc & PERF_RECORD_MISC_SWITCH_OUT)
		stop_running(w, (int64_t)r->time, is_preempted ? EVENT_RAN_PREEMPTED : EVENT_RAN);
	else
		w->since = (int64_t)r->time;
	w->switches++;
}

static void take_exit(struct watched *w, const struct exit_record *r)
{
	if (r->tid != w->tid)
		return;
	w->has_switched = true;
	stop_running(w, (int64_t)r->time, EVENT_RAN);
}

static void copy_out(const char *ring, uint64_t at, void *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((char *)to)[i] = ring[(at + i) % RING_BYTES];
}

static void take_switches(struct watched *w)
{
	const char *ring = (const char *)w->ring + PAGE;
	uint64_t head = __atomic_load_n(&w->ring->data_head, __ATOMIC_ACQUIRE);
	uint64_t at = w->ring->data_tail;

	while (head - at >= sizeof(struct perf_event_header)) {
		union {
			struct perf_event_header header;
			struct switch_record switched;
			struct exit_record ended;
			struct lost_record lost;
		} r = { 0 };

		copy_out(ring, at, &r.header, sizeof(r.header));
		if (r.header.size < sizeof(r.header))
			break;
		copy_out(ring, at, &r, r.header.size < sizeof(r) ? r.header.size : sizeof(r));
		at += r.header.size;
		if (r.header.type == PERF_RECORD_SWITCH)
			take_switch(w, &r.switched);
		else if (r.header.type == PERF_RECORD_EXIT)
			take_exit(w, &r.ended);
		else if (r.header.type == PERF_RECORD_LOST)
			sched.lost += r.lost.lost;
	}
	__atomic_store_n(&w->ring->data_tail, at, __ATOMIC_RELEASE);
}

/* ---- threads */

static void watch(uint32_t tid, int64_t now)
{
	struct watched *w = &sched.all[sched.n++];

	*w = (struct watched){ .tid = tid, .is_seen = true, .fd = -1, .since = now };
	w->first_ran = w->ran = read_schedstat(tid).ran;
	if (sched.has_switches && sched.nswitches < SWITCHES_MAX)
		watch_switches(w);
}

static void become_busy(struct watched *w)
{
	struct schedstat s;

	take_switches(w);
	s = read_schedstat(w->tid);
	stop_running(w, now_ns(), EVENT_RAN);
	unwatch_switches(w);
	w->is_busy = true;
	sched.busy += !w->was_busy;
	w->was_busy = true;
	w->since = now_ns();
	w->ran = s.ran;
	w->runs = s.runs;
}

/* Whether it runs now is not known, but if it did not, the next switch says so. */
static void become_calm(struct watched *w)
{
	w->is_busy = w->has_switched = false;
	w->first_ran = w->ran;
	watch_switches(w);
}

static void look(struct watched *w, int64_t now)
{
	uint64_t runs;

	if (w->ring) {
		w->switches = 0;
		take_switches(w);
		if (w->switches / 2 > SWITCHES_BUSY)
			become_busy(w);
		return;
	}
	if (w->is_busy && now - w->since < TICK_NS / 2)
		return; /* too short to tell */
	runs = look_at_time(w, now);
	if (w->is_busy && runs < SWITCHES_BUSY / 2)
		become_calm(w);
}

/* One that was never switched has run all the time, or not at all. */
static void unwatch(struct watched *w, int64_t now)
{
	if (!w->ring) {
		look_at_time(w, now);
		return;
	}
	take_switches(w);
	if (!w->has_switched && read_schedstat(w->tid).ran == w->first_ran)
		w->since = 0;
	stop_running(w, now, EVENT_RAN);
	unwatch_switches(w);
}

static struct watched *find(uint32_t tid)
{
	for (uint32_t i = 0; i < sched.n; i++)
		if (sched.all[i].tid == tid)
			return &sched.all[i];
	return NULL;
}

static void scan(int64_t now)
{
	static struct tids tids; /* kept */
	uint32_t n;

	for (uint32_t i = 0; i < sched.n; i++)
		sched.all[i].is_seen = false;
	n = threads_list(&tids);
	for (uint32_t i = 0; i < n; i++) {
		struct watched *w = find(tids.at[i]);

		if (w)
			w->is_seen = true;
		else if (sched.n < THREADS_MAX)
			watch(tids.at[i], now);
	}
	if (n > THREADS_MAX && n - THREADS_MAX > sched.unwatched)
		sched.unwatched = n - THREADS_MAX;
	for (uint32_t i = 0; i < sched.n;) {
		if (sched.all[i].is_seen) {
			i++;
			continue;
		}
		unwatch(&sched.all[i], now);
		sched.all[i] = sched.all[--sched.n];
	}
}

/* A program that is short of files keeps them. */
static bool has_files(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= 4 * LOWEST_FILE;
}

static bool may_see_switches(void)
{
	struct watched probe = { .tid = (uint32_t)syscall(SYS_gettid), .fd = -1 };
	bool may = has_files() && watch_switches(&probe);

	unwatch_switches(&probe);
	return may;
}

void sched_start(int64_t now)
{
	int kept = errno;

	sched.n = sched.nswitches = sched.ticks = 0;
	sched.lost = sched.unwatched = sched.busy = 0;
	sched.all = pages_map(THREADS_MAX * sizeof(*sched.all));
	if (!sched.all)
		return;
	sched.has_switches = may_see_switches();
	scan(now);
	errno = kept;
}

void sched_tick(int64_t now)
{
	if (!sched.all)
		return;
	if (sched.n < SWITCHES_MAX || sched.ticks++ % TICKS_PER_SCAN == 0)
		scan(now);
	for (uint32_t i = 0; i < sched.n; i++)
		look(&sched.all[i], now);
}

int64_t sched_interval(void)
{
	return sched.has_switches ? TICK_NS : TICK_TIME_NS;
}

void sched_stop(int64_t now)
{
	for (uint32_t i = 0; sched.all && i < sched.n; i++)
		unwatch(&sched.all[i], now);
	pages_unmap(sched.all, THREADS_MAX * sizeof(*sched.all));
	sched.all = NULL;
}

/* Rings are not inherited, files are. */
void sched_forget(void)
{
	for (uint32_t i = 0; sched.all && i < sched.n; i++) {
		sched.all[i].ring = NULL;
		unwatch_switches(&sched.all[i]);
	}
	pages_unmap(sched.all, THREADS_MAX * sizeof(*sched.all));
	sched.all = NULL;
}

const char *sched_method(void)
{
	return sched.has_switches
		       ? "each switch, as the kernel tells (perf_event_open)"
		       : "CPU time of each 10 ms (schedstat): how long threads ran, but not "
			 "when in that time";
}

uint64_t sched_lost(void)
{
	return sched.lost;
}

uint32_t sched_unwatched(void)
{
	return sched.unwatched;
}

uint32_t sched_busy(void)
{
	return sched.busy;
}
