/* hooks_wait.c - calls that the kernel does not start again after a signal handler (signal(7)).
 *
 * The agent asks threads for their stacks by a signal. The program did not ask for that, so what
 * it waits for goes on, for the time that is left. Not covered: system calls that a library makes
 * without libc (io_getevents, io_uring_enter), and signalfd. */
#undef _FORTIFY_SOURCE /* its inline functions have the names of hooks */
#include "agent/wait.h"

#include <aio.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "kiln.h"
#include "agent/real.h"
#include "agent/signal.h"

enum { MILLISECOND = 1000000, SECOND = 1000000000, LONG = 50 /* milliseconds */ };

bool wait_goes_on_after(struct wait *w, int error)
{
	if (error != EINTR || local.nsignals == w->nsignals)
		return false;
	w->nsignals = local.nsignals;
	if (!w->begun)
		w->begun = now_ns();
	errno = local.error;
	return true;
}

bool wait_goes_on(struct wait *w)
{
	return wait_goes_on_after(w, errno);
}

int64_t wait_left(const struct wait *w, int64_t total)
{
	int64_t left = w->begun + total - now_ns();

	return left > 0 ? left : 0;
}

/* Those that just start again. */
#define AGAIN(call)                                         \
	struct wait w = wait_begin(false);                  \
	__typeof__(call) result;                            \
	while ((result = (call)) == -1 && wait_goes_on(&w)) \
		;                                           \
	return result

/* ---- a timeout in milliseconds */

/* Long ones may be a little longer when they went on. */
static inline struct wait begin_milliseconds(int timeout)
{
	return timeout < LONG ? wait_begin(timeout > 0) : wait_begin_coarse(true);
}

static int milliseconds_left(const struct wait *w, int total)
{
	int64_t wanted = (int64_t)total * MILLISECOND + (total < LONG ? 0 : COARSE_TICK), left;

	if (total <= 0)
		return total;
	left = (wait_left(w, wanted) + MILLISECOND - 1) / MILLISECOND;
	return left < total ? (int)left : total;
}

#define AGAIN_MILLISECONDS(call)                            \
	struct wait w = begin_milliseconds(timeout);        \
	int result, total = timeout;                        \
	while ((result = (call)) == -1 && wait_goes_on(&w)) \
		timeout = milliseconds_left(&w, total);     \
	return result

KILN_API int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	AGAIN_MILLISECONDS(REAL_CALL(poll)(fds, n, timeout));
}

KILN_API int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
	AGAIN_MILLISECONDS(REAL_CALL(__poll_chk)(fds, n, timeout, size));
}

KILN_API int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	AGAIN_MILLISECONDS(REAL_CALL(epoll_wait)(fd, events, max, timeout));
}

KILN_API int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout,
			 const sigset_t *mask)
{
	AGAIN_MILLISECONDS(REAL_CALL(epoll_pwait)(fd, events, max, timeout, mask));
}

/* ---- a timeout that the caller keeps */

/* Waits forever, or so long that it cannot be added up. */
static bool is_endless(const struct timespec *timeout)
{
	return !timeout || timeout->tv_sec > INT64_MAX / SECOND / 4;
}

static const struct timespec *time_left(const struct wait *w, const struct timespec *total,
					struct timespec *left)
{
	int64_t t;

	if (is_endless(total))
		return total;
	t = wait_left(w, (int64_t)total->tv_sec * SECOND + total->tv_nsec);
	*left = (struct timespec){ t / SECOND, t % SECOND };
	return left;
}

#define AGAIN_TIMESPEC(call)                                \
	struct wait w = wait_begin(timeout != NULL);        \
	const struct timespec *total = timeout;             \
	struct timespec left;                               \
	int result;                                         \
	while ((result = (call)) == -1 && wait_goes_on(&w)) \
		timeout = time_left(&w, total, &left);      \
	return result

KILN_API int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		   const sigset_t *mask)
{
	AGAIN_TIMESPEC(REAL_CALL(ppoll)(fds, n, timeout, mask));
}

KILN_API int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
			 const sigset_t *mask, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
		size_t size)
{
	AGAIN_TIMESPEC(REAL_CALL(__ppoll_chk)(fds, n, timeout, mask, size));
}

KILN_API int pselect(int n, fd_set *read, fd_set *write, fd_set *except,
		     const struct timespec *timeout, const sigset_t *mask)
{
	AGAIN_TIMESPEC(REAL_CALL(pselect)(n, read, write, except, timeout, mask));
}

