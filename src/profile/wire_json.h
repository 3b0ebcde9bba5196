/* wire_json.h - messages of protobuf by their descriptions, and the JSON that proto3 makes of them.
 *
 * JSON becomes protobuf, so that messages are read once; and protobuf becomes JSON, so that answers
 * are written once. A message is described by a table of those fields that somebody knows; others
 * are passed over. wire_read.h fills structs by the same tables.
 */
#ifndef PROFILE_WIRE_JSON_H
#define PROFILE_WIRE_JSON_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/wire.h"

enum wire_kind {
	WIRE_KIND_INT,	  /* int32, int64, uint32, enum */
	WIRE_KIND_UINT,	  /* uint64 */
	WIRE_KIND_CHOICE, /* an enum whose names are known */
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
	const char *const *choices; /* of WIRE_KIND_CHOICE: names from 0 on, a NULL ends them */
	bool is_repeated;	    /* of fields that become JSON, or part of a struct */
	size_t offset;		    /* of wire_read.h */
};
/* WIRE_FIELD("labels", 1, WIRE_KIND_MESSAGE, .message = &label) */
#define WIRE_FIELD(name_, number_, ...)                                   \
	{                                                                 \
		.name = (name_), .number = (number_), .kind = __VA_ARGS__ \
	}

struct wire_message {
	const char *name;
	const struct wire_field *fields; /* a NULL name ends them */
	size_t bytes;			 /* of wire_read.h */
};

/* What values of a kind are on the wire, unless they are packed. */
enum wire_type wire_type_of(enum wire_kind kind);

/* Appends the message. Names may be as in the .proto file or in camel case, 64-bit numbers may be
 * strings, and of choices both names and numbers are taken. Numbers of repeated fields are packed.
 * ERR_FORMAT: what is wrong, and where. */
bool wire_from_json(struct buf *out, const struct wire_message *m, struct str json, struct err *e);
/* The JSON of a message that we have written ourselves; what is 0 or "" there is there, too. False:
 * it is not well formed, which is a bug. */
bool wire_to_json(struct buf *out, const struct wire_message *m, struct str bytes);

#endif
