/* otlp.h - profiles of OpenTelemetry's protocol, read from protobuf. Private to otlp*.c; and errors
 * as its clients understand them.
 *
 * A request has one dictionary, to which all its profiles refer by index (index 0 is "none"), and
 * profiles by resource. A profile of kiln's is made of each, and of each service that samples name.
 */
#ifndef SERVER_OTLP_H
#define SERVER_OTLP_H

#include "base/vec.h"
#include "profile/build.h"
#include "profile/wire.h"
#include "server/intake.h"

/* ---- a request (otlp_dictionary.c) */

/* Where a row of the dictionary is in the profile that is being made. */
struct otlp_made {
	uint32_t profile; /* by number, from 1 */
	uint32_t row;
};

struct otlp_table {
	vec(struct wire) rows;
	struct otlp_made *made;
};

enum otlp_tables {
	OTLP_MAPPINGS,
	OTLP_LOCATIONS,
	OTLP_FUNCTIONS,
	OTLP_LINKS,
	OTLP_STRINGS,
	OTLP_ATTRIBUTES,
	OTLP_STACKS,
	OTLP_NTABLES,
};

struct otlp {
	struct otlp_table tables[OTLP_NTABLES];
	struct otlp_attribute *attributes; /* rows that were read, as they may be named often */
	struct arena texts;
	uint64_t left;		    /* bytes that all profiles may be made of together */
	vec(struct wire) resources; /* ResourceProfiles */
	bool is_v1_9;		    /* of the protocol: samples' fields have other numbers */
	uint32_t nprofiles;	    /* made so far */
};

/* Message ExportProfilesServiceRequest, which must live as long. ERR_FORMAT. With `is_json` the
 * numbers are known to be those of v1.10, else samples tell. */
bool otlp_open(struct otlp *o, struct str message, bool is_json, struct err *e);
void otlp_release(struct otlp *o);
/* All that profiles refer to is made again for each of them, so that a small request may be much
 * work: bytes of it are taken from o->left. ERR_LIMIT. */
bool otlp_spend(struct otlp *o, uint64_t bytes, struct err *e);
/* A row; `what` refers to it. ERR_FORMAT: there is none. */
bool otlp_row(const struct otlp *o, enum otlp_tables table, uint64_t index, const char *what,
	      struct wire *row, struct err *e);
bool otlp_string(const struct otlp *o, uint64_t index, struct str *out, struct err *e);

/* A value is text or a number, or neither: a list or the like. Texts are views of the message, or
 * lie in o->texts. */
struct otlp_value {
	struct str text; /* of a number its digits */
	int64_t number;
	bool is_text, is_number;
};
struct otlp_attribute {
	struct str key, unit;
	struct otlp_value value;
	bool is_read, is_broken; /* of rows */
};
/* Of the dictionary (KeyValueAndUnit), or as resources have them (KeyValue). Each row is read once.
 * NULL: ERR_FORMAT. */
const struct otlp_attribute *otlp_attribute(struct otlp *o, uint64_t index, struct err *e);
bool otlp_key_value(struct otlp *o, struct wire w, struct otlp_attribute *out, struct err *e);

struct otlp_sample {
	uint64_t stack, link;
	vec(uint64_t) attributes;
	vec(int64_t) values; /* of each observation; there is at least one */
	vec(int64_t) times;  /* of each, or none */
};
/* `s` may have been used before. */
bool otlp_sample(const struct otlp *o, struct wire w, struct otlp_sample *s, struct err *e);
void otlp_sample_release(struct otlp_sample *s);

/* Numbers of a repeated field, packed or not; `each` gets them. */
bool otlp_numbers(const struct field *f, void (*each)(void *ctx, uint64_t v), void *ctx);

/* ---- a profile (otlp_profile.c) */

struct otlp_profile {
	struct wire sample_type, period_type;
	vec(struct wire) samples;
	vec(uint64_t) attributes;
	uint64_t time, duration;
	int64_t period;
};
bool otlp_profile(struct wire w, struct otlp_profile *p, struct err *e);
void otlp_profile_release(struct otlp_profile *p);
/* Those of its samples which `of` numbers, as a profile on the desk; its type. */
bool otlp_make(struct otlp *o, const struct otlp_profile *p, const uint32_t *of, size_t n,
	       struct desk *desk, struct profile *out, struct str *type, struct err *e);

/* ---- requests and answers (otlp.c) */

/* For wire_from_json. */
extern const struct wire_message otlp_request_message;

/* google.rpc.Status, as protobuf or JSON. What is the server's own fault is 503. */
void otlp_say(struct call *c, int status, struct str text);

#endif
