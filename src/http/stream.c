#include "http/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "http/inside.h"

enum {
	BLOCK_BYTES = 4 << 10,
	GONE_MS = 30000, /* that what we send may be without an answer of the peer's machine */
};

/* Under the server's lock. */
struct http_stream {
	struct http_server *server;
	struct exchange *exchange; /* NULL: not yet, or it is over */
	struct buf text;
	size_t nread; /* of the text */
	size_t max_unread;
	bool has_writer, has_reply; /* references */
	bool is_suspended, is_ended, is_cut;
};

/* ---- with the lock */

static size_t unread(const struct http_stream *s)
{
	return s->text.n - s->nread;
}

static void wake(struct http_stream *s)
{
	if (s->is_suspended)
		s->server->mhd.resume(s->exchange->connection);
	s->is_suspended = false;
}

static void cut(struct http_stream *s)
{
	s->is_cut = true;
	s->text.n = s->nread = 0;
	/* It may be waiting for the peer to read. */
	if (s->exchange)
		shutdown(s->exchange->peer->fd, SHUT_RDWR);
	wake(s);
}

static void free_unused(struct http_stream *s)
{
	if (s->has_writer || s->has_reply)
		return;
	buf_release(&s->text);
	free(s);
}

static ssize_t take_unread(struct http_stream *s, char *to, size_t room)
{
	size_t n = unread(s) < room ? unread(s) : room;

	memcpy(to, s->text.p + s->nread, n);
	s->nread += n;
	/* A stream may be silent for long, and there are many. */
	if (!unread(s)) {
		buf_release(&s->text);
		s->nread = 0;
	}
	peer_renew_deadline(s->server, s->exchange->peer, unread(s));
	return (ssize_t)n;
}

static void suspend(struct http_stream *s)
{
	s->server->mhd.suspend(s->exchange->connection);
	s->exchange->peer->deadline_ms = 0;
	s->is_suspended = true;
}

/* What was read makes room. */
static void add_text(struct http_stream *s, struct str bytes)
{
	size_t n = unread(s);

	if (s->nread && n)
		memmove(s->text.p, s->text.p + s->nread, n);
	s->text.n = n;
	s->nread = 0;
	buf_str(&s->text, bytes);
}

/* ---- the writer's side */

struct http_stream *http_stream_new(const struct http_call *c, size_t max_unread_bytes)
{
	struct http_stream *s = xcalloc(1, sizeof(*s));

	s->server = http_call_server(c);
	s->max_unread = max_unread_bytes;
	s->has_writer = s->has_reply = true;
	return s;
}

bool http_stream_write(struct http_stream *s, struct str bytes)
{
	struct http_server *server = s->server;
	bool ok;

	pthread_mutex_lock(&server->lock);
	ok = s->has_reply && !s->is_cut && !s->is_ended;
	if (ok && bytes.n > s->max_unread - unread(s)) {
		server->stats.nlate++;
		cut(s);
		ok = false;
	}
	if (ok) {
		add_text(s, bytes);
		wake(s);
	}
	pthread_mutex_unlock(&server->lock);
	return ok;
}

size_t http_stream_unread(struct http_stream *s)
{
	size_t n;

	pthread_mutex_lock(&s->server->lock);
	n = unread(s);
	pthread_mutex_unlock(&s->server->lock);
	return n;
}

void http_stream_end(struct http_stream *s)
{
	struct http_server *server = s->server;

	pthread_mutex_lock(&server->lock);
	s->is_ended = true;
	s->has_writer = false;
	wake(s);
	free_unused(s);
	pthread_mutex_unlock(&server->lock);
}

/* ---- the peer's side */

/* libmicrohttpd can send more. */
static ssize_t read_stream(void *stream, uint64_t at, char *to, size_t room)
{
	struct http_stream *s = stream;
	ssize_t n = 0;

	(void)at;
	pthread_mutex_lock(&s->server->lock);
	if (s->is_cut)
		n = MHD_CONTENT_READER_END_WITH_ERROR;
	else if (unread(s))
		n = take_unread(s, to, room);
	else if (s->is_ended)
		n = MHD_CONTENT_READER_END_OF_STREAM;
	else
		suspend(s);
	pthread_mutex_unlock(&s->server->lock);
	return n;
}

struct MHD_Response *stream_response(struct exchange *x)
{
	struct http_server *server = x->server;
	struct http_stream *s = x->reply.stream;
	struct MHD_Response *response =
		server->mhd.stream(MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_stream, s, NULL);
	int gone_ms = GONE_MS;

	if (!response)
		return NULL;
	setsockopt(x->peer->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &gone_ms, sizeof(gone_ms));
	pthread_mutex_lock(&server->lock);
	s->exchange = x;
	s->is_ended |= server->is_stopping || atomic_load(&server->is_draining);
	vec_push(&server->streams, s);
	pthread_mutex_unlock(&server->lock);
	return response;
}

void stream_forget(struct exchange *x)
{
	struct http_server *server = x->server;
	struct http_stream *s = x->reply.stream;

	if (!s)
		return;
	pthread_mutex_lock(&server->lock);
	for (size_t i = 0; i < server->streams.n; i++)
		if (server->streams.at[i] == s)
			server->streams.at[i] = server->streams.at[--server->streams.n];
	s->exchange = NULL;
	s->has_reply = false;
	free_unused(s);
	pthread_mutex_unlock(&server->lock);
}

/* Nobody else looks at a socket whose connection is suspended. */
void streams_cut_gone(struct http_server *server)
{
	for (size_t i = 0; i < server->streams.n; i++) {
		struct http_stream *s = server->streams.at[i];
		struct pollfd fd = { s->exchange->peer->fd, POLLRDHUP, 0 };

		if (!s->is_cut && poll(&fd, 1, 0) > 0 && fd.revents)
			cut(s);
	}
}

void streams_end(struct http_server *server)
{
	pthread_mutex_lock(&server->lock);
	for (size_t i = 0; i < server->streams.n; i++) {
		server->streams.at[i]->is_ended = true;
		wake(server->streams.at[i]);
	}
	pthread_mutex_unlock(&server->lock);
}
