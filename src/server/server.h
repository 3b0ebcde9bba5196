/* server.h - `kiln serve`: ingest, queries and pages over a store. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <pthread.h>

#include "base/err.h"
#include "base/escape.h"
#include "http/server.h"
#include "server/auth.h"
#include "server/desks.h"
#include "server/options.h"
#include "store/store.h"

struct collector;   /* collect/collect.h: takes profiles of targets */
struct debuginfo;   /* debuginfo.h: binaries, to name addresses by */
struct limits;	    /* limits.h: how much, and what was refused */
struct metrics;	    /* metrics.h: what is counted */
struct owners;	    /* owners.h: of functions */
struct names;	    /* names.h: of addresses that came without */
struct site;	    /* web/web.h: pages */
struct collector;   /* collect/collect.h: takes profiles of targets */
struct limits;	    /* limits.h: how much, and what was refused */
struct metrics;	    /* metrics.h: what is counted */
struct site;	    /* web/web.h: pages */
struct regressions; /* regressions.h: looks for them in the background */

struct live;
struct warmer;

struct server {
	const struct server_options *options;
	struct store *store;
	struct http_server *http;
	struct auth *auth;
	struct limits *limits;
	struct metrics *metrics;
	struct site *site;
	struct regressions *regressions;
	struct warmer *warmer; /* warmer.h */
	struct live *live;     /* live.h: pages that are told what is new */
	int64_t started;       /* ns since 1970 */
	atomic_bool is_stopping;
	struct collector *collector;
	pthread_mutex_t scrape_lock; /* of the numbers of its targets among the metrics */
	struct desks desks;
	struct debuginfo *debuginfo;
	struct names *names;
	struct owners *owners;
	char pprof_socket[92]; /* of the agent, self.h; "": it is not there */
};

/* Serves until SIGINT or SIGTERM; SIGHUP has it read the files of TLS, tokens and users, and the
 * scrape jobs again. */
bool server_run(const struct server_options *options, struct err *e);

/* The requests' part of kiln-api(7), in scdoc's language. */
void server_scdoc_api(struct buf *out);

/* ---- for the handlers of routes (routes.def) */

struct call {
	struct server *server;
	struct http_call *http;
	struct http_reply *reply;
	struct arena *arena; /* the call's */
	struct str rest;     /* of the path, of routes that end in a '*' */
	enum role role;	     /* of whoever asks */
	struct str who;	     /* name of the token or user; "" */
	bool gives_profile;  /* set by handlers that answer with one: pprof may be asking */
	struct str service;  /* of the profile that is being read, once it is known */
	const char *part;    /* of the request that is being read: errors name it; NULL: all */
};

/* Each is one line in routes.def: method, path, role that it takes, handler, what it does (for the
 * OpenAPI description). */
typedef void route_handler(struct call *c);

/* Replies: bytes of a buffer, which is emptied, of a type that is a literal. Errors are what the
 * route's clients understand: {"code":400,"error":"..."} as profefe has it, or those of connect.h;
 * pprof clients get errors that they show (X-Go-Pprof). */
void reply_as(struct call *c, int status, struct buf *bytes, const char *type);
void reply_json(struct call *c, int status, struct buf *json);
void reply_text(struct call *c, int status, const char *text);
void reply_error(struct call *c, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same of what has been counted (gate_refuse). */
void reply_refused(struct call *c, int status, const char *text);
/* Status and text of a store's error. */
void reply_failure(struct call *c, const struct err *e);
/* A header that says what is not in the answer, if anything is; once. */
void reply_left_out(struct call *c, const struct store_left_out *x);
/* A profile, gzipped, with a name to save it by. */
void reply_profile(struct call *c, const struct profile *p, const char *filename);
/* Bytes that are no text; the buffer is emptied. */
void reply_file(struct call *c, struct buf *bytes, const char *filename);

#endif
