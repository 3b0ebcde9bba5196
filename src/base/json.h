/* json.h - JSON text taken apart. What it is made of lies in the arena that json_parse was given.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
	enum json_type type;
	bool is_true;	   /* of JSON_BOOL */
	struct str text;   /* a string with its escapes undone; a number as it is written */
	struct json *at;   /* elements, or values of members */
	struct str *names; /* of members */
	size_t n;
};

/* ERR_FORMAT with the place of what is wrong. Values may be nested 100 deep. */
bool json_parse(struct arena *a, struct str text, struct json *out, struct err *e);
/* The last member of that name; NULL if there is none, or it is no object. */
const struct json *json_member(const struct json *object, const char *name);

/* ---- piece by piece, for text whose tree would be too large
 *
 *	for (more = json_open(&r, '['); more; more = json_more(&r, ']'))
 *		ok = json_read_...(&r, ...)
 *
 * After json_open of a '{' and each json_more comes json_read_name. Whatever fails leaves r->failed
 * set, and is over: loops end, as there is no more. */
struct json_reader {
	struct str text;
	size_t at;
	int depth;
	bool failed;
	struct buf string; /* of the last string; json_reader_release frees it */
	struct err *e;
};

void json_reader_init(struct json_reader *r, struct str text, struct err *e);
void json_reader_release(struct json_reader *r);
/* Of the value that comes next. False: there is none. */
bool json_peek(struct json_reader *r, enum json_type *type);
/* Into an array '[' or object '{'. False: it is none, or is empty. */
bool json_open(struct json_reader *r, char bracket);
/* After a value: is there another before the end? */
bool json_more(struct json_reader *r, char end);
/* Views are good until the next string is read. */
bool json_read_name(struct json_reader *r, struct str *name);
bool json_read_string(struct json_reader *r, struct str *text);
/* As it is written. */
bool json_read_number(struct json_reader *r, struct str *text);
bool json_read_bool(struct json_reader *r, bool *value);
/* Any value, with all that is in it. */
bool json_skip(struct json_reader *r);
/* Nothing but blanks may follow. */
bool json_finish(struct json_reader *r);
/* Fails at the place that has been reached; returns false. */
bool json_wrong(struct json_reader *r, const char *what);

#endif
