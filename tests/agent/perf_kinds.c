/* perf_kinds.c - programs that meet the files and signals of perf events. Each runs one case, named
 * by its argument, and prints what it saw; "used" and nanoseconds: the CPU time of its threads. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

/* A thread that used so much has its event, with a number of these. */
enum { EVENT_MS = 12, EVENTS_FROM = 1000, EVENTS_TO = 1016 };

static int64_t used;

static void use(int milliseconds)
{
	int64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	burn(milliseconds);
	used += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
}

static void in_thread(void *(*run)(void *))
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, run, NULL) == 0);
	pthread_join(thread, NULL);
}

static int tell(void)
{
	printf("used %lld\n", (long long)used);
	return 0;
}

static int works(void)
{
	use(600);
	return tell();
}

/* ---- in the kernel and out of it, by turns */

NOT_INLINED static void of_kernel(void)
{
	static char buffer[16 << 10];
	int fd = open("/dev/zero", O_RDONLY);
	int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 700000;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 20; i++)
			CHECK(read(fd, buffer, sizeof(buffer)) > 0);
	close(fd);
}

NOT_INLINED static void of_program(void)
{
	burn(1);
	STAYS;
}

static int by_turns(void)
{
	int64_t spent[3] = { clock_ns(CLOCK_THREAD_CPUTIME_ID), 0, 0 }, now;

	for (int i = 0; spent[1] + spent[2] < 2000000000; i++) {
		(i % 2 ? of_kernel : of_program)();
		now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		spent[1 + i % 2] += now - spent[0];
		spent[0] = now;
	}
	printf("of_program %lld\nof_kernel %lld\n", (long long)spent[1], (long long)spent[2]);
	return 0;
}

/* ---- files */

static void *opens(void *nothing)
{
	burn(EVENT_MS);
	printf("%d %d\n", open("/dev/null", O_RDONLY), open("/dev/null", O_RDONLY));
	return nothing;
}

static int numbers(void)
{
	opens(NULL);
	in_thread(opens);
	in_thread(opens);
	return 0;
}

static int closes_all(void)
{
	use(50);
	close_range(3, ~0u, 0);
	use(1000);
	printf("%d\n", open("/dev/null", O_RDONLY));
	return tell();
}

static void *takes_numbers(void *nothing)
{
	burn(EVENT_MS);
	close_range(3, ~0u, 0);
	for (int i = EVENTS_FROM; i < EVENTS_TO; i++) {
		CHECK(dup2(1, i) == i);
		fcntl(i, F_SETFL, O_APPEND);
	}
	return nothing;
}

/* What a thread opened in place of its event must still be there when it has ended. */
static int numbers_taken(void)
{
	in_thread(takes_numbers);
	for (int i = EVENTS_FROM; i < EVENTS_TO; i++)
		CHECK(fcntl(i, F_GETFD) == 0 && fcntl(i, F_GETFL) & O_APPEND);
	return 0;
}

static int count_events(void)
{
	DIR *d = opendir("/proc/self/fd");
	char target[64];
	int n = 0;

	for (struct dirent *e; (e = readdir(d));) {
		ssize_t got = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);

		target[got > 0 ? got : 0] = '\0';
		n += strstr(target, "perf_event") != NULL;
	}
	closedir(d);
	return n;
}

static int forks(void)
{
	int status;

	burn(EVENT_MS);
	if (fork() == 0) {
		burn(50);
		_exit(count_events());
	}
	wait(&status);
	printf("child: %d\n", status);
	return 0;
}

static int prints_events(void)
{
	printf("%d events\n", count_events());
	return 0;
}

static int executes(void)
{
	char *const arguments[] = { "/proc/self/exe", "prints_events", NULL }, *none[] = { NULL };

	burn(EVENT_MS);
	return execve(arguments[0], arguments, none);
}

/* A signal that waits meanwhile would end the next program. */
static int executes_often(void)
{
	const char *left = getenv("LEFT");
	char next[16];

	if (left && atoi(left) == 0)
		return 0;
	burn(EVENT_MS);
	snprintf(next, sizeof(next), "%d", left ? atoi(left) - 1 : 100);
	setenv("LEFT", next, 1);
	return execl("/proc/self/exe", "perf_kinds", "executes_often", NULL);
}

/* ---- refused */

static void *uses(void *nothing)
{
	use(300);
	return nothing;
}

static int denied(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
	in_thread(uses);
	in_thread(uses);
	return tell();
}

/* ---- signals */

static volatile int from_pipe, others;

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	if (info->si_code == POLL_IN && info->si_fd < 10)
		from_pipe++;
	else
		others++;
}

static int own_signal(void)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	int fds[2];

	CHECK(sigaction(SIGPROF, &action, NULL) == 0 && pipe(fds) == 0);
	fcntl(fds[0], F_SETSIG, SIGPROF);
	fcntl(fds[0], F_SETOWN, getpid());
	fcntl(fds[0], F_SETFL, O_ASYNC | O_NONBLOCK);
	for (int i = 0; i < 10; i++) {
		CHECK(write(fds[1], "", 1) == 1);
		burn(10);
	}
	printf("%d %d\n", from_pipe, others);
	return 0;
}

static void *blocks(void *nothing)
{
	sigset_t set;

	burn(EVENT_MS);
	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	burn(2); /* for a tick of the event, and maybe none of the timer */
	nap(2000);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	return nothing;
}

/* Signals come when the profile has long been written (KILN_SECONDS=1). */
static int signals_late(void)
{
	pthread_t threads[16];

	for (int i = 0; i < 16; i++)
		CHECK(pthread_create(&threads[i], NULL, blocks, NULL) == 0);
	for (int i = 0; i < 16; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct guest_case cases[] = {
		{ "works", works },
		{ "by_turns", by_turns },
		{ "numbers", numbers },
		{ "closes_all", closes_all },
		{ "numbers_taken", numbers_taken },
		{ "forks", forks },
		{ "prints_events", prints_events },
		{ "executes", executes },
		{ "executes_often", executes_often },
		{ "denied", denied },
		{ "own_signal", own_signal },
		{ "signals_late", signals_late },
		{ NULL, NULL },
	};

	return run_case(argc, argv, cases);
}
