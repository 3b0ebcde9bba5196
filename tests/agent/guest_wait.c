/* guest_wait.c - threads in every call that waits for some time, while others ask where they are:
 * none may return early, none may see EINTR that no signal of the program's caused. */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "guest.h"

enum { WAIT_MS = 400 };
static const struct timespec wait_time = { 0, WAIT_MS * 1000000 };
static int pipe_fds[2], socket_fds[2], full_fds[2];
static sem_t nobody_posts;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t nobody_signals = PTHREAD_COND_INITIALIZER;

static struct timespec later(clockid_t clock)
{
	int64_t at = clock_ns(clock) + (int64_t)WAIT_MS * 1000000;

	return (struct timespec){ at / 1000000000, at % 1000000000 };
}

static int do_nanosleep(void)
{
	return nanosleep(&wait_time, NULL);
}
static int do_clock_nanosleep(void)
{
	struct timespec t = later(CLOCK_MONOTONIC);

	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}
static int do_usleep(void)
{
	return usleep(WAIT_MS * 1000);
}
static int do_sleep(void)
{
	return (int)sleep(1);
}
static int do_poll(void)
{
	struct pollfd p = { pipe_fds[0], POLLIN, 0 };

	return poll(&p, 1, WAIT_MS);
}
static int do_ppoll(void)
{
	struct pollfd p = { pipe_fds[0], POLLIN, 0 };

	return ppoll(&p, 1, &wait_time, NULL);
}
static int do_select(void)
{
	struct timeval t = { 0, WAIT_MS * 1000 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(pipe_fds[0], &set);
	return select(pipe_fds[0] + 1, &set, NULL, NULL, &t);
}
static int do_pselect(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(pipe_fds[0], &set);
	return pselect(pipe_fds[0] + 1, &set, NULL, NULL, &wait_time, NULL);
}
static int wait_epoll(bool has_mask)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = epoll_create1(0), got;
	sigset_t none;

	sigemptyset(&none);
	epoll_ctl(fd, EPOLL_CTL_ADD, pipe_fds[0], &event);
	got = has_mask ? epoll_pwait(fd, &event, 1, WAIT_MS, &none)
		       : epoll_wait(fd, &event, 1, WAIT_MS);
	close(fd);
	return got;
}
static int do_epoll_wait(void)
{
	return wait_epoll(false);
}
static int do_epoll_pwait(void)
{
	return wait_epoll(true);
}
static int do_sem_timedwait(void)
{
	struct timespec t = later(CLOCK_REALTIME);

	return sem_timedwait(&nobody_posts, &t);
}
static int do_cond_timedwait(void)
{
	struct timespec t = later(CLOCK_REALTIME);
	int got;

	pthread_mutex_lock(&lock);
	got = pthread_cond_timedwait(&nobody_signals, &lock, &t);
	pthread_mutex_unlock(&lock);
	return got;
}
static int do_recv(void)
{
	char c;

	return (int)recv(socket_fds[0], &c, 1, 0);
}
static int do_read_socket(void)
{
	char c;

	return (int)read(socket_fds[0], &c, 1);
}
static int do_send(void)
{
	static char much[100000];

	while (send(full_fds[0], much, sizeof(much), 0) > 0)
		;
	return errno == EAGAIN ? 0 : -1;
}
static int do_futex(void)
{
	int word = 1;

	return (int)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, &wait_time, NULL, 0);
}
static int do_sigtimedwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &wait_time);
}
static int do_semtimedop(void)
{
	struct sembuf down = { 0, -1, 0 };
	int id = semget(IPC_PRIVATE, 1, 0600), got, kept;

	semctl(id, 0, SETVAL, 0);
	got = semtimedop(id, &down, 1, &wait_time);
	kept = errno;
	semctl(id, 0, IPC_RMID);
	errno = kept;
	return got;
}

/* Those without a limit in time: a helper ends the wait. */
static void *end_later(void *thing)
{
	void (*end)(void) = (void (*)(void))thing;

	nap(WAIT_MS);
	end();
	return NULL;
}
static int ended_by(void (*end)(void), int (*wait)(void))
{
	pthread_t thread;
	int got;

	pthread_create(&thread, NULL, end_later, (void *)end);
	got = wait();
	pthread_join(thread, NULL);
	return got;
}
static int read_fds[2];
static void write_one(void)
{
	(void)!write(read_fds[1], "x", 1);
}
static int read_one(void)
{
	char c;

	return (int)read(read_fds[0], &c, 1);
}
static int do_read_pipe(void)
{
	CHECK(pipe(read_fds) == 0);
	return ended_by(write_one, read_one);
}
static int queue;
static void send_message(void)
{
	struct {
		long type;
		char text[1];
	} message = { 1, "x" };

	msgsnd(queue, &message, 1, 0);
}
static int receive_message(void)
{
	struct {
		long type;
		char text[1];
	} message;

	return (int)msgrcv(queue, &message, 1, 0, 0);
}
static int do_msgrcv(void)
{
	int got;

	queue = msgget(IPC_PRIVATE, 0600);
	got = ended_by(send_message, receive_message);
	msgctl(queue, IPC_RMID, NULL);
	return got;
}
static int do_waitpid(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		nap(WAIT_MS);
		_exit(0);
	}
	return waitpid(child, &status, 0) == child ? status : -1;
}
static sem_t posted;
static void post(void)
{
	sem_post(&posted);
}
static int wait_posted(void)
{
	return sem_wait(&posted);
}
static int do_sem_wait(void)
{
	return ended_by(post, wait_posted);
}

