#include "http/server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "http/listen.h"
#include "http/microhttpd.h"
#include "http/tls.h"

enum {
	MAX_HEAD_BYTES = 64 << 10,
	MAX_CONNECTIONS = 512,
	IDLE_SECONDS = 60,
	MIN_SOCKET_THREADS = 2,
	HANDLERS = 16,
	SWALLOW_BYTES = 8 << 20,      /* of a body that is refused, so that its sender reads why */
	FIRST_GRANT_BYTES = 64 << 10, /* of a body */
	MAX_GRANT_BYTES = 1 << 20,
	HOLDER_MS = 3000, /* that a slow peer may hold memory that others wait for */
	WATCH_MS = 20,
	LOOK_MS = 250, /* at peers that may be late */
	PATIENCE_S = 60,
	LEAST_BYTES_PER_S = 64 << 10,
};

#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* A connection. */
struct peer {
	int fd;
	int64_t deadline_ms; /* by then it has sent its request, or read its answer; 0: we are at
				work */
	int64_t since_ms;    /* we wait for it */
	size_t held_bytes;   /* of its body, or of our answer */
	bool is_shut, was_served;
	bool is_identified; /* the two below are known */
	const char *address;
	struct str client;
	struct arena arena;
};

struct exchange {
	struct http_call call; /* first: callers are given a pointer to it */
	struct http_server *server;
	struct peer *peer;
	int64_t start_ms;
	struct MHD_Connection *connection;
	struct str raw_target;
	struct buf body;
	size_t max_body_bytes, granted_bytes, swallowed;
	struct http_reply reply;
	struct http_sent sent;
	atomic_bool abandoned;
	bool is_admitted, is_answered, accepts_gzip;
};

typedef vec(struct exchange *) exchanges;

struct http_server {
	struct http_server_params params;
	struct MHD_Daemon *daemon;
	int fd;
	uint16_t port;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t has_waiting, has_running;
	exchanges waiting, running;
	vec(struct peer *) peers;
	struct http_server_stats stats;
	size_t nshut;	   /* of the peers */
	size_t nexchanges; /* whose heads have been read, and that are not over */
	bool is_stopping;
	atomic_bool is_draining;
	pthread_t *handlers, watcher;
	size_t nhandlers;
	bool has_watcher;
	struct http_tls tls;
	struct microhttpd mhd;
};

/* ---- what handlers ask for */

static struct exchange *exchange_of(const struct http_call *c)
{
	return (struct exchange *)(uintptr_t)c;
}

struct str http_call_header(const struct http_call *c, const char *name)
{
	const struct exchange *x = exchange_of(c);
	const char *value = x->server->mhd.lookup(x->connection, MHD_HEADER_KIND, name);

	return value ? str_of(value) : (struct str){ 0 };
}

struct http_server *http_call_server(const struct http_call *c)
{
	return exchange_of(c)->server;
}

void http_reply_header(struct http_reply *r, const char *name, const char *value)
{
	if (r->nheaders == HTTP_REPLY_HEADERS)
		return;
	r->headers[r->nheaders][0] = name;
	r->headers[r->nheaders++][1] = value;
}

static bool is_loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const void *)a;

		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	}
	if (a->sa_family == AF_INET6) {
		const struct in6_addr *v6 =
			&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;

		return IN6_IS_ADDR_LOOPBACK(v6) ||
		       (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
	}
	return false;
}

/* ---- patience */

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t now_ms(void)
{
	return now_ns() / 1000000;
}

/* Gives a peer its time, from `start_ms` on, to send or to read that many bytes. */
static void set_deadline(struct http_server *s, struct peer *peer, int64_t start_ms, size_t nbytes)
{
	pthread_mutex_lock(&s->lock);
	peer->since_ms = start_ms;
	if (!peer->is_shut)
		peer->deadline_ms = start_ms + (int64_t)s->params.patience_s * 1000 +
				    (int64_t)(nbytes * 1000 / s->params.least_bytes_per_s);
	pthread_mutex_unlock(&s->lock);
}

static void set_held(struct http_server *s, struct peer *peer, size_t nbytes)
{
	pthread_mutex_lock(&s->lock);
	peer->held_bytes = nbytes;
	pthread_mutex_unlock(&s->lock);
}

