/* json.h - JSON text taken apart. What it is made of lies in the arena that json_parse was given.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/arena.h"
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

#endif
