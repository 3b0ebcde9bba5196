#include "agent/perf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/kernel.h"
#include "agent/sort.h"

/* A file for each thread: with so few allowed there are none to spare, and of more than that no
 * more than a part is taken, from a number on that the program does not reach soon. */
enum { FILES_FEW = 256, FILES_PART = 8, NUMBER_HIGH = 1000 };

static struct {
	bool are_wanted;
	int64_t cost;			 /* of one sample by an event, in ns; 0: not measured */
	atomic_int error;		 /* why a thread has none */
	atomic_bool is_refused;		 /* for good */
	atomic_uint with, without, gone; /* threads; gone: closed by the program */
} events;
static atomic_uint nfiles;

/* ---- are they wanted? */

/* As often the kernel looks at timers. */
static int64_t kernel_tick(void)
{
	struct timespec t = { 0, 0 };

	kernel_call(SYS_clock_getres, CLOCK_MONOTONIC_COARSE, (long)&t, 0, 0);
	return t.tv_nsec;
}

static bool is_chosen(int64_t period, int64_t tick)
{
	const char *engine = settings.cpu_engine;

	if (engine && strcmp(engine, "perf") == 0)
		return true;
	if (engine && strcmp(engine, "timer") == 0)
		return false;
	if (engine && strcmp(engine, "auto") != 0)
		agent_say("KILN_CPU_ENGINE=%.100s is not timer, perf or auto; set to auto instead",
			  engine);
	return period < tick;
}

/* Of a real-time signal that cannot be queued the kernel makes a SIGIO, which ends the program; and
 * of those with codes of their own the file's number is not told. */
static bool is_fit(int64_t signal)
{
	static const int others[] = { SIGILL,  SIGTRAP, SIGBUS,	 SIGFPE,
				      SIGSEGV, SIGCHLD, SIGPOLL, SIGSYS };

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (signal == others[i])
			return false;
	return signal <= SIGSYS;
}

/* ---- files */

static bool is_event(uint64_t event)
{
	uint64_t id = 0;

	return event > EVENT_GONE &&
	       kernel_call(SYS_ioctl, EVENT_FD(event), PERF_EVENT_IOC_ID, (long)&id, 0) == 0 &&
	       id << EVENT_FD_BITS == (event & ~(uint64_t)EVENT_FD_MAX);
}

/* Returns the number it has then, or a negative errno value. */
static int move_up(int fd)
{
	struct rlimit limit = { 0, 0 };
	rlim_t half;
	long moved = -EMFILE;

	kernel_call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit);
	half = limit.rlim_cur / 2;
	if (limit.rlim_cur >= FILES_FEW && atomic_load(&nfiles) <= limit.rlim_cur / FILES_PART)
		moved = kernel_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC,
				    half < NUMBER_HIGH ? (long)half : NUMBER_HIGH, 0);
	kernel_call(SYS_close, fd, 0, 0, 0);
	if (moved <= EVENT_FD_MAX)
		return (int)moved;
	kernel_call(SYS_close, moved, 0, 0, 0);
	return -EMFILE;
}

/* Of the calling thread. */
static int open_event(uint64_t delay)
{
	struct perf_event_attr attributes;
	long fd;

	memset(&attributes, 0, sizeof(attributes));
	attributes.size = sizeof(attributes);
	attributes.type = PERF_TYPE_SOFTWARE;
	attributes.config = PERF_COUNT_SW_TASK_CLOCK;
	attributes.sample_period = delay;
	attributes.exclude_kernel = attributes.exclude_hv = 1;
	fd = kernel_call6(SYS_perf_event_open, (long)&attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC,
			  0);
	return fd < 0 ? (int)fd : move_up((int)fd);
}