/* libmicrohttpd then finds that it is gone. */
static void shut_peer(struct http_server *s, struct peer *peer)
{
	shutdown(peer->fd, SHUT_RDWR);
	peer->deadline_ms = 0;
	peer->is_shut = true;
	s->nshut++;
}

/* A peer is in the list as long as its socket is open. */
static void shut_late_peers(struct http_server *s)
{
	int64_t now = now_ms();

	for (size_t i = 0; i < s->peers.n; i++) {
		struct peer *peer = s->peers.at[i];

		if (!peer->deadline_ms || now < peer->deadline_ms)
			continue;
		shut_peer(s, peer);
		s->stats.nlate++;
	}
}

/* Whoever has not sent a request yet goes before those who have. */
static bool goes_before(const struct peer *a, const struct peer *b)
{
	return a->was_served != b->was_served ? !a->was_served : a->since_ms < b->since_ms;
}

/* With an eighth of them left, whoever has kept us waiting longest must go. So slow peers, however
 * many, take connections from each other only. */
static void shed_peer(struct http_server *s)
{
	struct peer *worst = NULL;

	if (s->peers.n - s->nshut <= s->params.max_connections - s->params.max_connections / 8)
		return;
	for (size_t i = 0; i < s->peers.n; i++) {
		struct peer *peer = s->peers.at[i];

		if (peer->deadline_ms && (!worst || goes_before(peer, worst)))
			worst = peer;
	}
	if (!worst)
		return;
	shut_peer(s, worst);
	s->stats.nshed++;
}

/* By how much, and for how long. */
static double burden(const struct peer *peer, int64_t now)
{
	int64_t ms = now - peer->since_ms;

	if (!peer->deadline_ms || peer->held_bytes < FIRST_GRANT_BYTES || ms < HOLDER_MS)
		return 0;
	return (double)peer->held_bytes * (double)ms;
}

bool http_server_shed(struct http_server *s)
{
	struct peer *worst = NULL;
	int64_t now = now_ms();
	double most = 0;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->peers.n; i++) {
		double b = burden(s->peers.at[i], now);

		if (b > most) {
			most = b;
			worst = s->peers.at[i];
		}
	}
	if (worst) {
		shut_peer(s, worst);
		s->stats.nshed++;
	}
	pthread_mutex_unlock(&s->lock);
	return worst != NULL;
}

static void on_open(struct http_server *s, struct MHD_Connection *connection, void **peer_of)
{
	const union MHD_ConnectionInfo *fd =
		s->mhd.info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct peer *peer = xcalloc(1, sizeof(*peer));
	int on = 1;

	*peer_of = peer;
	peer->fd = fd ? fd->connect_fd : -1;
	/* By TLS head and body of an answer are written apart: the second would wait for the peer
	 * to have got the first. */
	setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	set_deadline(s, peer, now_ms(), 0);
	pthread_mutex_lock(&s->lock);
	s->stats.naccepted++;
	shed_peer(s);
	vec_push(&s->peers, peer);
	pthread_cond_signal(&s->has_running);
	pthread_mutex_unlock(&s->lock);
}

static void on_connection(void *server, struct MHD_Connection *connection, void **peer_of,
			  enum MHD_ConnectionNotificationCode code)
{
	struct http_server *s = server;
	struct peer *peer = *peer_of;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		on_open(s, connection, peer_of);
		return;
	}
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->peers.n; i++)
		if (s->peers.at[i] == peer)
			s->peers.at[i] = s->peers.at[--s->peers.n];
	s->nshut -= peer->is_shut;
	pthread_mutex_unlock(&s->lock);
	arena_release(&peer->arena);
	free(peer);
}

/* ---- replies */

static void drop_content(void *content)
{
	http_content_drop(content);
}

/* Does the peer have these bytes already? */
static bool is_known(const struct exchange *x)
{
	struct str have = http_call_header(&x->call, "If-None-Match");

	return x->reply.status == 200 && have.n &&
	       str_contains(have, str_of(http_content_tag(x->reply.content)));
}

static struct MHD_Response *make_response(struct exchange *x, unsigned *status)
{
	struct http_server *s = x->server;
	struct http_reply *r = &x->reply;
	struct str bytes = { 0 }, packed = { 0 };
	struct MHD_Response *response;
	bool is_repeated = r->content && is_known(x);

