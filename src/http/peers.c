/* peers.c - connections: who has kept us waiting for too long, and who has to go when there are too
 * many. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "http/inside.h"

enum {
	HOLDER_MS = 3000, /* that a slow peer may hold memory that others wait for */
	MAX_UNSENT_BYTES = 128 << 10,
};

void peer_set_deadline(struct http_server *s, struct peer *peer, int64_t start_ms, size_t nbytes,
		       size_t held_bytes)
{
	pthread_mutex_lock(&s->lock);
	peer->since_ms = start_ms;
	peer->held_bytes = held_bytes;
	if (!peer->is_shut)
		peer->deadline_ms = start_ms + (int64_t)s->params.patience_s * 1000 +
				    (int64_t)(nbytes * 1000 / s->params.least_bytes_per_s);
	pthread_mutex_unlock(&s->lock);
}

void peer_renew_deadline(struct http_server *s, struct peer *peer, size_t held_bytes)
{
	peer->since_ms = clock_now_ms();
	peer->held_bytes = held_bytes;
	if (!peer->is_shut)
		peer->deadline_ms = peer->since_ms + (int64_t)s->params.patience_s * 1000;
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
void peers_shut_late(struct http_server *s)
{
	int64_t now = clock_now_ms();

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
	int64_t now = clock_now_ms();
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

/* Before its handshake. */
static void begin_tls(struct http_server *s, struct MHD_Connection *connection, struct peer *peer)
{
	const union MHD_ConnectionInfo *session =
		s->mhd.info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);

	peer->keys = http_tls_begin(&s->tls, session ? session->tls_session : NULL);
	if (!peer->keys)
		shutdown(peer->fd, SHUT_RDWR);
}

static void on_open(struct http_server *s, struct MHD_Connection *connection, void **peer_of)
{
	const union MHD_ConnectionInfo *fd =
		s->mhd.info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct peer *peer = xcalloc(1, sizeof(*peer));
	int on = 1, unsent = MAX_UNSENT_BYTES;

	*peer_of = peer;
	peer->fd = fd ? fd->connect_fd : -1;
	/* By TLS head and body of an answer are written apart: the second would wait for the peer
	 * to have got the first. */
	setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	/* The kernel would take megabytes of an answer for a peer that reads none of it. */
	setsockopt(peer->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
	if (http_tls_is_on(&s->tls))
		begin_tls(s, connection, peer);
	peer_set_deadline(s, peer, clock_now_ms(), 0, 0);
	pthread_mutex_lock(&s->lock);
	s->stats.naccepted++;
	shed_peer(s);
	vec_push(&s->peers, peer);
	pthread_cond_signal(&s->has_running);
	pthread_mutex_unlock(&s->lock);
}

void peers_on_connection(void *server, struct MHD_Connection *connection, void **peer_of,
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
	s->nclosed++;
	pthread_mutex_unlock(&s->lock);
	http_tls_drop(&s->tls, peer->keys);
	arena_release(&peer->arena);
	arena_release(&peer->calls);
	free(peer);
}