KILN_API int epoll_pwait2(int fd, struct epoll_event *events, int max,
			  const struct timespec *timeout, const sigset_t *mask)
{
	AGAIN_TIMESPEC(REAL_CALL(epoll_pwait2)(fd, events, max, timeout, mask));
}

KILN_API int semtimedop(int id, struct sembuf *operations, size_t n, const struct timespec *timeout)
{
	AGAIN_TIMESPEC(REAL_CALL(semtimedop)(id, operations, n, timeout));
}

KILN_API int aio_suspend(const struct aiocb *const list[], int n, const struct timespec *timeout)
{
	AGAIN_TIMESPEC(REAL_CALL(aio_suspend)(list, n, timeout));
}

/* The kernel writes what is left. */
KILN_API int select(int n, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout)
{
	AGAIN(REAL_CALL(select)(n, read, write, except, timeout));
}

/* ---- sleeping: here too the kernel tells what is left */

static int sleep_on(const struct timespec *time, struct timespec *left)
{
	struct wait w = wait_begin(false);
	struct timespec rest = { 0, 0 }, next;
	int result;

	while ((result = REAL_CALL(nanosleep)(time, &rest)) == -1 && wait_goes_on(&w)) {
		next = rest;
		time = &next;
	}
	if (result == -1 && errno == EINTR && left)
		*left = rest;
	return result;
}

KILN_API int nanosleep(const struct timespec *time, struct timespec *left)
{
	return sleep_on(time, left);
}

KILN_API int usleep(useconds_t microseconds)
{
	struct timespec time = { microseconds / 1000000, microseconds % 1000000 * 1000 };

	return sleep_on(&time, NULL);
}

KILN_API unsigned sleep(unsigned seconds)
{
	struct timespec time = { seconds, 0 }, left = { 0, 0 };

	return sleep_on(&time, &left) == 0 ? 0 : (unsigned)left.tv_sec;
}

KILN_API int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
			     struct timespec *left)
{
	struct wait w = wait_begin(false);
	struct timespec rest = { 0, 0 }, next;
	int error;

	while ((error = REAL_CALL(clock_nanosleep)(clock, flags, time, &rest)) != 0 &&
	       wait_goes_on_after(&w, error)) {
		if (flags & TIMER_ABSTIME)
			continue;
		next = rest;
		time = &next;
	}
	if (error == EINTR && left && !(flags & TIMER_ABSTIME))
		*left = rest;
	return error;
}

KILN_API int thrd_sleep(const struct timespec *time, struct timespec *left)
{
	int error = clock_nanosleep(CLOCK_REALTIME, 0, time, left);

	return error == 0 ? 0 : error == EINTR ? -1 : -2;
}

/* ---- signals */

KILN_API int pause(void)
{
	AGAIN(REAL_CALL(pause)());
}

KILN_API int sigsuspend(const sigset_t *mask)
{
	AGAIN(REAL_CALL(sigsuspend)(mask));
}

/* One that is blocked and waited for may be the agent's. */
static int take_signal(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	struct wait w = wait_begin(timeout != NULL);
	const struct timespec *total = timeout;
	struct timespec left;
	siginfo_t got;
	int result;

	for (;;) {
		result = REAL_CALL(sigtimedwait)(set, &got, timeout);
		if (result == -1 ? !wait_goes_on(&w) : !signal_is_ours(&got))
			break;
		if (!w.begun)
			w.begun = now_ns();
		timeout = time_left(&w, total, &left);
	}
	if (result > 0 && info)
		*info = got;
	return result;
}

KILN_API int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	return take_signal(set, info, timeout);
}

KILN_API int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	return take_signal(set, info, NULL);
}

KILN_API int sigwait(const sigset_t *set, int *signal)
{
	int kept = errno, got, error = 0;

	while ((got = take_signal(set, NULL, NULL)) == -1 && errno == EINTR)
		;
	if (got == -1)
		error = errno;
	else
		*signal = got;
	errno = kept;
	return error;
}

/* ---- System V */

KILN_API ssize_t msgrcv(int id, void *message, size_t size, long type, int flags)
{
	AGAIN(REAL_CALL(msgrcv)(id, message, size, type, flags));
}

KILN_API int msgsnd(int id, const void *message, size_t size, int flags)
{
	AGAIN(REAL_CALL(msgsnd)(id, message, size, flags));
}

KILN_API int semop(int id, struct sembuf *operations, size_t n)
{
	AGAIN(REAL_CALL(semop)(id, operations, n));
}
