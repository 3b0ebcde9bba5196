/* agent_cost.c - what single things cost a program that has an agent, as it sees them itself.
 *
 *   agent_cost pairs DEPTH N     ns for malloc and free, below so many frames
 *   agent_cost live N            bytes of memory for each of so many small blocks
 *   agent_cost events N          ns for each of so many regions that begin or end, of a trace
 *   agent_cost ticks N           us that it does not run though it wants to for each tick of a CPU
 *                                profile, of so many short times with ticks and without
 *   agent_cost empty N           the same of a timer of its own, whose signals nobody wants
 *   agent_cost gaps SECONDS      how often a second it does not run for more than 50 us though no
 *                                other thread has the processor
 *   agent_cost tables [FILE ...] bytes and ns for a row of the tables that stacks are walked by, of
 *                                all that is loaded, with these libraries */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "agent/unwind.h"
#include "kiln.h"

enum { GAP_NS = 500, LONG_NS = 50000, WINDOW_NS = 40000000, SECOND = 1000000000 };

#define TICKS_A_SECOND 125.0 /* what KILN_CPU_RATE has to be */

/* Of an agent that is preloaded. */
#pragma weak kiln_region_begin
#pragma weak kiln_region_end

static int64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

/* ---- pairs */

static void *volatile kept;

__attribute__((noinline)) static double pairs_ns(unsigned depth, unsigned n)
{
	double ns;

	if (depth > 0) {
		ns = pairs_ns(depth - 1, n);
		__asm__ volatile("" ::: "memory"); /* no tail call */
		return ns;
	}
	int64_t start = now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (unsigned i = 0; i < n; i++) {
		kept = malloc(100);
		free(kept);
	}
	return (double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - start) / n;
}

/* ---- memory */

static long resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

static double live_bytes(unsigned n)
{
	long before = resident_bytes();

	for (unsigned i = 0; i < n; i++)
		kept = malloc(16);
	return (double)(resident_bytes() - before) / n;
}

/* ---- events */

static double event_ns(unsigned n)
{
	int64_t start = now_ns(CLOCK_THREAD_CPUTIME_ID);

	for (unsigned i = 0; kiln_region_begin && i < n / 2; i++) {
		kiln_region_begin("region");
		kiln_region_end();
	}
	return (double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - start) / n;
}

/* ---- gaps */

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Since the last call: did another thread have this one's processor? */
static bool was_preempted(void)
{
	static long last;
	long before = last;
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	last = usage.ru_nivcsw;
	return last != before;
}

static double counts_a_ns;

static void measure_counter(void)
{
	int64_t start = now_ns(CLOCK_MONOTONIC), now = start;
	uint64_t first = __rdtsc();

	while (now < start + SECOND / 10)
		now = now_ns(CLOCK_MONOTONIC);
	counts_a_ns = (double)(__rdtsc() - first) / (double)(now - start);
}

/* Looks at the counter for so long. Returns for how many ns of that it could not, though no other
 * thread had the processor. */
static double lost_ns(double window_ns, unsigned *nlong)
{
	uint64_t start = __rdtsc(), last = start, now, lost = 0,
		 end = start + (uint64_t)(window_ns * counts_a_ns),
		 least = (uint64_t)(GAP_NS * counts_a_ns),
		 longer = (uint64_t)(LONG_NS * counts_a_ns);

	for (; last < end; last = now) {
		now = __rdtsc();
		if (now - last < least)
			continue;
		if (!was_preempted()) {
			lost += now - last;
			*nlong += now - last > longer;
		}
		now = __rdtsc();
	}
	return (double)lost / counts_a_ns;
}

/* Past the agent's own function of that name. Those that come meanwhile wait. */
static void hold_ticks(bool is_held)
{
	uint64_t signals = 1ull << (SIGPROF - 1);

	syscall(SYS_rt_sigprocmask, is_held ? SIG_BLOCK : SIG_UNBLOCK, &signals, NULL,
		sizeof(signals));
}

static bool has_tick(void)
{
	sigset_t waiting;

	return sigpending(&waiting) == 0 && sigismember(&waiting, SIGPROF);
}