/* From now on it sends signals to the calling thread. Returns a negative errno value, or 0. */
static long connect_event(int fd)
{
	struct f_owner_ex owner = { F_OWNER_TID, (pid_t)kernel_call(SYS_gettid, 0, 0, 0, 0) };
	long failed = kernel_call(SYS_fcntl, fd, F_SETSIG, settings.signal, 0);

	if (!failed)
		failed = kernel_call(SYS_fcntl, fd, F_SETOWN_EX, (long)&owner, 0);
	return failed ? failed : kernel_call(SYS_fcntl, fd, F_SETFL, O_ASYNC, 0);
}

/* Returns a negative errno value, or 0. */
static int make_event(uint64_t delay, uint64_t *event)
{
	uint64_t id = 0;
	int fd = open_event(delay);
	long failed;

	if (fd < 0)
		return fd;
	event_fds_note(fd);
	failed = kernel_call(SYS_ioctl, fd, PERF_EVENT_IOC_ID, (long)&id, 0);
	if (!failed)
		failed = connect_event(fd);
	if (failed)
		kernel_call(SYS_close, fd, 0, 0, 0);
	*event = id << EVENT_FD_BITS | (uint64_t)fd;
	return (int)failed;
}

/* ---- how often?
 *
 * An interrupt takes a microsecond of one machine and fifty of another, where a hypervisor is asked
 * for each. So it is measured, and there are as many as KILN_CPU_BUDGET allows. */

enum {
	TRIES = 8,
	TRY_NS = 60000,
	LOOKS_MAX = 100000, /* in one: somebody may have stopped the clock (libfaketime) */
	SIGNAL_NS = 8000,   /* for delivery, and to walk a stack: 4 to 10 us */
};

/* Looks at the clock for so long: how much of it did others use? */
static int64_t lost_time(void)
{
	enum { FAR = 8 };
	int64_t start = now_ns(), last = start, least = TRY_NS, lost = 0, now, gap;

	for (unsigned i = 0; i < LOOKS_MAX && last - start < TRY_NS; i++) {
		now = now_ns();
		gap = now - last;
		least = gap < least ? gap : least;
		if (gap > FAR * (least + 1))
			lost += gap - least;
		last = now;
	}
	return lost;
}

static int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* One event in each try, with all that is done for a signal except that nobody gets it. What else
 * goes on is not in every other try. 0: there can be no events. */
static int64_t measure_cost(void)
{
	int64_t times[TRIES];
	int fd = open_event(TRY_NS);

	if (fd < 0)
		return 0;
	kernel_call(SYS_fcntl, fd, F_SETFL, O_ASYNC, 0);
	for (unsigned i = 0; i < TRIES; i++)
		times[i] = lost_time();
	kernel_call(SYS_fcntl, fd, F_SETFL, 0, 0);
	kernel_call(SYS_close, fd, 0, 0, 0);
	sort(times, TRIES, sizeof(*times), compare_times);
	return times[TRIES / 2] + SIGNAL_NS;
}

/* Ticks of timers come anyway, and leave the rest to events. Half of the budget is for those, and
 * for what becomes of samples. */
static void set_pace(uint64_t period, uint64_t tick)
{
	struct cpu_pace pace = { .period = period, .event_period = period };
	double ticks = 0, rate, allowed; /* a nanosecond */

	pace.is_uneven = period > tick && !events.are_wanted;
	pace.timers_count = period < tick;
	if (pace.timers_count)
		ticks = 1.0 / (double)tick;
	rate = 1.0 / (double)period - ticks;
	if (settings.cpu_budget > 0 && events.cost) {
		allowed = (double)settings.cpu_budget / 100 / 2 / (double)events.cost;
		rate = allowed < rate ? allowed : rate;
	}
	pace.event_period = (uint64_t)(1 / rate);
	pace.stands_for = (uint64_t)(1 / (rate + ticks));
	cpu_pace = pace;
}

void perf_prepare(int64_t period)
{
	int64_t tick = kernel_tick();

	events.are_wanted = is_chosen(period, tick);
	atomic_store(&events.with, 0);
	atomic_store(&events.without, 0);
	atomic_store(&events.gone, 0);
	atomic_store(&events.is_refused, !is_fit(settings.signal));
	atomic_store(&events.error, ENOTSUP);
	if (events.are_wanted && !events.cost)
		events.cost = measure_cost();
	set_pace((uint64_t)period, (uint64_t)tick);
}