	*status = (unsigned)(is_repeated ? 304 : r->status);
	if (r->content && !is_repeated) {
		bytes = http_content_bytes(r->content);
		if (x->accepts_gzip)
			packed = http_content_packed(r->content);
		if (packed.n)
			bytes = packed;
	}
	x->sent = (struct http_sent){ .status = (int)*status, .body_bytes = bytes.n };
	response = s->mhd.response(bytes.n, (char *)(uintptr_t)bytes.p, drop_content,
				   r->content ? http_content_hold(r->content) : NULL);
	if (!response)
		return NULL;
	if (r->content) {
		s->mhd.header(response, "Content-Type", http_content_type(r->content));
		s->mhd.header(response, "ETag", http_content_tag(r->content));
		s->mhd.header(response, "Vary", "Accept-Encoding");
	}
	if (packed.n)
		s->mhd.header(response, "Content-Encoding", "gzip");
	return response;
}

static enum MHD_Result send_reply(struct exchange *x)
{
	struct http_server *s = x->server;
	enum MHD_Result result;
	unsigned status;
	struct MHD_Response *response = make_response(x, &status);

	if (!response)
		return MHD_NO;
	set_deadline(s, x->peer, now_ms(), x->sent.body_bytes);
	set_held(s, x->peer, x->sent.body_bytes);
	for (size_t i = 0; i < x->reply.nheaders; i++)
		s->mhd.header(response, x->reply.headers[i][0], x->reply.headers[i][1]);
	for (const char *const(*h)[2] = s->params.headers; h && (*h)[0]; h++)
		s->mhd.header(response, (*h)[0], (*h)[1]);
	if (atomic_load(&s->is_draining))
		s->mhd.header(response, "Connection", "close");
	result = s->mhd.queue(x->connection, status, response);
	s->mhd.forget(response);
	return result;
}

static void reply_text(struct http_reply *r, int status, const char *text)
{
	struct buf bytes = { 0 };

	buf_puts(&bytes, text);
	r->status = status;
	r->content = http_content_new(&bytes, "text/plain; charset=utf-8");
}

/* ---- threads that run handlers */

static void remove_exchange(exchanges *all, const struct exchange *x)
{
	for (size_t i = 0; i < all->n; i++) {
		if (all->at[i] == x) {
			memmove(all->at + i, all->at + i + 1, (--all->n - i) * sizeof(*all->at));
			return;
		}
	}
}

static struct exchange *take_exchange(struct http_server *s)
{
	struct exchange *x = NULL;

	pthread_mutex_lock(&s->lock);
	while (!s->waiting.n && !s->is_stopping)
		pthread_cond_wait(&s->has_waiting, &s->lock);
	if (s->waiting.n) {
		x = s->waiting.at[0];
		remove_exchange(&s->waiting, x);
		vec_push(&s->running, x);
		atomic_store(&x->abandoned, s->is_stopping);
		pthread_cond_signal(&s->has_running);
	}
	pthread_mutex_unlock(&s->lock);
	return x;
}

static void finish_exchange(struct exchange *x)
{
	struct http_server *s = x->server;

	pthread_mutex_lock(&s->lock);
	remove_exchange(&s->running, x);
	pthread_mutex_unlock(&s->lock);
	x->is_answered = true;
	s->mhd.resume(x->connection);
}

static void *run_handlers(void *server)
{
	struct http_server *s = server;
	struct exchange *x;

	while ((x = take_exchange(s))) {
		if (!atomic_load(&x->abandoned))
			s->params.handle(s->params.ctx, &x->call, &x->reply);
		if (!x->reply.status)
			reply_text(&x->reply, 503, "the server is stopping\n");
		if (x->reply.content && x->accepts_gzip && !atomic_load(&x->abandoned))
			http_content_packed(x->reply.content);
		finish_exchange(x);
	}
	return NULL;
}

/* Looks which peers have gone. Sockets of running exchanges stay open, as these are suspended. */
static void watch(struct http_server *s)
{
	for (size_t i = 0; i < s->running.n; i++) {
		struct pollfd fd = { s->running.at[i]->peer->fd, POLLRDHUP, 0 };

		if (s->is_stopping || (poll(&fd, 1, 0) > 0 && fd.revents))
			atomic_store(&s->running.at[i]->abandoned, true);
	}
}

/* Until something runs, or it is time to look who is late. */
static void wait_for_running(struct http_server *s)
{
	struct timespec until;

	if (!s->peers.n) {
		pthread_cond_wait(&s->has_running, &s->lock);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOOK_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&s->has_running, &s->lock, &until);
}

