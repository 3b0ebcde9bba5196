/* trace_sched.c - when threads ran.
 *
 * The kernel tells of each switch of a thread of ours (perf_event_open), if it may. Where it may
 * not, as in many containers, and for threads beyond a number, we look at the time that they ran so
 * far every tick (schedstat), which says how much they ran, but not when. */
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

#include "agent/memory.h"
#include "agent/thread.h"
#include "agent/trace.h"

enum {
	THREADS_MAX = 512, /* that are watched */
	SWITCHES_MAX = 64, /* of them by their switches: each costs a file and a ring */
	PAGE = 4096,
	RING_BYTES = 4 * PAGE,
	MAP_BYTES = PAGE + RING_BYTES,
	LOWEST_FILE = 200,  /* programs expect theirs to have the low numbers */
	TICKS_PER_SCAN = 10 /* of many threads */
};

struct watched {
	uint32_t tid;
	bool is_seen;			   /* by the last scan */
	bool has_switched;		   /* since the start */
	int fd;				   /* -1: schedstat */
	struct perf_event_mmap_page *ring; /* NULL: schedstat */
	int64_t since; /* nanoseconds: it runs since then; or when we looked last. 0: it waits */
	uint64_t first_ran, ran; /* nanoseconds of CPU time */
};

static struct {
	struct watched *all; /* pages */
	uint32_t n, nswitches, ticks;
	bool has_switches; /* are we allowed? */
	uint64_t lost;
	uint32_t unwatched; /* threads that there was no room for, at most at a time */
} sched;

/* ---- CPU time so far */

static uint64_t time_ran(uint32_t tid)
{
	char path[64], text[64] = "";
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%u/schedstat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 ? strtoull(text, NULL, 10) : 0;
}

static void add_run(const struct watched *w, enum event_kind kind, int64_t until, uint64_t ran)
{
	trace_add(&(struct event){ .time = w->since,
				   .duration = until - w->since,
				   .object = ran,
				   .tid = w->tid,
				   .kind = kind });
}

static void look_at_time(struct watched *w, int64_t now)
{
	uint64_t ran = time_ran(w->tid);

	if (ran > w->ran && now > w->since)
		add_run(w, EVENT_RAN_PART, now, ran - w->ran);
	w->ran = ran;
	w->since = now;
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
	w->first_ran = w->ran = time_ran(tid);
	if (sched.has_switches && sched.nswitches < SWITCHES_MAX)
		watch_switches(w);
}

/* One that was never switched has run all the time, or not at all. */
static void unwatch(struct watched *w, int64_t now)
{
	if (!w->ring) {
		look_at_time(w, now);
		return;
	}
	take_switches(w);
	if (!w->has_switched && time_ran(w->tid) == w->first_ran)
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
	sched.lost = sched.unwatched = 0;
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
		if (sched.all[i].ring)
			take_switches(&sched.all[i]);
		else
			look_at_time(&sched.all[i], now);
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