/* ---- a thread's */

static void lack_event(int error)
{
	atomic_fetch_add(&events.without, 1);
	atomic_store(&events.error, error);
	if (error != EMFILE && error != ENFILE && error != ENOMEM)
		atomic_store(&events.is_refused, true);
}

static void close_event(uint64_t event)
{
	atomic_fetch_sub(&nfiles, 1);
	if (!is_event(event))
		return;
	/* A child that we did not see start may have it too, and so keep it alive. */
	kernel_call(SYS_fcntl, EVENT_FD(event), F_SETFL, 0, 0);
	kernel_call(SYS_close, EVENT_FD(event), 0, 0, 0);
}

void perf_start(struct cpu_timer *t)
{
	atomic_store_explicit(&t->event, events.are_wanted ? EVENT_WANTED : 0,
			      memory_order_relaxed);
}

void perf_open(struct cpu_timer *t)
{
	/* At a random time, as the first tick was. */
	uint64_t delay = (t->chance * cpu_pace.event_period >> 32) + 1, event = EVENT_GONE;
	unsigned long long wanted = EVENT_WANTED;
	int error;

	atomic_fetch_add(&nfiles, 1);
	error = atomic_load(&events.is_refused) ? atomic_load(&events.error)
						: -make_event(delay, &event);
	t->is_steady = false;
	if (error) {
		atomic_fetch_sub(&nfiles, 1);
		lack_event(error);
		event = EVENT_GONE;
	} else {
		atomic_fetch_add(&events.with, 1);
	}
	/* Somebody may have ended the timer meanwhile. */
	if (!atomic_compare_exchange_strong(&t->event, &wanted, event) && event != EVENT_GONE)
		close_event(event);
}

/* One that is not wanted at first never is. */
void perf_end(struct cpu_timer *t)
{
	uint64_t event = atomic_load_explicit(&t->event, memory_order_relaxed);

	if (event)
		event = atomic_exchange(&t->event, 0);
	if (event > EVENT_GONE)
		close_event(event);
}

void perf_check(struct cpu_timer *t)
{
	unsigned long long event = atomic_load(&t->event);

	if (event <= EVENT_GONE || is_event(event) ||
	    !atomic_compare_exchange_strong(&t->event, &event, EVENT_GONE))
		return;
	atomic_fetch_sub(&nfiles, 1);
	atomic_fetch_add(&events.gone, 1);
}

void perf_leave(struct cpu_timer *t)
{
	uint64_t event = atomic_exchange(&t->event, 0);

	if (is_event(event))
		kernel_call(SYS_close, EVENT_FD(event), 0, 0, 0);
	atomic_store(&nfiles, 0);
}

void perf_comment(struct record *r)
{
	long long a_second = kernel_tick() ? 1000000000 / kernel_tick() : 0;
	unsigned with = atomic_load(&events.with), without = atomic_load(&events.without),
		 gone = atomic_load(&events.gone);

	if (with)
		record_comment(r, "perf events: %u threads", with);
	if (with && cpu_pace.stands_for > cpu_pace.period)
		record_comment(r,
			       "at most %lld samples a second of a thread, as an event costs %lld "
			       "us here (KILN_CPU_BUDGET=%lld)",
			       (long long)(1000000000 / cpu_pace.stands_for),
			       (long long)events.cost / 1000, (long long)settings.cpu_budget);
	if (without)
		record_comment(r,
			       "%u threads have no perf event (%s), and at most %lld samples a "
			       "second",
			       without, strerrorname_np(atomic_load(&events.error)), a_second);
	if (gone)
		record_comment(r,
			       "the program closed the perf events of %u threads: at most %lld "
			       "samples a second from then on",
			       gone, a_second);
}