static void *run_watcher(void *server)
{
	struct http_server *s = server;

	pthread_mutex_lock(&s->lock);
	while (!s->is_stopping) {
		shut_late_peers(s);
		if (!s->running.n) {
			wait_for_running(s);
			continue;
		}
		watch(s);
		pthread_mutex_unlock(&s->lock);
		poll(NULL, 0, WATCH_MS);
		pthread_mutex_lock(&s->lock);
	}
	watch(s);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- what libmicrohttpd calls */

static void *on_target(void *server, const char *target, struct MHD_Connection *connection)
{
	struct exchange *x = xcalloc(1, sizeof(*x));

	x->server = server;
	x->connection = connection;
	x->call.abandoned = &x->abandoned;
	x->raw_target = str_of(str_dup(&x->call.arena, str_of(target)));
	x->peer =
		x->server->mhd.info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
	return x;
}

static void count_broken(struct http_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->stats.nbroken++;
	pthread_mutex_unlock(&s->lock);
}

static void count_exchange(struct http_server *s, int change)
{
	pthread_mutex_lock(&s->lock);
	s->nexchanges += (size_t)change;
	pthread_mutex_unlock(&s->lock);
}

static void on_completed(void *server, struct MHD_Connection *connection, void **exchange,
			 enum MHD_RequestTerminationCode code)
{
	struct exchange *x = *exchange;

	(void)connection;
	if (!x)
		return;
	if (x->is_admitted)
		count_exchange(server, -1);
	else
		count_broken(server);
	x->sent.is_complete = code == MHD_REQUEST_TERMINATED_COMPLETED_OK;
	if (x->server->params.done)
		x->server->params.done(x->server->params.ctx, &x->call, &x->sent);
	set_deadline(server, x->peer, now_ms(), 0); /* for the next request */
	set_held(server, x->peer, 0);
	http_content_drop(x->reply.content);
	buf_release(&x->body);
	arena_release(&x->call.arena);
	free(x);
	*exchange = NULL;
}

/* A length that is no number is libmicrohttpd's to refuse. */
static uint64_t announced_bytes(const struct exchange *x)
{
	uint64_t n = 0;

	number_parse_uint(str_trim(http_call_header(&x->call, "Content-Length")), 10, &n);
	return n;
}

/* Once for a connection: who its requests are from. */
static void identify(struct http_server *s, struct MHD_Connection *connection, struct peer *peer)
{
	const union MHD_ConnectionInfo *address =
		s->mhd.info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const union MHD_ConnectionInfo *session;
	char text[NI_MAXHOST] = "?";

	peer->is_identified = true;
	if (address && address->client_addr)
		getnameinfo(address->client_addr,
			    address->client_addr->sa_family == AF_INET6
				    ? sizeof(struct sockaddr_in6)
				    : sizeof(struct sockaddr_in),
			    text, sizeof(text), NULL, 0, NI_NUMERICHOST);
	peer->address = str_dup(&peer->arena, str_of(text));
	if (!s->tls.client_ca.n)
		return;
	session = s->mhd.info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	peer->client =
		http_tls_client(&s->tls, &peer->arena, session ? session->tls_session : NULL);
}

static void describe(struct exchange *x, const char *method)
{
	struct http_server *s = x->server;
	const union MHD_ConnectionInfo *address =
		s->mhd.info(x->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

	if (!x->peer->is_identified)
		identify(s, x->connection, x->peer);
	x->call.peer = x->peer->address;
	x->call.client = x->peer->client;
	x->call.is_tls = s->tls.certificate.n > 0;
	x->call.is_local = address && address->client_addr && is_loopback(address->client_addr);
	x->call.method = str_of(str_dup(&x->call.arena, str_of(method)));
	x->call.announced_bytes = announced_bytes(x);
	x->call.has_body = x->call.announced_bytes > 0 ||
			   http_call_header(&x->call, "Transfer-Encoding").n > 0;
	x->accepts_gzip = str_contains(http_call_header(&x->call, "Accept-Encoding"), STR("gzip"));
}

/* An answer before the end of a request closes the connection, and who sends a body, whatever we
 * say, may find it reset before he has read why: better let it all come, and keep none of it. */
static bool must_swallow(const struct exchange *x)
{
	return !x->call.has_body ||
	       (announced_bytes(x) <= SWALLOW_BYTES && !http_call_header(&x->call, "Expect").n);
}

/* The head has been read. */
static enum MHD_Result admit(struct exchange *x, const char *method)
{
	struct http_server *s = x->server;
	struct err e;

	x->is_admitted = x->peer->was_served = true;
	count_exchange(s, 1);
	x->start_ms = now_ms();
	x->call.start_ns = now_ns();
	describe(x, method);
	if (!http_target_parse(&x->call.arena, x->raw_target, &x->call.target, &e))
		reply_text(&x->reply, 400, "400 Bad Request\n");
	else
		x->max_body_bytes = s->params.admit(s->params.ctx, &x->call, &x->reply);
	if (!x->reply.status && announced_bytes(x) > x->max_body_bytes)
		reply_text(&x->reply, 413, "the body of the request is too large\n");
	x->granted_bytes = FIRST_GRANT_BYTES;
	return !x->reply.status || must_swallow(x) ? MHD_YES : send_reply(x);
}

/* At least `least`; otherwise no more than was announced, or may be. */
static size_t next_grant(const struct exchange *x, size_t least)
{
	size_t more = x->granted_bytes < MAX_GRANT_BYTES ? x->granted_bytes : MAX_GRANT_BYTES;
	size_t grant = x->granted_bytes + more, announced = announced_bytes(x);

	if (announced && grant > announced)
		grant = announced;
	if (grant > x->max_body_bytes)
		grant = x->max_body_bytes;
	return grant > least ? grant : least;
}

/* A part of the body. */
static enum MHD_Result take_upload(struct exchange *x, const char *upload, size_t n)
{
	const struct http_server_params *params = &x->server->params;

	if (x->reply.status) { /* refused */
		x->swallowed += n;
		set_deadline(x->server, x->peer, x->start_ms, x->swallowed);
		return x->swallowed <= SWALLOW_BYTES ? MHD_YES : MHD_NO;
	}
	if (params->grow && x->body.n + n > x->granted_bytes) {
		x->granted_bytes = next_grant(x, x->body.n + n);
		params->grow(params->ctx, &x->call, x->granted_bytes, &x->reply);
	}
	if (!x->reply.status && n > x->max_body_bytes - x->body.n)
		reply_text(&x->reply, 413, "the body of the request is too large\n");
	if (x->reply.status) {
		buf_release(&x->body);
		x->body = (struct buf){ 0 };
		return MHD_YES;
	}
	buf_add(&x->body, upload, n);
	set_deadline(x->server, x->peer, x->start_ms, x->body.n);
	set_held(x->server, x->peer, x->body.n);
	return MHD_YES;
}

/* False: there are none any more. */
static bool give_to_handlers(struct exchange *x)
{
	struct http_server *s = x->server;
	bool ok;

	pthread_mutex_lock(&s->lock);
	ok = !s->is_stopping;
	if (ok) {
		s->mhd.suspend(x->connection); /* before a handler can resume it */
		x->peer->deadline_ms = 0;
		vec_push(&s->waiting, x);
		pthread_cond_signal(&s->has_waiting);
	}
	pthread_mutex_unlock(&s->lock);
	return ok;
}

static enum MHD_Result on_request(void *server, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *nupload, void **exchange)
{
	struct exchange *x = *exchange;

	(void)server, (void)connection, (void)url, (void)version;
	if (x->is_answered)
		return send_reply(x);
	if (!x->is_admitted)
		return admit(x, method);
	if (*nupload) {
		enum MHD_Result result = take_upload(x, upload, *nupload);

		*nupload = 0;
		return result;
	}
	if (x->reply.status)
		return send_reply(x);
	x->call.body = buf_view(&x->body);
	if (give_to_handlers(x))
		return MHD_YES;
	reply_text(&x->reply, 503, "the server is stopping\n");
	return send_reply(x);
}

/* ---- start and end */

static bool start_threads(struct http_server *s, struct err *e)
{
	s->handlers = xcalloc(s->params.handlers, sizeof(*s->handlers));
	s->has_watcher = pthread_create(&s->watcher, NULL, run_watcher, s) == 0;
	while (s->nhandlers < s->params.handlers &&
	       pthread_create(&s->handlers[s->nhandlers], NULL, run_handlers, s) == 0)
		s->nhandlers++;
	return (s->has_watcher && s->nhandlers == s->params.handlers) ||
	       err_set(e, ERR_IO, "no threads for the web page can be started");
}

static bool start_daemon(struct http_server *s, struct err *e)
{
	unsigned cores = (unsigned)parallel_cores();
	unsigned threads = cores < MIN_SOCKET_THREADS ? MIN_SOCKET_THREADS : cores;
	unsigned flags = MHD_ALLOW_SUSPEND_RESUME;
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, s->tls.certificate.p },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, s->tls.key.p },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (char *)(uintptr_t)TLS_PRIORITIES },
		{ s->tls.client_ca.n ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0,
		  s->tls.client_ca.p },
		{ MHD_OPTION_END, 0, NULL },
	};

	/* With epoll it asks again and again for the rest of a handshake that does not come. */
	if (s->tls.certificate.n) {
		flags |= MHD_USE_TLS | MHD_USE_POLL_INTERNAL_THREAD;
	} else {
		flags |= MHD_USE_EPOLL_INTERNAL_THREAD;
		tls[0].option = MHD_OPTION_END;
	}
	s->daemon = s->mhd.start(
		flags, 0, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, s->fd,
		MHD_OPTION_THREAD_POOL_SIZE, threads, MHD_OPTION_CONNECTION_LIMIT,
		s->params.max_connections, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MAX_HEAD_BYTES,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, s, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_ARRAY,
		tls, MHD_OPTION_END);
	return s->daemon || err_set(e, ERR_IO, "%s cannot serve", MICROHTTPD);
}

