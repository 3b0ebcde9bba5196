/* wire_json.h - messages that come as protobuf's JSON become protobuf, so that they are read once.
 *
 * A message is described by a table of those fields that somebody reads; others are passed over.
 * Names may be as in the .proto file or in camel case; 64-bit numbers may be strings. Numbers of
 * repeated fields are packed.
 */
#ifndef PROFILE_WIRE_JSON_H
#define PROFILE_WIRE_JSON_H

#include "base/buf.h"
#include "base/err.h"

enum wire_kind {
	WIRE_KIND_INT, /* int32, int64, uint32, uint64, enum */
	WIRE_KIND_BOOL,
	WIRE_KIND_FIXED64, /* fixed64 */
	WIRE_KIND_DOUBLE,
	WIRE_KIND_STRING,
	WIRE_KIND_BYTES, /* base64 */
	WIRE_KIND_HEX,	 /* bytes, as OTLP writes ids */
	WIRE_KIND_MESSAGE,
};

struct wire_message;
struct wire_field {
	const char *name; /* as in the .proto file */
	unsigned number;
	enum wire_kind kind;
	const struct wire_message *message; /* of WIRE_KIND_MESSAGE */
};

struct wire_message {
	const char *name;
	const struct wire_field *fields; /* a NULL name ends them */
};

/* Appends the message. ERR_FORMAT: what is wrong, and where. */
bool wire_from_json(struct buf *out, const struct wire_message *m, struct str json, struct err *e);

#endif
