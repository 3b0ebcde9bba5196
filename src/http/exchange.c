/* exchange.c - requests: head, body, and that they are over. */
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>

#include "base/number.h"
#include "http/inside.h"

enum {
	SWALLOW_BYTES = 8 << 20, /* of a body that is refused, so that its sender reads why */
	MAX_GRANT_BYTES = 1 << 20,
	CALL_BYTES = 16 << 10, /* most calls need no more */
};

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

void *exchange_on_target(void *server, const char *target, struct MHD_Connection *connection)
{
	struct exchange *x = xcalloc(1, sizeof(*x));

	x->server = server;
	x->connection = connection;
	x->call.abandoned = &x->abandoned;
	x->peer =
		x->server->mhd.info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
	if (!x->peer->calls.kept)
		arena_reserve(&x->peer->calls, CALL_BYTES);
	x->call.arena = x->peer->calls;
	x->peer->calls = (struct arena){ 0 };
	x->raw_target = str_of(str_dup(&x->call.arena, str_of(target)));
	return x;
}

static void count_broken(struct http_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->stats.nbroken++;
	pthread_mutex_unlock(&s->lock);
}

static void count_begun(struct http_server *s, struct peer *peer)
{
	pthread_mutex_lock(&s->lock);
	peer->was_served = true; /* other threads look at it */
	s->nexchanges++;
	pthread_mutex_unlock(&s->lock);
}

static void count_ended(struct http_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->nexchanges--;
	pthread_mutex_unlock(&s->lock);
}

void exchange_on_completed(void *server, struct MHD_Connection *connection, void **exchange,
			   enum MHD_RequestTerminationCode code)
{
	struct exchange *x = *exchange;

	(void)connection;
	if (!x)
		return;
	if (x->is_admitted)
		count_ended(server);
	else
		count_broken(server);
	x->sent.is_complete = code == MHD_REQUEST_TERMINATED_COMPLETED_OK;
	if (x->server->params.done)
		x->server->params.done(x->server->params.ctx, &x->call, &x->sent);
	peer_set_deadline(server, x->peer, clock_now_ms(), 0, 0); /* for the next request */
	stream_forget(x);
	http_content_drop(x->reply.content);
	buf_release(&x->body);
	arena_rewind(&x->call.arena);
	arena_release(&x->peer->calls);
	x->peer->calls = x->call.arena;
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
	if (!s->tls.paths[TLS_CLIENT_CA])
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
	x->call.is_tls = http_tls_is_on(&s->tls);
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

static enum MHD_Result send_refusal(struct exchange *x)
{
	return x->reply.late_ms && exchange_delay(x) ? MHD_YES : exchange_send(x);
}

/* The head has been read. */
static enum MHD_Result admit(struct exchange *x, const char *method)
{
	struct http_server *s = x->server;
	struct err e;

	x->is_admitted = true;
	count_begun(s, x->peer);
	x->start_ms = clock_now_ms();
	x->call.start_ns = clock_now_ns();
	describe(x, method);
	if (!http_target_parse(&x->call.arena, x->raw_target, &x->call.target, &e))
		exchange_say(&x->reply, 400, "400 Bad Request\n");
	else
		x->max_body_bytes = s->params.admit(s->params.ctx, &x->call, &x->reply);
	if (!x->reply.status && announced_bytes(x) > x->max_body_bytes)
		exchange_say(&x->reply, 413, "the body of the request is too large\n");
	x->granted_bytes = FIRST_GRANT_BYTES;
	return !x->reply.status || must_swallow(x) ? MHD_YES : send_refusal(x);
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

/* Of one that is refused. What turned out while it came may be as long as it might have been. */
static enum MHD_Result swallow(struct exchange *x, size_t n)
{
	size_t most = x->max_body_bytes > SWALLOW_BYTES ? x->max_body_bytes : SWALLOW_BYTES;

	x->swallowed += n;
	peer_set_deadline(x->server, x->peer, x->start_ms, x->swallowed, 0);
	return x->swallowed <= most ? MHD_YES : MHD_NO;
}

/* A part of the body. */
static enum MHD_Result take_upload(struct exchange *x, const char *upload, size_t n)
{
	const struct http_server_params *params = &x->server->params;

	if (x->reply.status)
		return swallow(x, n);
	if (params->grow && x->body.n + n > x->granted_bytes) {
		x->granted_bytes = next_grant(x, x->body.n + n);
		x->call.body = buf_view(&x->body);
		params->grow(params->ctx, &x->call, x->granted_bytes, &x->reply);
	}
	if (!x->reply.status && n > x->max_body_bytes - x->body.n)
		exchange_say(&x->reply, 413, "the body of the request is too large\n");
	if (x->reply.status) {
		buf_release(&x->body);
		x->body = (struct buf){ 0 };
		return MHD_YES;
	}
	if (!x->body.n && x->call.announced_bytes <= FIRST_GRANT_BYTES)
		buf_room(&x->body, x->call.announced_bytes);
	buf_add(&x->body, upload, n);
	peer_set_deadline(x->server, x->peer, x->start_ms, x->body.n, x->body.n);
	return MHD_YES;
}

/* Megabytes that come without a pause keep a thread on its core until the kernel's next tick,
 * milliseconds later, while others wait that have little to do. */
static void let_others_go(const struct exchange *x)
{
	if (x->body.n + x->swallowed > FIRST_GRANT_BYTES)
		sched_yield();
}

enum MHD_Result exchange_on_request(void *server, struct MHD_Connection *connection,
				    const char *url, const char *method, const char *version,
				    const char *upload, size_t *nupload, void **exchange)
{
	struct exchange *x = *exchange;

	(void)server, (void)connection, (void)url, (void)version;
	if (x->is_answered)
		return exchange_send(x);
	if (!x->is_admitted)
		return admit(x, method);
	if (*nupload) {
		enum MHD_Result result = take_upload(x, upload, *nupload);

		*nupload = 0;
		let_others_go(x);
		return result;
	}
	if (x->reply.status)
		return send_refusal(x);
	x->call.body = buf_view(&x->body);
	if (exchange_give(x))
		return MHD_YES;
	exchange_say(&x->reply, 503, "the server is stopping\n");
	return exchange_send(x);
}