static void do_nothing(int signal)
{
	(void)signal;
}

/* As the agent's are: of this thread's CPU time. */
static void start_empty_ticks(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
	struct itimerspec each = { .it_interval.tv_nsec = (long)(SECOND / TICKS_A_SECOND) };
	timer_t timer;

	event._sigev_un._tid = gettid();
	each.it_value = each.it_interval;
	signal(SIGPROF, do_nothing);
	if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0)
		timer_settime(timer, 0, &each, NULL);
}

/* While one waits the kernel sends no more. Neighbours on the machine take more than ticks do, but
 * as much with them as without. */
static double tick_us(unsigned n)
{
	double *more = calloc(n + 1, sizeof(*more)), median;
	unsigned nlong = 0;

	for (unsigned i = 0; i < n; i++) {
		hold_ticks(true);
		while (!has_tick())
			;
		more[i] = -lost_ns(WINDOW_NS, &nlong);
		hold_ticks(false);
		more[i] += lost_ns(WINDOW_NS, &nlong);
	}
	qsort(more, n, sizeof(*more), compare_doubles);
	median = more[n / 2];
	free(more);
	return median / 1000 / (TICKS_A_SECOND * WINDOW_NS / SECOND);
}

/* ---- tables */

struct sum {
	struct unwind_scratch scratch;
	uint64_t rows, bytes;
	int64_t ns;
};

static int add_table(struct dl_phdr_info *info, size_t size, void *data)
{
	struct unwind_source source = { .base = info->dlpi_addr };
	const struct unwind_table *t;
	struct sum *s = data;
	int64_t start;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_GNU_EH_FRAME)
			source.header = source.base + p->p_vaddr;
		if (p->p_type == PT_LOAD)
			source.code_end = source.base + p->p_vaddr + p->p_memsz;
	}
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD &&
		    source.header - source.base - p->p_vaddr < p->p_filesz) {
			source.start = source.base + p->p_vaddr;
			source.end = source.start + p->p_filesz;
		}
	}
	start = now_ns(CLOCK_THREAD_CPUTIME_ID);
	t = unwind_build(&source, &s->scratch);
	s->ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	if (!t || !source.header)
		return 0;
	s->rows += t->blocks[t->nblocks];
	s->bytes += t->blocks[t->nblocks] * sizeof(*t->rows) + t->nblocks * sizeof(*t->blocks) +
		    t->nrules * sizeof(*t->rules);
	return 0;
}

static void print_tables(void)
{
	struct sum s = { 0 };

	dl_iterate_phdr(add_table, &s);
	unwind_scratch_release(&s.scratch);
	printf("%.2f %.1f %lu\n", (double)s.bytes / (double)s.rows, (double)s.ns / (double)s.rows,
	       (unsigned long)s.rows);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "pairs") == 0 && argc == 4) {
		pairs_ns((unsigned)atoi(argv[2]), 1000);
		printf("%.1f\n", pairs_ns((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3])));
	} else if (strcmp(what, "live") == 0 && argc == 3) {
		printf("%.1f\n", live_bytes((unsigned)atoi(argv[2])));
	} else if (strcmp(what, "events") == 0 && argc == 3) {
		printf("%.1f\n", event_ns((unsigned)atoi(argv[2])));
	} else if ((strcmp(what, "ticks") == 0 || strcmp(what, "empty") == 0) && argc == 3) {
		measure_counter();
		if (strcmp(what, "empty") == 0)
			start_empty_ticks();
		printf("%.1f\n", tick_us((unsigned)atoi(argv[2])));
	} else if (strcmp(what, "gaps") == 0 && argc == 3) {
		unsigned seconds = (unsigned)atoi(argv[2]), nlong = 0;

		measure_counter();
		lost_ns((double)seconds * SECOND, &nlong);
		printf("%.1f\n", (double)nlong / seconds);
	} else if (strcmp(what, "tables") == 0) {
		for (int i = 2; i < argc; i++)
			if (!dlopen(argv[i], RTLD_NOW))
				return 1;
		print_tables();
	} else {
		return 2;
	}
	return 0;
}
