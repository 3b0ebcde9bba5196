/* example.c - a program that takes its own CPU profile: what `make run` shows.
 *
 *	example OUT.pb.gz
 *
 * A timer signal every 4 ms of CPU time records the stack; afterwards the stacks get names from the
 * dynamic symbol table and are written as a profile. The real agent does this for any program.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "profile/build.h"

#define DEPTH_MAX 60
#define SAMPLES_MAX 5000
#define PERIOD_NS 4000000
#define HANDLER_FRAMES 2 /* on_tick and the kernel's return stub */
#define VISIBLE __attribute__((visibility("default"), noipa))

struct tick {
	void *pc[DEPTH_MAX];
	int depth;
	const char *phase;
};

/* What the signal handler sees. */
static struct tick ticks[SAMPLES_MAX];
static volatile sig_atomic_t nticks;
static const char *volatile phase = "start";

static void on_tick(int sig)
{
	struct tick *t = &ticks[nticks];

	(void)sig;
	if (nticks == SAMPLES_MAX)
		return;
	t->depth = backtrace(t->pc, DEPTH_MAX);
	t->phase = phase;
	nticks = nticks + 1;
}

/* ---- something to do */

static volatile double sink;

/* Seen by dladdr, and not inlined, so that the profile has something to show. */
VISIBLE double collatz(unsigned n);
VISIBLE double integrate(unsigned n);
VISIBLE double fibonacci(unsigned n);
VISIBLE void compute(void);
VISIBLE void recurse(void);
VISIBLE void work(void);
VISIBLE int main(int argc, char **argv);

double collatz(unsigned n)
{
	unsigned steps = 0;

	for (uint64_t x = n; x != 1; steps++)
		x = x % 2 ? 3 * x + 1 : x / 2;
	return steps;
}

double integrate(unsigned n)
{
	double sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += sqrt((double)i) * sin((double)i / n);
	return sum;
}

double fibonacci(unsigned n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

void compute(void)
{
	phase = "compute";
	for (unsigned n = 1; n < 1500000; n++)
		sink += collatz(n);
	sink += integrate(20000000);
}

void recurse(void)
{
	phase = "recurse";
	sink += fibonacci(39);
}

void work(void)
{
	compute();
	recurse();
	phase = "end";
}

/* ---- the profile */

static uint32_t add_mapping(struct builder *b, const Dl_info *info)
{
	uint32_t file = builder_string(b, str_of(info->dli_fname));

	for (uint32_t i = 0; i < b->mappings.n; i++)
		if (b->mappings.at[i].file == file)
			return i;
	vec_push(&b->mappings, (struct mapping){ .id = b->mappings.n + 1,
						 .start = (uintptr_t)info->dli_fbase,
						 .limit = (uintptr_t)info->dli_fbase + (1 << 24),
						 .file = file });
	return (uint32_t)b->mappings.n - 1;
}

static uint32_t add_function(struct builder *b, const char *symbol)
{
	uint32_t name = builder_string(b, str_of(symbol));

	for (uint32_t i = 0; i < b->functions.n; i++)
		if (b->functions.at[i].name == name)
			return i;
	vec_push(&b->functions,
		 (struct function){ .id = b->functions.n + 1, .name = name, .system_name = name });
	return (uint32_t)b->functions.n - 1;
}

static uint32_t add_location(struct builder *b, uintptr_t pc)
{
	Dl_info info = { 0 };
	struct location l = { .id = b->locations.n + 1, .address = pc, .mapping = NONE };

	for (uint32_t i = 0; i < b->locations.n; i++)
		if (b->locations.at[i].address == pc)
			return i;
	if (dladdr((void *)pc, &info) && info.dli_fname)
		l.mapping = add_mapping(b, &info);
	l.first_line = (uint32_t)b->lines.n;
	if (info.dli_sname) {
		l.nlines = 1;
		vec_push(&b->lines, (struct line){ .function = add_function(b, info.dli_sname) });
	}
	vec_push(&b->locations, l);
	return (uint32_t)b->locations.n - 1;
}

/* What called main is the same in every stack. */
static bool is_main(const struct builder *b, uint32_t location)
{
	const struct location *l = &b->locations.at[location];
	uint32_t function;

	if (!l->nlines)
		return false;
	function = b->lines.at[l->first_line].function;
	return str_eq(b->head.strings->at[b->functions.at[function].name], STR("main"));
}

static void add_tick(struct builder *b, const struct tick *t)
{
	uint32_t stack[DEPTH_MAX];
	size_t n = 0;
	struct label_input label = { { .key = builder_string(b, STR("phase")),
				       .text = builder_string(b, str_of(t->phase)) },
				     false };

	/* A return address may lie behind the last instruction of the caller: one back. */
	for (int i = HANDLER_FRAMES; i < t->depth; i++) {
		stack[n] = add_location(b, (uintptr_t)t->pc[i] - (i > HANDLER_FRAMES));
		if (is_main(b, stack[n++]))
			break;
	}
	builder_sample(b, stack, n, label_table_add(&b->labels, b->head.strings, &label, 1),
		       (int64_t[]){ 1, PERIOD_NS });
}

static void add_types(struct builder *b)
{
	struct value_type cpu = { builder_string(b, STR("cpu")),
				  builder_string(b, STR("nanoseconds")) };

	vec_push(&b->types, (struct value_type){ builder_string(b, STR("samples")),
						 builder_string(b, STR("count")) });
	vec_push(&b->types, cpu);
	b->head.period_type = cpu;
	b->head.period = PERIOD_NS;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool write_profile(const char *path, int64_t start_ns, int64_t end_ns)
{
	struct strings strings;
	struct arena arena = { 0 };
	struct builder b;
	struct profile p;
	struct buf out = { 0 };
	struct err e;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	bool ok;

	strings_init(&strings);
	builder_init(&b, &strings);
	add_types(&b);
	b.head.time_nanos = start_ns;
	b.head.duration_nanos = end_ns - start_ns;
	for (int i = 0; i < nticks; i++)
		add_tick(&b, &ticks[i]);
	builder_finish(&b, &arena, &p);
	profile_encode_gzip(&out, &p);
	buf_to_fd(&out, fd);
	ok = fd >= 0 && buf_flush(&out, &e) && close(fd) == 0;
	buf_release(&out);
	arena_release(&arena);
	strings_release(&strings);
	return ok;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
	struct timeval period = { 0, PERIOD_NS / 1000 };
	void *first[1];
	int64_t start_ns = now_ns();

	if (argc != 2) {
		fprintf(stderr, "usage: example OUT.pb.gz\n");
		return 2;
	}
	/* The first backtrace() loads a library, which a signal handler must not. */
	backtrace(first, 1);
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &(struct itimerval){ period, period }, NULL);
	work();
	setitimer(ITIMER_PROF, &(struct itimerval){ 0 }, NULL);
	if (!write_profile(argv[1], start_ns, now_ns())) {
		perror(argv[1]);
		return 1;
	}
	return 0;
}