static void set_default(unsigned *field, unsigned value)
{
	if (!*field)
		*field = value;
}

struct http_server *http_server_start(const struct http_server_params *params, struct err *e)
{
	struct http_server *s = xcalloc(1, sizeof(*s));

	s->params = *params;
	set_default(&s->params.patience_s, PATIENCE_S);
	set_default(&s->params.least_bytes_per_s, LEAST_BYTES_PER_S);
	set_default(&s->params.max_connections, MAX_CONNECTIONS);
	set_default(&s->params.handlers, HANDLERS);
	s->fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->has_waiting, NULL);
	pthread_cond_init(&s->has_running, NULL);
	if (microhttpd_load(&s->mhd, e) &&
	    (!params->certificate ||
	     http_tls_load(&s->tls, params->certificate, params->key, params->client_ca, e)))
		s->fd = http_listen(params->host, params->port, e);
	if (s->fd >= 0) {
		s->port = http_listen_port(s->fd);
		if (start_threads(s, e) && start_daemon(s, e))
			return s;
	}
	http_server_stop(s);
	return NULL;
}

uint16_t http_server_port(const struct http_server *s)
{
	return s->port;
}

void http_server_stats(struct http_server *s, struct http_server_stats *out)
{
	pthread_mutex_lock(&s->lock);
	*out = s->stats;
	out->nopen = s->peers.n;
	out->nwaiting = s->waiting.n;
	out->nrunning = s->running.n;
	pthread_mutex_unlock(&s->lock);
}

