/* cpu_kinds.c - threads of all kinds that use CPU time, each in a function of its own. Prints what
 * each used: name and nanoseconds. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define NO_INLINE __attribute__((noinline, noclone))

enum {
	ON_MAIN,
	ON_PTHREAD,
	ON_SHORT,
	ON_C11,
	ON_CLONE,
	ON_BLOCKED,
	ON_CALLS,
	ON_LATE,
	RUN_MIXED,
	CREATE_MIXED,
	KINDS,
	MOMENTS = 1000,
	MIXED = 4000,
	LONGER_EACH = 200,
};
static const char *const names[] = { "on_main",	  "on_pthread",	 "on_short", "on_c11",
				     "on_clone",  "on_blocked",	 "on_calls", "on_late",
				     "run_mixed", "create_mixed" };
static atomic_long used[KINDS];
static long long budget = 300000000, late_budget = 100000;

static long long clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

#define KIND(name, kind, ns, work)                                 \
	NO_INLINE void name(void)                                  \
	{                                                          \
		long long start = clock_ns();                      \
                                                                   \
		do {                                               \
			for (volatile int i = 0; i < 20000; i++)   \
				work;                              \
		} while (clock_ns() - start < (ns));               \
		atomic_fetch_add(&used[kind], clock_ns() - start); \
	}

KIND(on_main, ON_MAIN, budget, )
KIND(on_pthread, ON_PTHREAD, budget, )
KIND(on_short, ON_SHORT, 5000000, )
KIND(on_c11, ON_C11, budget, )
KIND(on_clone, ON_CLONE,
     4 * budget, ) /* nobody tells of it: it is found when threads are counted */
KIND(on_blocked, ON_BLOCKED, budget, )
KIND(on_calls, ON_CALLS, budget, if (i % 100 == 0) syscall(SYS_getppid))
KIND(on_late, ON_LATE, late_budget, )

static void *run(void *function)
{
	((void (*)(void))function)();
	return NULL;
}

static void *run_late(void *function)
{
	((void (*)(void))function)();
	return NULL;
}

/* With all that it used since the kernel made it. */
static void *run_mixed(void *ns)
{
	while (clock_ns() < (long long)(uintptr_t)ns)
		for (volatile int i = 0; i < 2000; i++)
			;
	atomic_fetch_add(&used[RUN_MIXED], clock_ns());
	return NULL;
}

/* Few use much more than the others of their kind, and end soon all the same. */
NO_INLINE static void create_mixed(void)
{
	long long start = clock_ns();
	pthread_t one;

	for (int i = 0; i < MIXED; i++) {
		pthread_create(&one, NULL, run_mixed,
			       (void *)(uintptr_t)(i % LONGER_EACH ? 50000 : 15000000));
		pthread_join(one, NULL);
	}
	atomic_fetch_add(&used[CREATE_MIXED], clock_ns() - start);
}

static int run_c11(void *function)
{
	run(function);
	return 0;
}

static void *run_blocked(void *function)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	return run(function);
}

static atomic_int is_clone_done;
static char clone_stack[1 << 18] __attribute__((aligned(64)));

static int run_clone(void *function)
{
	run(function);
	atomic_store(&is_clone_done, 1);
	syscall(SYS_exit, 0);
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t threads[3], one;
	thrd_t c11;

	if (argc > 1)
		budget = atoll(argv[1]) * 1000000;
	pthread_create(&threads[0], NULL, run, on_pthread);
	pthread_create(&threads[1], NULL, run_blocked, on_blocked);
	pthread_create(&threads[2], NULL, run, on_calls);
	thrd_create(&c11, run_c11, on_c11);
	clone(run_clone, clone_stack + sizeof(clone_stack) - 64,
	      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
	      on_clone);
	on_main();
	for (int i = 0; i < 60; i++) {
		pthread_create(&one, NULL, run, on_short);
		pthread_join(one, NULL);
	}
	/* The last is the first of its kind to stay for long. */
	for (int i = 0; i <= MOMENTS; i++) {
		late_budget = i < MOMENTS ? late_budget : budget;
		pthread_create(&one, NULL, run_late, on_late);
		pthread_join(one, NULL);
	}
	create_mixed();
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	thrd_join(c11, NULL);
	while (!atomic_load(&is_clone_done))
		usleep(1000);
	for (int i = 0; i < KINDS; i++)
		printf("%s %ld\n", names[i], atomic_load(&used[i]));
	return 0;
}
