/* Calls that wait, each in a thread of its own, while all threads are asked for their stacks again
 * and again. None may fail or end early because of that; with the program's own signal each must
 * fail with EINTR as ever. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "kiln.h"

enum { MILLISECONDS = 300 };

static int pipe_end, epoll, pair, full, listener, semaphores;
static sem_t semaphore;
static const struct timespec timeout = { 0, MILLISECONDS * 1000000 };

static int failed_with(int error)
{
	errno = error;
	return error ? -1 : 0;
}

/* ---- each returns 0 when its time is over, or -1 and errno */

static int call_poll(void)
{
	return poll(&(struct pollfd){ pipe_end, POLLIN, 0 }, 1, MILLISECONDS);
}

static int call_ppoll(void)
{
	return ppoll(&(struct pollfd){ pipe_end, POLLIN, 0 }, 1, &timeout, NULL);
}

static int call_select(void)
{
	struct timeval t = { 0, MILLISECONDS * 1000 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(pipe_end, &set);
	return select(pipe_end + 1, &set, NULL, NULL, &t);
}

static int call_pselect(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(pipe_end, &set);
	return pselect(pipe_end + 1, &set, NULL, NULL, &timeout, NULL);
}

static int call_epoll_wait(void)
{
	struct epoll_event e;

	return epoll_wait(epoll, &e, 1, MILLISECONDS);
}

static int call_epoll_pwait(void)
{
	struct epoll_event e;
	sigset_t none;

	sigemptyset(&none);
	return epoll_pwait(epoll, &e, 1, MILLISECONDS, &none);
}

static int call_epoll_pwait2(void)
{
	struct epoll_event e;

	return epoll_pwait2(epoll, &e, 1, &timeout, NULL);
}

static int call_nanosleep(void)
{
	return nanosleep(&timeout, NULL);
}

static int call_clock_nanosleep(void)
{
	return failed_with(clock_nanosleep(CLOCK_MONOTONIC, 0, &timeout, NULL));
}

static int call_clock_nanosleep_until(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += timeout.tv_nsec;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return failed_with(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL));
}

static int call_usleep(void)
{
	return usleep(MILLISECONDS * 1000);
}

static int call_sleep(void)
{
	unsigned left = sleep(1);

	return failed_with(left || errno == EINTR ? EINTR : 0);
}

static int call_thrd_sleep(void)
{
	return failed_with(thrd_sleep(&timeout, NULL) ? EINTR : 0);
}

static int call_sem_timedwait(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += timeout.tv_nsec;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return sem_timedwait(&semaphore, &t) == -1 && errno == ETIMEDOUT ? 0 : -1;
}

static int call_sigtimedwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &timeout) == -1 && errno == EAGAIN ? 0 : -1;
}

/* Whatever is blocked, the agent's signal too. */
static int call_sigtimedwait_all(void)
{
	sigset_t set, kept;
	int result;

	sigfillset(&set);
	sigdelset(&set, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &set, &kept);
	result = sigtimedwait(&set, NULL, &timeout);
	pthread_sigmask(SIG_SETMASK, &kept, NULL);
	if (result > 0)
		fprintf(stderr, "got signal %d\n", result);
	return result == -1 && errno == EAGAIN ? 0 : -1;
}

static int call_recv(void)
{
	char c;

	return recv(pair, &c, 1, 0) == -1 && errno == EAGAIN ? 0 : -1;
}

static int call_read(void)
{
	char c;

	return read(pair, &c, 1) == -1 && errno == EAGAIN ? 0 : -1;
}

