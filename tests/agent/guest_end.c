/* guest_end.c - all the ways in which a program ends. */
#include <assert.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

static char *kept;

NOT_INLINED static void burn_to_the_end(int milliseconds)
{
	kept = malloc(300000);
	memset(kept, 1, 300000);
	burn(milliseconds);
	STAYS;
}

static void at_exit(void)
{
	char *memory = malloc(100000);

	printf("exit handler\n");
	memset(memory, 1, 100000);
	free(memory);
	burn(10);
}

static void no_core(void)
{
	struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
}

static int returns(void)
{
	atexit(at_exit);
	burn_to_the_end(150);
	return 5;
}
static int exits(void)
{
	atexit(at_exit);
	burn_to_the_end(150);
	exit(5);
}
static int leaves(void)
{
	atexit(at_exit);
	burn_to_the_end(150);
	_exit(5);
}
static int leaves_c99(void)
{
	burn_to_the_end(150);
	_Exit(5);
}
static int quick(void)
{
	at_quick_exit(at_exit);
	burn_to_the_end(150);
	quick_exit(5);
}
static int by_system_call(void)
{
	burn_to_the_end(150);
	syscall(SYS_exit_group, 5);
	return 1;
}
static int aborts(void)
{
	no_core();
	burn_to_the_end(100);
	abort();
}
static int child_aborts(void)
{
	pid_t child;
	int status;

	burn_to_the_end(100);
	child = fork();
	if (!child) {
		no_core();
		burn(50);
		abort();
	}
	waitpid(child, &status, 0);
	printf("%d\n", WTERMSIG(status));
	return 0;
}
static int asserts(void)
{
	no_core();
	burn_to_the_end(50);
	assert(!"so");
	return 1;
}
static int crashes(void)
{
	no_core();
	burn_to_the_end(100);
	*(volatile char *)(uintptr_t)(getpid() == 0) = 1;
	return 1;
}

/* Killed from outside when it says so. */
static int is_killed(void)
{
	burn_to_the_end(150);
	printf("ready\n");
	for (int i = 0; i < 10000; i++)
		nap(1);
	return 1;
}
static int is_killed_busy(void)
{
	burn_to_the_end(100);
	printf("ready\n");
	for (int i = 0; i < 1000; i++) {
		burn(10);
		free(malloc(5000));
	}
	return 1;
}

static void exit_politely(int signal)
{
	(void)signal;
	_exit(4);
}
static int handles_term(void)
{
	signal(SIGTERM, exit_politely);
	return is_killed();
}
static int ignores_term(void)
{
	signal(SIGTERM, SIG_IGN);
	burn_to_the_end(100);
	printf("ready\n");
	nap(500);
	return 3;
}
/* Looks at what signals do, as shells and daemons do. */
static int asks_for_term(void)
{
	struct sigaction seen;

	for (int signal = 1; signal < 32; signal++) {
		if (signal == SIGKILL || signal == SIGSTOP)
			continue;
		CHECK(sigaction(signal, NULL, &seen) == 0);
		if (seen.sa_handler != SIG_DFL || seen.sa_flags & SA_SIGINFO)
			printf("signal %d is handled\n", signal);
	}
	burn_to_the_end(100);
	return 0;
}

static void exit_again(void)
{
	exit(9);
}
static int exits_in_exit(void)
{
	atexit(exit_again);
	burn_to_the_end(50);
	return 2;
}
static void fork_at_exit(void)
{
	pid_t child = fork();
	int status;

	if (!child)
		exit(1);
	waitpid(child, &status, 0);
	printf("%d\n", WEXITSTATUS(status));
}
static int forks_at_exit(void)
{
	atexit(fork_at_exit);
	burn_to_the_end(100);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct guest_case cases[] = {
		{ "returns", returns },
		{ "exits", exits },
		{ "leaves", leaves },
		{ "leaves_c99", leaves_c99 },
		{ "quick", quick },
		{ "by_system_call", by_system_call },
		{ "aborts", aborts },
		{ "child_aborts", child_aborts },
		{ "asserts", asserts },
		{ "crashes", crashes },
		{ "is_killed", is_killed },
		{ "is_killed_busy", is_killed_busy },
		{ "handles_term", handles_term },
		{ "ignores_term", ignores_term },
		{ "asks_for_term", asks_for_term },
		{ "exits_in_exit", exits_in_exit },
		{ "forks_at_exit", forks_at_exit },
		{ NULL, NULL },
	};

	return run_case(argc, argv, cases);
}