static const struct call {
	const char *name;
	int (*wait)(void);
} calls[] = {
	{ "nanosleep", do_nanosleep },
	{ "clock_nanosleep", do_clock_nanosleep },
	{ "usleep", do_usleep },
	{ "sleep", do_sleep },
	{ "poll", do_poll },
	{ "ppoll", do_ppoll },
	{ "select", do_select },
	{ "pselect", do_pselect },
	{ "epoll_wait", do_epoll_wait },
	{ "epoll_pwait", do_epoll_pwait },
	{ "sem_timedwait", do_sem_timedwait },
	{ "pthread_cond_timedwait", do_cond_timedwait },
	{ "recv", do_recv },
	{ "read of a socket", do_read_socket },
	{ "send", do_send },
	{ "futex", do_futex },
	{ "sigtimedwait", do_sigtimedwait },
	{ "semtimedop", do_semtimedop },
	{ "read of a pipe", do_read_pipe },
	{ "msgrcv", do_msgrcv },
	{ "waitpid", do_waitpid },
	{ "sem_wait", do_sem_wait },
};
enum { NCALLS = sizeof(calls) / sizeof(*calls) };
static struct result {
	int returned, error, nearly;
} results[NCALLS];

static void *wait_in_call(void *call)
{
	long i = (const struct call *)call - calls;
	int64_t start;

	burn(20);
	start = clock_ns(CLOCK_MONOTONIC);
	errno = 0;
	results[i].returned = calls[i].wait();
	results[i].error = results[i].returned < 0 ? errno : 0;
	results[i].nearly = (clock_ns(CLOCK_MONOTONIC) - start) / 1000000 >= WAIT_MS - 5;
	return NULL;
}

static void set_timeout(int fd)
{
	struct timeval t = { 0, WAIT_MS * 1000 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

static int all_calls(void)
{
	pthread_t threads[NCALLS];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sem_init(&nobody_posts, 0, 0);
	sem_init(&posted, 0, 0);
	CHECK(pipe(pipe_fds) == 0);
	socketpair(AF_UNIX, SOCK_STREAM, 0, socket_fds);
	socketpair(AF_UNIX, SOCK_STREAM, 0, full_fds);
	set_timeout(socket_fds[0]);
	set_timeout(full_fds[0]);
	printf("ready\n");
	for (int i = 0; i < NCALLS; i++)
		pthread_create(&threads[i], NULL, wait_in_call, (void *)&calls[i]);
	for (int i = 0; i < NCALLS; i++) {
		const char *error;

		pthread_join(threads[i], NULL);
		error = strerrorname_np(results[i].error);
		printf("%s: %d %s%s\n", calls[i].name, results[i].returned, error ? error : "?",
		       results[i].nearly ? "" : ", too early");
	}
	return 0;
}

static void nothing(int signal)
{
	(void)signal;
}

static void *sleep_and_tell(void *ninterrupted)
{
	struct timespec long_time = { 10, 0 };

	if (nanosleep(&long_time, NULL) == -1 && errno == EINTR)
		atomic_fetch_add((atomic_int *)ninterrupted, 1);
	return NULL;
}

/* A program that counts on being interrupted is. */
static int interrupted_by_itself(void)
{
	struct sigaction action = { .sa_handler = nothing };
	static atomic_int ninterrupted;
	pthread_t threads[10];

	sigaction(SIGUSR1, &action, NULL);
	printf("ready\n");
	for (int i = 0; i < 10; i++)
		pthread_create(&threads[i], NULL, sleep_and_tell, &ninterrupted);
	nap(300);
	for (int i = 0; i < 10; i++) {
		pthread_kill(threads[i], SIGUSR1);
		pthread_join(threads[i], NULL);
	}
	printf("%d of 10 interrupted\n", ninterrupted);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct guest_case cases[] = {
		{ "all_calls", all_calls },
		{ "interrupted_by_itself", interrupted_by_itself },
		{ NULL, NULL },
	};

	return run_case(argc, argv, cases);
}