static int call_recvmsg(void)
{
	char c;
	struct iovec part = { &c, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	return recvmsg(pair, &message, 0) == -1 && errno == EAGAIN ? 0 : -1;
}

static int call_send(void)
{
	return send(full, "x", 1, 0) == -1 && errno == EAGAIN ? 0 : -1;
}

static int call_write(void)
{
	return write(full, "x", 1) == -1 && errno == EAGAIN ? 0 : -1;
}

static int call_accept(void)
{
	return accept(listener, NULL, NULL) == -1 && errno == EAGAIN ? 0 : -1;
}

static int call_semtimedop(void)
{
	struct sembuf down = { 0, -1, 0 };

	return semtimedop(semaphores, &down, 1, &timeout) == -1 && errno == EAGAIN ? 0 : -1;
}

static const struct call {
	const char *name;
	int (*run)(void);
	int milliseconds;
} calls[] = {
	{ "poll", call_poll, MILLISECONDS },
	{ "ppoll", call_ppoll, MILLISECONDS },
	{ "select", call_select, MILLISECONDS },
	{ "pselect", call_pselect, MILLISECONDS },
	{ "epoll_wait", call_epoll_wait, MILLISECONDS },
	{ "epoll_pwait", call_epoll_pwait, MILLISECONDS },
	{ "epoll_pwait2", call_epoll_pwait2, MILLISECONDS },
	{ "nanosleep", call_nanosleep, MILLISECONDS },
	{ "clock_nanosleep", call_clock_nanosleep, MILLISECONDS },
	{ "clock_nanosleep, absolute", call_clock_nanosleep_until, MILLISECONDS },
	{ "usleep", call_usleep, MILLISECONDS },
	{ "sleep", call_sleep, 1000 },
	{ "thrd_sleep", call_thrd_sleep, MILLISECONDS },
	{ "sem_timedwait", call_sem_timedwait, MILLISECONDS },
	{ "sigtimedwait", call_sigtimedwait, MILLISECONDS },
	{ "sigtimedwait, all signals", call_sigtimedwait_all, MILLISECONDS },
	{ "recv with SO_RCVTIMEO", call_recv, MILLISECONDS },
	{ "read with SO_RCVTIMEO", call_read, MILLISECONDS },
	{ "recvmsg with SO_RCVTIMEO", call_recvmsg, MILLISECONDS },
	{ "send with SO_SNDTIMEO", call_send, MILLISECONDS },
	{ "write with SO_SNDTIMEO", call_write, MILLISECONDS },
	{ "accept with SO_RCVTIMEO", call_accept, MILLISECONDS },
	{ "semtimedop", call_semtimedop, MILLISECONDS },
};
enum { NCALLS = sizeof(calls) / sizeof(*calls) };

struct result {
	int result, error;
	double took;
};
static struct result results[NCALLS];
static pthread_t threads[NCALLS];
static atomic_int nrunning, nhandled;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void *run(void *number)
{
	struct result *r = &results[(size_t)number];
	double begun = now();

	errno = 0;
	r->result = calls[(size_t)number].run();
	r->error = errno;
	r->took = now() - begun;
	nrunning--;
	return NULL;
}

static void on_signal(int signal)
{
	(void)signal;
	nhandled++;
}

static void set_up(void)
{
	struct timeval t = { 0, MILLISECONDS * 1000 };
	struct sockaddr_un any = { .sun_family = AF_UNIX };
	struct epoll_event e = { .events = EPOLLIN };
	int ends[2];

	if (pipe(ends))
		exit(2);
	pipe_end = ends[0];
	epoll = epoll_create1(0);
	epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_end, &e);
	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	pair = ends[0];
	setsockopt(pair, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	full = ends[0];
	while (send(full, "x", 1, MSG_DONTWAIT) == 1)
		;
	setsockopt(full, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	bind(listener, (struct sockaddr *)&any, sizeof(any.sun_family));
	listen(listener, 1);
	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	sem_init(&semaphore, 0, 0);
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal }, NULL);
}

/* Returns how often threads were asked. */
static int run_all(int signal_after)
{
	int null = open("/dev/null", O_WRONLY), n = 0;
	double begun = now();
	bool is_sent = !signal_after;

	nrunning = NCALLS;
	for (size_t i = 0; i < NCALLS; i++)
		pthread_create(&threads[i], NULL, run, (void *)i);
	while (nrunning > 0) {
		n += kiln_write_profile("threads", null) == 0;
		if (!is_sent && now() - begun > signal_after) {
			is_sent = true;
			for (size_t i = 0; i < NCALLS; i++)
				pthread_kill(threads[i], SIGUSR1);
		}
		nanosleep(&(struct timespec){ 0, 3000000 }, NULL);
	}
	for (size_t i = 0; i < NCALLS; i++)
		pthread_join(threads[i], NULL);
	close(null);
	return n;
}

static void report(size_t i, bool is_good, const char *what)
{
	static int n;

	printf("%s %d - %s %s\n", is_good ? "ok" : "not ok", ++n, calls[i].name, what);
	if (!is_good)
		printf("# returned %d, errno %d, after %.1f of %d ms\n", results[i].result,
		       results[i].error, results[i].took, calls[i].milliseconds);
}

int main(void)
{
	int n;

	set_up();
	n = run_all(0);
	printf("# threads were asked %d times\n", n);
	for (size_t i = 0; i < NCALLS; i++) {
		const struct result *r = &results[i];
		int whole = calls[i].milliseconds;

		report(i, r->result == 0 && r->took > whole - 5 && r->took < whole * 2 && n > 5,
		       "waits for its whole time");
	}
	n = run_all(MILLISECONDS / 3);
	for (size_t i = 0; i < NCALLS; i++)
		report(i,
		       results[i].result == -1 && results[i].error == EINTR &&
			       results[i].took < calls[i].milliseconds - 50,
		       "fails with EINTR after the program's own signal");
	printf("1..%d\n", NCALLS * 2);
	semctl(semaphores, 0, IPC_RMID);
	return 0;
}
