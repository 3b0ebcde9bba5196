/* inside.h - what the files of the server share: connections (accept.c, peers.c), requests and
 * their bodies (exchange.c), replies (replies.c, stream.c), the threads that run handlers
 * (handlers.c), start and end (server.c).
 *
 * A peer lives as long as its connection, an exchange from the first line of a request to the end
 * of its reply. Both belong to the thread of libmicrohttpd that has the connection, except that an
 * exchange is its handler's while the connection is suspended. Fields that say so are under the
 * lock.
 */
#ifndef HTTP_INSIDE_H
#define HTTP_INSIDE_H

#include <pthread.h>

#include "base/vec.h"
#include "base/wait.h"
#include "http/microhttpd.h"
#include "http/server.h"
#include "http/tls.h"

enum {
	FIRST_GRANT_BYTES = 64 << 10, /* of a body */
	WATCH_MS = 20,
};

/* A connection. */
struct peer {
	int fd;
	/* Under the lock, up to was_served: */
	int64_t deadline_ms; /* by then it has sent its request, or read its answer; 0: we are at
				work */
	int64_t since_ms;    /* we wait for it */
	size_t held_bytes;   /* of its body, or of our answer */
	bool is_shut, was_served;
	struct http_tls_keys *keys; /* of its session; NULL: it has none */
	bool is_identified;	    /* the two below are known */
	const char *address;
	struct str client;
	struct arena arena;
	struct arena calls; /* kept for its next exchange */
};

struct exchange {
	struct http_call call; /* first: callers are given a pointer to it */
	struct http_server *server;
	struct peer *peer;
	int64_t start_ms, late_until_ms;
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
	struct MHD_Daemon **daemons; /* a thread each */
	size_t ndaemons;
	pthread_t acceptor;
	bool has_acceptor;
	int fd, stop_fd; /* for connections; an event: take no more */
	uint16_t port;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t has_waiting, has_running;
	exchanges waiting, running, late; /* late: of replies that are */
	vec(struct peer *) peers;
	vec(struct http_stream *) streams; /* that are being sent */
	struct http_server_stats stats;
	size_t ndealt, nclosed; /* connections, ever */
	size_t nshut;		/* of the peers */
	size_t nexchanges;	/* whose heads have been read, and that are not over */
	bool is_stopping;
	atomic_bool is_draining;
	pthread_t *handlers, watcher;
	size_t nhandlers;
	bool has_watcher;
	struct http_tls tls;
	struct microhttpd mhd;
};

/* ---- peers.c */

/* Gives a peer its time, from `start_ms` on, to send or to read that many bytes, while we hold so
 * many for it. */
void peer_set_deadline(struct http_server *s, struct peer *peer, int64_t start_ms, size_t nbytes,
		       size_t held_bytes);
/* The same of a stream, of which so many bytes are held, from now on. Called with the lock. */
void peer_renew_deadline(struct http_server *s, struct peer *peer, size_t held_bytes);
/* Called with the lock. */
void peers_shut_late(struct http_server *s);
/* libmicrohttpd has opened a connection, or has closed one. */
void peers_on_connection(void *server, struct MHD_Connection *connection, void **peer_of,
			 enum MHD_ConnectionNotificationCode code);

/* ---- accept.c */

bool acceptor_start(struct http_server *s, struct err *e);
/* Takes no more connections. */
void acceptor_quiesce(struct http_server *s);
/* No handler may run any more. */
void acceptor_stop(struct http_server *s);

/* ---- exchange.c: what libmicrohttpd calls */

void *exchange_on_target(void *server, const char *target, struct MHD_Connection *connection);
enum MHD_Result exchange_on_request(void *server, struct MHD_Connection *connection,
				    const char *url, const char *method, const char *version,
				    const char *upload, size_t *nupload, void **exchange);
void exchange_on_completed(void *server, struct MHD_Connection *connection, void **exchange,
			   enum MHD_RequestTerminationCode code);

/* ---- replies.c */

enum MHD_Result exchange_send(struct exchange *x);
void exchange_say(struct http_reply *r, int status, const char *text);

/* ---- stream.c */

struct MHD_Response *stream_response(struct exchange *x);
/* The exchange is over. */
void stream_forget(struct exchange *x);
/* Called with the lock. */
void streams_cut_gone(struct http_server *s);
/* All of them, as if who writes them had. */
void streams_end(struct http_server *s);

/* ---- handlers.c */

bool handlers_start(struct http_server *s, struct err *e);
/* Marks what runs as abandoned, and waits for it. */
void handlers_stop(struct http_server *s);
/* False: there are none any more. */
bool exchange_give(struct exchange *x);
/* Keeps a reply back; false: it must go now. */
bool exchange_delay(struct exchange *x);

#endif
