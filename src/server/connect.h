/* connect.h - unary calls of the Connect protocol over HTTP/1.1, as Grafana, Alloy and profilecli
 * make them.
 *
 * A call is a POST to /package.Service/Method with a message of protobuf (application/proto) or
 *JSON (application/json), which may be gzipped; the answer is one of the same type, and an error is
 *JSON with a code's name, whatever the type. A handler goes
 *
 *	struct connect_body body;
 *	struct buf out = { 0 };
 *
 *	if (!connect_read(c, &body))
 *		return;
 *	... body.is_json: json_parse(c->arena, body.bytes, ...), else wire.h of body.bytes ...
 *	connect_reply(c, &body, &out);
 *
 * reply_error, reply_failure and gate_refuse answer as Connect has it on the routes that reply.c
 * lists, so that handlers need connect_error only for codes that have no status of their own.
 */
#ifndef SERVER_CONNECT_H
#define SERVER_CONNECT_H

#include "server/server.h"

/* code, its name, the status that goes with it */
#define CONNECT_CODES(X)                                   \
	X(CANCELED, "canceled", 499)                       \
	X(UNKNOWN, "unknown", 500)                         \
	X(INVALID_ARGUMENT, "invalid_argument", 400)       \
	X(DEADLINE_EXCEEDED, "deadline_exceeded", 504)     \
	X(NOT_FOUND, "not_found", 404)                     \
	X(ALREADY_EXISTS, "already_exists", 409)           \
	X(PERMISSION_DENIED, "permission_denied", 403)     \
	X(RESOURCE_EXHAUSTED, "resource_exhausted", 429)   \
	X(FAILED_PRECONDITION, "failed_precondition", 400) \
	X(ABORTED, "aborted", 409)                         \
	X(OUT_OF_RANGE, "out_of_range", 400)               \
	X(UNIMPLEMENTED, "unimplemented", 501)             \
	X(INTERNAL, "internal", 500)                       \
	X(UNAVAILABLE, "unavailable", 503)                 \
	X(DATA_LOSS, "data_loss", 500)                     \
	X(UNAUTHENTICATED, "unauthenticated", 401)

enum connect_code {
#define CONNECT_ENUM(code, name, status) CONNECT_##code,
	CONNECT_CODES(CONNECT_ENUM)
#undef CONNECT_ENUM
};

struct connect_body {
	struct str bytes; /* the message, unpacked; lives as long as the call */
	bool is_json;
};

/* The call's message. False: it has been answered with what is wrong. */
bool connect_read(struct call *c, struct connect_body *b);
/* Answers with a message of the caller's type; the buffer is emptied. */
void connect_reply(struct call *c, const struct connect_body *b, struct buf *bytes);
/* Answers {"code":"not_found","message":"..."} with the code's status. */
void connect_error(struct call *c, enum connect_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
enum connect_code connect_code_of(int status);
/* The same with a status that a limit has given it, such as 413; the code is what makes clients do
 * the right thing: those of 429, 503 and 507 are tried again, others are not. */
void connect_say(struct call *c, int status, struct str text);

#endif
