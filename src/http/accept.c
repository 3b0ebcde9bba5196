/* accept.c - takes connections and deals them out to libmicrohttpd, which has a thread for each
 * part of them.
 *
 * It could take them itself, with a pool of threads. But then all of these wake up for each new
 * connection, and by TLS, where it looks at every connection whenever it wakes up, many slow peers
 * would make everybody wait. Dealt out in turn, each thread has few to look at. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/parallel.h"
#include "http/inside.h"

enum {
	MAX_HEAD_BYTES = 64 << 10,
	IDLE_SECONDS = 60,
	MIN_THREADS = 16, /* so that who sends much shares one with few others */
	TLS_THREADS = 64,
	FULL_MS = 20, /* until somebody may have gone */
};

#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* ---- threads that read and write sockets */

static struct MHD_Daemon *start_daemon(struct http_server *s)
{
	unsigned flags = MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC;
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, s->tls.first[TLS_CERTIFICATE].p },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, s->tls.first[TLS_KEY].p },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (char *)(uintptr_t)TLS_PRIORITIES },
		{ s->tls.first[TLS_CLIENT_CA].n ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0,
		  s->tls.first[TLS_CLIENT_CA].p },
		{ MHD_OPTION_END, 0, NULL },
	};

	/* With epoll it asks again and again for the rest of a handshake that does not come. */
	if (http_tls_is_on(&s->tls)) {
		flags |= MHD_USE_TLS | MHD_USE_POLL_INTERNAL_THREAD;
	} else {
		flags |= MHD_USE_EPOLL_INTERNAL_THREAD;
		tls[0].option = MHD_OPTION_END;
	}
	return s->mhd.start(
		flags, 0, NULL, NULL, exchange_on_request, s, MHD_OPTION_CONNECTION_LIMIT,
		s->params.max_connections, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MAX_HEAD_BYTES,
		MHD_OPTION_URI_LOG_CALLBACK, exchange_on_target, s, MHD_OPTION_NOTIFY_COMPLETED,
		exchange_on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, peers_on_connection, s,
		MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

static size_t count_threads(const struct http_server *s)
{
	size_t cores = (size_t)parallel_cores();
	size_t least = http_tls_is_on(&s->tls) ? TLS_THREADS : MIN_THREADS;

	return cores < least ? least : cores;
}

/* ---- new connections */

/* Those that were dealt out count at once; libmicrohttpd may take a while to say that they are
 * there. */
static bool is_full(struct http_server *s)
{
	bool is_full;

	pthread_mutex_lock(&s->lock);
	is_full = s->ndealt - s->nclosed >= s->params.max_connections;
	pthread_mutex_unlock(&s->lock);
	return is_full;
}

/* False: there is none now. */
static bool deal_one(struct http_server *s, size_t turn)
{
	union {
		struct sockaddr any;
		struct sockaddr_in6 v6;
	} from;
	socklen_t n = sizeof(from);
	int fd = accept4(s->fd, &from.any, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return errno == ECONNABORTED || errno == EINTR;
	pthread_mutex_lock(&s->lock);
	s->ndealt++;
	pthread_mutex_unlock(&s->lock);
	if (s->mhd.add(s->daemons[turn % s->ndaemons], fd, &from.any, n) == MHD_YES)
		return true;
	pthread_mutex_lock(&s->lock);
	s->nclosed++;
	pthread_mutex_unlock(&s->lock);
	return true;
}

static void *run_acceptor(void *server)
{
	struct http_server *s = server;
	struct pollfd fds[] = { { s->stop_fd, POLLIN, 0 }, { s->fd, POLLIN, 0 } };
	size_t turn = 0;

	for (;;) {
		bool must_wait = is_full(s);

		if (poll(fds, must_wait ? 1 : 2, must_wait ? FULL_MS : -1) < 0 && errno != EINTR)
			return NULL;
		if (fds[0].revents)
			return NULL;
		if (must_wait || !fds[1].revents)
			continue;
		/* Without files for more, or once it has been shut, there is always "something". */
		if (!deal_one(s, turn++) && errno != EAGAIN)
			poll(fds, 1, FULL_MS);
	}
}

/* ---- start and end */

bool acceptor_start(struct http_server *s, struct err *e)
{
	size_t n = count_threads(s);

	s->daemons = xcalloc(n, sizeof(struct MHD_Daemon *));
	while (s->ndaemons < n && (s->daemons[s->ndaemons] = start_daemon(s)))
		s->ndaemons++;
	if (s->ndaemons < n)
		return err_set(e, ERR_IO, "%s cannot serve", MICROHTTPD);
	s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->has_acceptor =
		s->stop_fd >= 0 && pthread_create(&s->acceptor, NULL, run_acceptor, s) == 0;
	return s->has_acceptor ||
	       err_set(e, ERR_IO, "no thread that takes connections can be started");
}

void acceptor_quiesce(struct http_server *s)
{
	if (!s->has_acceptor)
		return;
	eventfd_write(s->stop_fd, 1);
	pthread_join(s->acceptor, NULL);
	s->has_acceptor = false;
}

void acceptor_stop(struct http_server *s)
{
	acceptor_quiesce(s);
	for (size_t i = 0; i < s->ndaemons; i++)
		s->mhd.stop(s->daemons[i]);
	if (s->stop_fd >= 0)
		close(s->stop_fd);
	free(s->daemons);
}