void http_server_drain(struct http_server *s, int64_t max_ms)
{
	int64_t until = now_ms() + max_ms;
	bool is_busy;

	atomic_store(&s->is_draining, true);
	s->mhd.quiesce(s->daemon);
	shutdown(s->fd, SHUT_RDWR); /* else the kernel would go on to take connections */
	do {
		pthread_mutex_lock(&s->lock);
		is_busy = s->nexchanges;
		pthread_mutex_unlock(&s->lock);
	} while (is_busy && now_ms() < until && poll(NULL, 0, WATCH_MS) == 0);
}

void http_server_stop(struct http_server *s)
{
	if (s->daemon && !atomic_load(&s->is_draining))
		s->mhd.quiesce(s->daemon);
	pthread_mutex_lock(&s->lock);
	s->is_stopping = true;
	watch(s);
	pthread_cond_broadcast(&s->has_waiting);
	pthread_cond_signal(&s->has_running);
	pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; i < s->nhandlers; i++)
		pthread_join(s->handlers[i], NULL);
	if (s->has_watcher)
		pthread_join(s->watcher, NULL);
	if (s->daemon)
		s->mhd.stop(s->daemon);
	if (s->fd >= 0)
		close(s->fd);
	vec_release(&s->waiting);
	vec_release(&s->running);
	vec_release(&s->peers);
	free(s->handlers);
	http_tls_release(&s->tls);
	pthread_cond_destroy(&s->has_waiting);
	pthread_cond_destroy(&s->has_running);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
