/* hooks_socket.c - calls on sockets with SO_RCVTIMEO or SO_SNDTIMEO, which the kernel does not
 * start again after a signal handler. See hooks_wait.c. */
#undef _FORTIFY_SOURCE /* its inline functions have the names of hooks */
#include "agent/wait.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kiln.h"
#include "agent/real.h"

enum { MILLISECOND = 1000000 };

/* Did any socket ever get a timeout? These calls are frequent and seldom wait: as long as there is
 * none they do not ask for the time. */
static atomic_bool has_timeouts;

KILN_API int setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	if (level == SOL_SOCKET && (option == SO_RCVTIMEO || option == SO_SNDTIMEO))
		atomic_store_explicit(&has_timeouts, true, memory_order_relaxed);
	return REAL_CALL(setsockopt)(fd, level, option, value, size);
}

static inline struct wait begin(void)
{
	return wait_begin_coarse(atomic_load_explicit(&has_timeouts, memory_order_relaxed));
}

/* 0: it has none, or is no socket. */
static int64_t timeout_of(int fd, int option)
{
	struct timeval t = { 0, 0 };
	socklen_t size = sizeof(t);
	int kept = errno;

	if (getsockopt(fd, SOL_SOCKET, option, &t, &size) != 0)
		t = (struct timeval){ 0, 0 };
	errno = kept;
	return (int64_t)t.tv_sec * 1000000000 + (int64_t)t.tv_usec * 1000;
}

/* Waits for the time that is left until the call can be made again. False: errno says what it
 * returns instead. */
static bool goes_on(struct wait *w, int fd, int option, int late)
{
	struct pollfd p = { fd, option == SO_RCVTIMEO ? POLLIN : POLLOUT, 0 };
	int64_t total;
	int ready;

	if (!wait_goes_on(w))
		return false;
	total = timeout_of(fd, option);
	if (!total)
		return true;
	do {
		int64_t left = wait_left(w, total + COARSE_TICK);

		ready = REAL_CALL(poll)(&p, 1, (int)(left / MILLISECOND));
	} while (ready == -1 && wait_goes_on(w));
	if (ready == 0)
		errno = late;
	return ready > 0;
}

#define RECEIVE(call)                                                                             \
	struct wait w = begin();                                                                  \
	__typeof__(call) result;                                                                  \
	while ((result = (call)) == -1 && errno == EINTR && goes_on(&w, fd, SO_RCVTIMEO, EAGAIN)) \
		;                                                                                 \
	return result

#define SEND(call, late)                                                                        \
	struct wait w = begin();                                                                \
	__typeof__(call) result;                                                                \
	while ((result = (call)) == -1 && errno == EINTR && goes_on(&w, fd, SO_SNDTIMEO, late)) \
		;                                                                               \
	return result

KILN_API ssize_t read(int fd, void *buffer, size_t size)
{
	RECEIVE(REAL_CALL(read)(fd, buffer, size));
}

KILN_API ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room)
{
	RECEIVE(REAL_CALL(__read_chk)(fd, buffer, size, room));
}

KILN_API ssize_t readv(int fd, const struct iovec *parts, int n)
{
	RECEIVE(REAL_CALL(readv)(fd, parts, n));
}

KILN_API ssize_t recv(int fd, void *buffer, size_t size, int flags)
{
	RECEIVE(REAL_CALL(recv)(fd, buffer, size, flags));
}

KILN_API ssize_t __recv_chk(int fd, void *buffer, size_t size, size_t room, int flags);
ssize_t __recv_chk(int fd, void *buffer, size_t size, size_t room, int flags)
{
	RECEIVE(REAL_CALL(__recv_chk)(fd, buffer, size, room, flags));
}

KILN_API ssize_t recvfrom(int fd, void *buffer, size_t size, int flags, __SOCKADDR_ARG from,
			  socklen_t *restrict length)
{
	RECEIVE(REAL_CALL(recvfrom)(fd, buffer, size, flags, from, length));
}

KILN_API ssize_t __recvfrom_chk(int fd, void *buffer, size_t size, size_t room, int flags,
				__SOCKADDR_ARG from, socklen_t *restrict length);
ssize_t __recvfrom_chk(int fd, void *buffer, size_t size, size_t room, int flags,
		       __SOCKADDR_ARG from, socklen_t *restrict length)
{
	RECEIVE(REAL_CALL(__recvfrom_chk)(fd, buffer, size, room, flags, from, length));
}

KILN_API ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	RECEIVE(REAL_CALL(recvmsg)(fd, message, flags));
}

KILN_API int recvmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags,
		      struct timespec *timeout)
{
	RECEIVE(REAL_CALL(recvmmsg)(fd, messages, n, flags, timeout));
}

KILN_API int accept(int fd, __SOCKADDR_ARG from, socklen_t *restrict length)
{
	RECEIVE(REAL_CALL(accept)(fd, from, length));
}

KILN_API int accept4(int fd, __SOCKADDR_ARG from, socklen_t *restrict length, int flags)
{
	RECEIVE(REAL_CALL(accept4)(fd, from, length, flags));
}

KILN_API ssize_t write(int fd, const void *buffer, size_t size)
{
	SEND(REAL_CALL(write)(fd, buffer, size), EAGAIN);
}

KILN_API ssize_t writev(int fd, const struct iovec *parts, int n)
{
	SEND(REAL_CALL(writev)(fd, parts, n), EAGAIN);
}

KILN_API ssize_t send(int fd, const void *buffer, size_t size, int flags)
{
	SEND(REAL_CALL(send)(fd, buffer, size, flags), EAGAIN);
}

KILN_API ssize_t sendto(int fd, const void *buffer, size_t size, int flags, __CONST_SOCKADDR_ARG to,
			socklen_t length)
{
	SEND(REAL_CALL(sendto)(fd, buffer, size, flags, to, length), EAGAIN);
}

KILN_API ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	SEND(REAL_CALL(sendmsg)(fd, message, flags), EAGAIN);
}

KILN_API int sendmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags)
{
	SEND(REAL_CALL(sendmmsg)(fd, messages, n, flags), EAGAIN);
}

/* What was begun goes on meanwhile; the second call tells how it ended. */
KILN_API int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t length)
{
	SEND(REAL_CALL(connect)(fd, to, length), EINPROGRESS);
}
