/* server.h - answers to requests over HTTP: a thin face of libmicrohttpd.
 *
 * libmicrohttpd is loaded when a server starts, so that others do not pay for it. A few threads
 * read and write sockets, others run the handler, so that a slow answer or a slow client holds up
 * nobody else. Heads, bodies and connections are limited, and so is the time that a peer may be
 * idle, or take to send a request or to read its answer. When connections get scarce, those go that
 * have kept us waiting longest. If the peer goes away while its answer is being made, `abandoned`
 * becomes true, within some 20 ms.
 *
 *	struct http_server *s = http_server_start(&params, &e);
 *	... wait for a signal ...
 *	http_server_stop(s);
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "http/content.h"
#include "http/stream.h"
#include "http/target.h"

struct http_call {
	struct arena arena; /* for what the answer needs, too */
	struct str method;
	struct http_target target;
	struct str body;
	bool is_local; /* does the peer have an address of the loopback interface? */
	bool has_body; /* known before it has been read */
	bool is_tls;
	const char *peer; /* its address: "10.0.0.7" or "::1" */
	struct str
		client;	  /* name in its certificate, which client_ca has signed; p == NULL: none */
	int64_t start_ns; /* of CLOCK_MONOTONIC: its head had been read */
	size_t announced_bytes; /* of the body; 0: none, or it does not say */
	void *user;		/* the handler's own; freed by `done` */
	const atomic_bool *abandoned;
};

/* Value of a header, whose name may be in any case; p == NULL if it is not there. */
struct str http_call_header(const struct http_call *c, const char *name);

/* Who called. Handlers may run before http_server_start has returned. */
struct http_server *http_call_server(const struct http_call *c);

/* A call that nobody sent, for what comes in another way and goes through the same code: it has no
 * headers and no body. The server must outlive it. */
struct http_call *http_call_new(struct http_server *s);
void http_call_free(struct http_call *c);

enum { HTTP_REPLY_HEADERS = 12 };

struct http_reply {
	int status;
	unsigned late_ms; /* it goes so much later: who asks too much costs nothing meanwhile */
	struct http_content *content; /* its own reference; NULL: an empty body */
	struct http_stream *stream;   /* or NULL: what goes on, instead of the content */
	size_t nheaders;
	const char *headers[HTTP_REPLY_HEADERS][2]; /* live as long as the call */
};

void http_reply_header(struct http_reply *r, const char *name, const char *value);

/* What became of a reply. */
struct http_sent {
	int status;	   /* 0: there was none */
	size_t body_bytes; /* as they went over the wire, or were to */
	bool is_complete;
};

struct http_server_params {
	const char *host;		 /* "": every address of the machine */
	uint16_t port;			 /* 0: any that is free */
	const char *const (*headers)[2]; /* of every reply; a NULL name ends them */
	/* Asked once the head has been read. Returns how many bytes the body may have, or sets
	 * reply->status to refuse the request as it is. */
	size_t (*admit)(void *ctx, struct http_call *call, struct http_reply *reply);
	/* Or NULL. The body is to have so many bytes in memory: asked before they are more than
	 * 64 KiB, and again as they become more, in steps of 1 MiB at most; call->body are those
	 * that have come. May set reply->status to refuse it, and has the first word on one that is
	 * larger than `admit` allows. */
	void (*grow)(void *ctx, struct http_call *call, size_t nbytes, struct http_reply *reply);
	/* Makes the reply, on any of several threads. */
	void (*handle)(void *ctx, struct http_call *call, struct http_reply *reply);
	/* Or NULL. It is over with a call, refused ones too; whether or not the peer has read all
	 * of the reply. A call whose method is "" never had a head that could be read. */
	void (*done)(void *ctx, struct http_call *call, const struct http_sent *sent);
	void *ctx;
	/* A request, and later its answer, must get across in so many seconds, and in one more for
	 * each so many bytes. 0: what is usual. */
	unsigned patience_s, least_bytes_per_s;
	unsigned max_connections, handlers; /* threads that run them; 0: what is usual */
	/* Files of PEM text: with the first two it speaks TLS, with the third it also asks clients
	 * for certificates; those who show none get as far as `admit`. NULL: none. */
	const char *certificate, *key, *client_ca;
};

/* Strings of the params, and the handler, must live until http_server_stop. Failures to listen are
 * told in Go's words: listen tcp 127.0.0.1:80: bind: permission denied. */
struct http_server *http_server_start(const struct http_server_params *params, struct err *e);
uint16_t http_server_port(const struct http_server *s);
/* Reads the files of TLS again, or only if they have changed. Connections stay as they are; new
 * ones have the new certificate, and those that client_ca's old text let in are asked to come again
 * with their next reply. False: they are wrong, and the old ones stay in use. One thread at a time.
 */
bool http_server_reload(struct http_server *s, bool only_changed, bool *is_new, struct err *e);

struct http_server_stats {
	uint64_t nopen, nwaiting,
		nrunning; /* connections; calls for a thread; calls that have one */
	uint64_t nstreams;
	uint64_t naccepted;
	uint64_t nlate;	  /* shut because they were too slow */
	uint64_t nshed;	  /* shut to make room for others */
	uint64_t nbroken; /* whose head was wrong, or never came in full */
};
void http_server_stats(struct http_server *s, struct http_server_stats *out);
/* Takes no more connections, and waits for the calls there are, but not for longer.
 * http_server_stop comes next. */
void http_server_drain(struct http_server *s, int64_t max_ms);
/* Memory is short: shuts the connection of whoever has had most of it for longest, by sending or
 * reading slowly, some seconds at least. False: there is none. */
bool http_server_shed(struct http_server *s);
/* Marks running calls as abandoned, waits for their handlers, closes all connections. */
void http_server_stop(struct http_server *s);

#endif
