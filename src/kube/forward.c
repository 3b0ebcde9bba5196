/* forward.c - a local port that leads to a pod's: for each connection a WebSocket of the
 * portforward subresource, with two channels: 0 for bytes, 1 for what went wrong. On each the
 * server first sends the port's number. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/wait.h"
#include "http/listen.h"
#include "http/target.h"
#include "kube/inside.h"

enum {
	READ_BYTES = 32 << 10,
	MAX_QUEUED_BYTES = 256 << 10,
	MAX_CONNECTIONS = 64,
	FRESH_MS = 2000,  /* how long a WebSocket waits for its connection */
	LINGER_MS = 2000, /* how long who has sent all may still be sent something */
	PORT_BYTES = 2,
};

#define PROTOCOL "v4.channel.k8s.io"

struct kube_forward {
	struct kube_client *k;
	struct buf path;
	int listener, stop_fd;
	atomic_bool is_stopping;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t ended;
	size_t nconnections;
	struct websocket *spare; /* the one that showed that there is a way; or NULL */
	int64_t spare_ms;
	char problem[1000];
};

/* A connection, on a thread of its own. */
struct relay {
	struct kube_forward *f;
	struct websocket *w;
	int fd;
	struct buf to_local, complaint;
	size_t skipped[2]; /* bytes of the port's number, of each channel */
	bool is_local_done;
	int64_t done_ms; /* since when */
};

static void tell(struct kube_forward *f, struct str problem)
{
	pthread_mutex_lock(&f->lock);
	snprintf(f->problem, sizeof(f->problem), "%.*s", STR_ARG(problem));
	pthread_mutex_unlock(&f->lock);
}

/* ---- a connection */

static bool take_bytes(void *ctx, struct str message)
{
	struct relay *r = ctx;
	unsigned channel = message.n ? (unsigned char)message.p[0] : 2;
	struct str bytes = message.n ? str_from(message, 1) : message;
	size_t skip;

	if (channel > 1)
		return true;
	skip = PORT_BYTES - r->skipped[channel];
	skip = skip < bytes.n ? skip : bytes.n;
	r->skipped[channel] += skip;
	bytes = str_from(bytes, skip);
	if (channel == 0)
		buf_str(&r->to_local, bytes);
	else if (r->complaint.n < MAX_QUEUED_BYTES)
		buf_str(&r->complaint, bytes);
	return true;
}

/* False: there is nothing more to come. */
static bool read_remote(struct relay *r, struct err *e)
{
	int more = 1;

	while (more > 0 && r->to_local.n < MAX_QUEUED_BYTES)
		more = websocket_read(r->w, take_bytes, r, e);
	return more >= 0;
}

static void read_local(struct relay *r)
{
	char bytes[READ_BYTES];
	ssize_t n = recv(r->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0) {
		websocket_put(r->w, 0, (struct str){ bytes, (size_t)n });
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		r->is_local_done = true;
		r->done_ms = clock_now_ms();
	}
}

/* False: nobody is there any more. */
static bool write_local(struct relay *r)
{
	ssize_t n = r->to_local.n
			    ? send(r->fd, r->to_local.p, r->to_local.n, MSG_DONTWAIT | MSG_NOSIGNAL)
			    : 0;

	if (n <= 0)
		return n == 0 || errno == EAGAIN || errno == EINTR;
	memmove(r->to_local.p, r->to_local.p + n, r->to_local.n - (size_t)n);
	r->to_local.n -= (size_t)n;
	return true;
}

/* Until something can be done; false: it is time to stop. */
static bool wait_for_work(struct relay *r, bool is_remote_done)
{
	bool has_room = !r->is_local_done && websocket_queued(r->w) < MAX_QUEUED_BYTES;
	bool may_read = !is_remote_done && r->to_local.n < MAX_QUEUED_BYTES;
	struct pollfd fds[3] = {
		{ r->f->stop_fd, POLLIN, 0 },
		{ r->fd, (short)((has_room ? POLLIN : 0) | (r->to_local.n ? POLLOUT : 0)), 0 },
		{ is_remote_done ? -1 : websocket_fd(r->w),
		  (short)((may_read ? POLLIN : 0) | (websocket_queued(r->w) ? POLLOUT : 0)), 0 },
	};
	int64_t left = r->is_local_done ? r->done_ms + LINGER_MS - clock_now_ms() : -1;

	if (r->is_local_done && left <= 0)
		return false;
	for (int i = 1; i < 3; i++) /* one that hung up would be ready all the time */
		if (!fds[i].events)
			fds[i].fd = -1;
	poll(fds, 3, (int)left);
	if (fds[1].revents & (POLLIN | POLLHUP | POLLERR) && has_room)
		read_local(r);
	return !atomic_load(&r->f->is_stopping);
}

static bool relay_all(struct relay *r, struct err *e)
{
	bool is_remote_done = false;

	for (;;) {
		size_t before = r->to_local.n;

		if (!is_remote_done && !read_remote(r, e)) {
			is_remote_done = true;
			if (e->kind)
				return false;
		}
		if (r->to_local.n > before && r->is_local_done)
			r->done_ms = clock_now_ms();
		if (!write_local(r) || (is_remote_done && !r->to_local.n))
			return true;
		if (!is_remote_done && !websocket_flush(r->w, e))
			return false;
		if (!wait_for_work(r, is_remote_done))
			return true;
	}
}

