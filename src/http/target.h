/* target.h - what a request's first line asks for: a path and parameters, decoded as Go's net/url
 * does it. */
#ifndef HTTP_TARGET_H
#define HTTP_TARGET_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct http_param {
	struct str name, value;
};

struct http_target {
	struct str raw;	      /* all of it, as it came */
	struct str path;      /* starts with a '/' */
	struct str raw_query; /* what follows the '?', not decoded; p == NULL: there is no '?' */
	struct http_param *params;
	size_t nparams;
};

/* Takes "/path?a=1&b=2" apart. Parameters that are not well formed are left out, as in Go. */
bool http_target_parse(struct arena *a, struct str target, struct http_target *out, struct err *e);
/* Value of the first parameter of that name; "" if there is none. */
struct str http_target_param(const struct http_target *t, const char *name);
/* The text with %XX and '+' decoded, in `a`. False if a '%' is not followed by two hexadecimal
 * digits; *bad is where it is. */
bool http_unescape(struct arena *a, struct str s, struct str *out, size_t *bad);
/* Appends the text with all but letters, digits and -_.~ as %XX, and a blank as '+'. */
void http_put_escaped(struct buf *out, struct str s);

#endif
