/* gate.h - what every request goes through before and after its handler.
 *
 * Whoever asks is known and may do it; he is not too fast; there is memory for what he sends and
 * for what he gets. A refusal is an answer with the limit's name in it, is counted, logged and
 * listed.
 *
 *	gate_admit	the head is there, the body may be to come
 *	gate_grow	the body takes more memory
 *	gate_enter	a thread is about to run the handler
 *	gate_leave	the answer is made
 *	gate_done	it has been sent, or never will be
 */
#ifndef SERVER_GATE_H
#define SERVER_GATE_H

#include <netinet/in.h>

#include "server/routes.h"

/* Of one request, from gate_admit to gate_done; http_call.user. */
struct visit {
	const struct route *route; /* NULL: there is none */
	struct str rest;	   /* struct call */
	enum role role;
	struct str who;
	uint64_t memory; /* taken from limits->memory */
	uint64_t unread; /* added to limits->unread */
	bool has_turn, is_checked, is_looked_at;
};

/* Makes server->auth, limits and metrics of the options. `host` is where it will listen. */
bool gate_open(struct server *s, const char *host, struct err *e);
void gate_close(struct server *s);
/* TLS, connections, threads. */
void gate_set_http(const struct server *s, struct http_server_params *p);

/* Returns how many bytes the body may have, or has answered. */
size_t gate_admit(struct call *c);
void gate_grow(void *server, struct http_call *http, size_t nbytes, struct http_reply *reply);
/* False: it has been answered. */
bool gate_enter(struct call *c);
void gate_leave(struct call *c);
void gate_done(struct server *s, struct http_call *http, const struct http_sent *sent);

/* Who asks, as limits tell clients apart: by name, or by address, for which `text` is room. */
struct str gate_client(const struct http_call *http, char text[INET6_ADDRSTRLEN]);
/* "64MB", in the call's arena. */
const char *gate_bytes_text(const struct call *c, uint64_t n);

/* ---- for handlers */

/* Answers with what kept the request from being served. `limit` is named as its option is. */
void gate_refuse(struct call *c, int status, const char *limit, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The answer will go a little late: who asks too much would come again at once. */
void gate_keep_waiting(struct call *c);
/* Counts, logs and lists a part of a request that is refused, while the rest goes on. */
void gate_count(struct call *c, int status, const char *limit, const char *why);
/* Counts a profile that is not stored for its service, if that is known: from the handler, or by
 * what the request says. */
void gate_count_service(struct call *c, const char *reason, const char *why);
/* Memory for the rest of the request; waits a little for it. False: it has been refused. */
bool gate_take(struct call *c, uint64_t bytes);
/* Gives back what has been taken beyond so much, which gate_held has said before. */
uint64_t gate_held(const struct call *c);
void gate_give_to(struct call *c, uint64_t held);
/* The request's body, or a part of it, as a profile of any format, whose tables go to `a`, which is
 * empty. False: it has been answered. */
bool gate_read_profile(struct call *c, struct str bytes, struct arena *a, struct strings *strings,
		       struct profile *p);
/* The same bytes, unpacked if they are gzipped: views of them, or in the call's arena. False: it
 * has been answered. */
bool gate_unpack(struct call *c, struct str packed, struct str *plain);
/* Of a body that is still being sent: if it can be told already that it unpacks to too much, it is
 * refused, and neither kept nor unpacked. */
void gate_look_at_body(struct call *c);
/* All of the body, as its Content-Encoding says: gzip, or nothing. */
bool gate_unpack_body(struct call *c, struct str *plain);
/* Are there as many labels, and of such size, as may be, and all in UTF-8? ERR_LIMIT. */
/* May there be so many labels, and one such as this? */
bool gate_label_fits(const struct server_options *o, size_t nlabels, struct str key,
		     struct str value, struct err *e);
bool gate_labels_fit(const struct server_options *o, const struct store_new *new, struct err *e);
/* Takes more profiles than the one that a request is taken for off what the client may push. */
void gate_take_profiles(struct call *c, size_t n);

#endif