/* The WebSocket that is there already, if it is not too old to be trusted. */
static struct websocket *take_spare(struct kube_forward *f)
{
	struct websocket *spare;
	bool is_fresh;

	pthread_mutex_lock(&f->lock);
	spare = f->spare;
	is_fresh = clock_now_ms() - f->spare_ms < FRESH_MS;
	f->spare = NULL;
	pthread_mutex_unlock(&f->lock);
	if (spare && !is_fresh) {
		websocket_free(spare);
		spare = NULL;
	}
	return spare;
}

static struct websocket *open_remote(struct kube_forward *f, struct err *e)
{
	return websocket_open(f->k, f->path.p, PROTOCOL, &f->is_stopping, e);
}

static void *run_relay(void *ctx)
{
	struct relay *r = ctx;
	struct kube_forward *f = r->f;
	struct err e = { 0 };

	r->w = take_spare(f);
	if (!r->w)
		r->w = open_remote(f, &e);
	if (r->w)
		relay_all(r, &e);
	if (!atomic_load(&f->is_stopping) && (e.kind || r->complaint.n)) {
		struct buf text = { 0 };

		kube_put_plain(&text, r->complaint.n ? buf_view(&r->complaint) : str_of(e.text));
		tell(f, buf_view(&text));
		buf_release(&text);
	}
	websocket_free(r->w);
	close(r->fd);
	buf_release(&r->to_local);
	buf_release(&r->complaint);
	free(r);
	pthread_mutex_lock(&f->lock);
	f->nconnections--;
	pthread_cond_signal(&f->ended);
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* ---- the port */

static void begin_relay(struct kube_forward *f, int fd)
{
	struct relay *r = xcalloc(1, sizeof(*r));
	pthread_attr_t detached;
	pthread_t thread;
	bool ok;

	r->f = f;
	r->fd = fd;
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	pthread_mutex_lock(&f->lock);
	ok = f->nconnections < MAX_CONNECTIONS &&
	     pthread_create(&thread, &detached, run_relay, r) == 0;
	f->nconnections += ok;
	pthread_mutex_unlock(&f->lock);
	pthread_attr_destroy(&detached);
	if (!ok) {
		tell(f, STR("there are too many connections"));
		close(fd);
		free(r);
	}
}

static void *run(void *ctx)
{
	struct kube_forward *f = ctx;

	while (!atomic_load(&f->is_stopping)) {
		struct pollfd fds[2] = { { f->listener, POLLIN, 0 }, { f->stop_fd, POLLIN, 0 } };
		int fd;

		poll(fds, 2, -1);
		fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			begin_relay(f, fd);
		else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			usleep(50000); /* no more descriptors; some will be free again */
	}
	return NULL;
}

static bool begin(struct kube_forward *f, uint16_t *port, struct err *e)
{
	f->spare = open_remote(f, e);
	if (!f->spare)
		return false;
	f->spare_ms = clock_now_ms();
	f->listener = http_listen("127.0.0.1", 0, e);
	if (f->listener < 0)
		return false;
	*port = http_listen_port(f->listener);
	f->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (f->stop_fd < 0)
		return err_system(e, "eventfd", "");
	return pthread_create(&f->thread, NULL, run, f) == 0 ||
	       err_set(e, ERR_IO, "there can be no thread for a port");
}

static void forward_release(struct kube_forward *f)
{
	websocket_free(f->spare);
	if (f->listener >= 0)
		close(f->listener);
	if (f->stop_fd >= 0)
		close(f->stop_fd);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->ended);
	buf_release(&f->path);
	free(f);
}

struct kube_forward *kube_forward_new(struct kube_client *k, const char *namespace, const char *pod,
				      uint16_t to, uint16_t *port, struct err *e)
{
	struct kube_forward *f = xcalloc(1, sizeof(*f));

	f->k = k;
	f->listener = f->stop_fd = -1;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->ended, NULL);
	buf_puts(&f->path, "/api/v1/namespaces/");
	http_put_escaped(&f->path, str_of(namespace));
	buf_puts(&f->path, "/pods/");
	http_put_escaped(&f->path, str_of(pod));
	buf_printf(&f->path, "/portforward?ports=%u%c", to, '\0');
	if (begin(f, port, e))
		return f;
	forward_release(f);
	return NULL;
}

void kube_forward_free(struct kube_forward *f)
{
	if (!f)
		return;
	atomic_store(&f->is_stopping, true);
	eventfd_write(f->stop_fd, 1);
	pthread_join(f->thread, NULL);
	pthread_mutex_lock(&f->lock);
	while (f->nconnections)
		pthread_cond_wait(&f->ended, &f->lock);
	pthread_mutex_unlock(&f->lock);
	forward_release(f);
}

void kube_forward_problem(struct kube_forward *f, struct buf *out)
{
	pthread_mutex_lock(&f->lock);
	buf_puts(out, f->problem);
	pthread_mutex_unlock(&f->lock);
}
