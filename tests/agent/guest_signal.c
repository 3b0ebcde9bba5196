/* guest_signal.c - programs with signals of their own, the agent's one among them. */
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "guest.h"

static volatile sig_atomic_t nsignals, value_seen, code_seen;
static atomic_bool is_over;

static void count(int signal)
{
	(void)signal;
	nsignals++;
}

static void note(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	nsignals++;
	value_seen = info->si_value.sival_int;
	code_seen = info->si_code;
}

static void *burn_for_ever(void *argument)
{
	while (!is_over)
		burn(5);
	return argument;
}

static void *burn_a_while(void *argument)
{
	burn(300);
	return argument;
}

static int own_handler(void)
{
	struct sigaction action = { .sa_handler = count };
	struct itimerval timer = { { 0, 10000 }, { 0, 10000 } }, none = { { 0, 0 }, { 0, 0 } };

	CHECK(sigaction(SIGPROF, &action, NULL) == 0);
	setitimer(ITIMER_PROF, &timer, NULL);
	burn(500);
	setitimer(ITIMER_PROF, &none, NULL);
	if (nsignals < 20 || nsignals > 100)
		printf("%d ticks of 50\n", (int)nsignals);
	return 0;
}

/* All that sigaction promises holds for the agent's signal too. */
static int own_action(void)
{
	struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction seen = { 0 };
	union sigval value = { .sival_int = 4711 };

	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGUSR1);
	CHECK(sigaction(SIGPROF, NULL, &seen) == 0 && seen.sa_handler == SIG_DFL);
	CHECK(sigaction(SIGPROF, &action, &seen) == 0 && seen.sa_handler == SIG_DFL);
	CHECK(sigaction(SIGPROF, NULL, &seen) == 0 && seen.sa_sigaction == note);
	CHECK((seen.sa_flags & (SA_SIGINFO | SA_RESTART)) == (SA_SIGINFO | SA_RESTART));
	CHECK(sigismember(&seen.sa_mask, SIGUSR1) && !sigismember(&seen.sa_mask, SIGUSR2));
	burn(100);
	printf("%d\n", (int)nsignals);
	raise(SIGPROF);
	kill(getpid(), SIGPROF);
	pthread_kill(pthread_self(), SIGPROF);
	printf("%d, code %d\n", (int)nsignals, (int)code_seen);
	sigqueue(getpid(), SIGPROF, value);
	printf("%d, value %d, code %d\n", (int)nsignals, (int)value_seen, (int)code_seen);
	CHECK(signal(SIGPROF, count) != SIG_ERR);
	CHECK(sigaction(SIGPROF, NULL, &seen) == 0 && seen.sa_handler == count);
	burn(100);
	raise(SIGPROF);
	printf("%d\n", (int)nsignals);
	errno = 0;
	CHECK(sigaction(SIGKILL, &action, NULL) == -1 && errno == EINVAL);
	CHECK(sigaction(1000, &action, NULL) == -1 && errno == EINVAL);
	return 0;
}

static int once_only(void)
{
	struct sigaction action = { .sa_handler = count, .sa_flags = (int)SA_RESETHAND };
	struct sigaction seen;

	sigaction(SIGPROF, &action, NULL);
	burn(100);
	raise(SIGPROF);
	CHECK(nsignals == 1);
	CHECK(sigaction(SIGPROF, NULL, &seen) == 0 && seen.sa_handler == SIG_DFL);
	burn(100);
	return 0;
}

static int ignored(void)
{
	struct sigaction seen;

	CHECK(signal(SIGPROF, SIG_IGN) == SIG_DFL);
	CHECK(sigaction(SIGPROF, NULL, &seen) == 0 && seen.sa_handler == SIG_IGN);
	raise(SIGPROF);
	burn(150);
	CHECK(signal(SIGPROF, SIG_DFL) == SIG_IGN);
	burn(150);
	return 0;
}

/* Nobody handles it: whoever sends it kills, as always. */
static int deadly(void)
{
	burn(100);
	kill(getpid(), SIGPROF);
	nap(5000);
	return 1;
}

static int wait_for_all(void)
{
	struct timespec second = { 0, 500000000 };
	pthread_t thread;
	sigset_t all;
	int got;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	pthread_create(&thread, NULL, burn_a_while, NULL);
	errno = 0;
	got = sigtimedwait(&all, NULL, &second);
	printf("%d %s\n", got, strerrorname_np(errno));
	pthread_join(thread, NULL);
	return 0;
}

/* Who takes signals by sigwait gets those that were sent to it. */
static int wait_for_own(void)
{
	struct timespec second = { 10, 0 };
	siginfo_t info;
	sigset_t set, seen;
	pthread_t thread;
	int got = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_create(&thread, NULL, burn_for_ever, NULL);
	pthread_sigmask(SIG_BLOCK, NULL, &seen);
	printf("blocked: %d\n", sigismember(&seen, SIGPROF));
	burn(100);
	kill(getpid(), SIGPROF);
	CHECK(sigtimedwait(&set, &info, &second) == SIGPROF);
	printf("%d %d\n", info.si_code, info.si_pid == getpid());
	kill(getpid(), SIGPROF);
	CHECK(sigwait(&set, &got) == 0 && got == SIGPROF);
	is_over = true;
	pthread_join(thread, NULL);
	return 0;
}

/* A server that gets all signals through a descriptor. */
static int read_all(void)
{
	struct signalfd_siginfo info;
	pthread_t thread;
	sigset_t all;
	int fd;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	fd = signalfd(-1, &all, SFD_NONBLOCK);
	pthread_create(&thread, NULL, burn_a_while, NULL);
	burn(200);
	errno = 0;
	CHECK(read(fd, &info, sizeof(info)) == -1 && errno == EAGAIN);
	kill(getpid(), SIGUSR1);
	CHECK(read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR1);
	pthread_join(thread, NULL);
	return 0;
}

static void *raise_often(void *argument)
{
	for (int i = 0; i < 20000; i++)
		raise(SIGUSR1);
	return argument;
}

static int storm(void)
{
	pthread_t threads[2];

	signal(SIGUSR1, count);
	nsignals = 0;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, raise_often, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK(nsignals > 20000); /* not atomic, so some are lost */
	return 0;
}

static void burn_in_handler(int signal)
{
	(void)signal;
	burn(20);
	STAYS;
}

NOT_INLINED static void is_interrupted(void)
{
	raise(SIGUSR1);
	STAYS;
}

/* Stacks go on below the frame that the kernel made. */
static int in_handler(void)
{
	signal(SIGUSR1, burn_in_handler);
	for (int i = 0; i < 10; i++)
		is_interrupted();
	return 0;
}

static int sleeper(void)
{
	printf("ready\n");
	for (int i = 0; i < 100 && getppid() != 1; i++) {
		burn(2);
		nap(5);
	}
	return 3;
}

int main(int argc, char **argv)
{
	static const struct guest_case cases[] = {
		{ "own_handler", own_handler },
		{ "own_action", own_action },
		{ "once_only", once_only },
		{ "ignored", ignored },
		{ "deadly", deadly },
		{ "wait_for_all", wait_for_all },
		{ "wait_for_own", wait_for_own },
		{ "read_all", read_all },
		{ "storm", storm },
		{ "in_handler", in_handler },
		{ "sleeper", sleeper },
		{ NULL, NULL },
	};

	return run_case(argc, argv, cases);
}
