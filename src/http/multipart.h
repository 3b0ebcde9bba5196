/* multipart.h - bodies of multipart/form-data (RFC 7578) taken apart. */
#ifndef HTTP_MULTIPART_H
#define HTTP_MULTIPART_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct http_part {
	struct str name, filename; /* "": it has none */
	struct str type;	   /* its Content-Type; "" */
	struct str body;	   /* a view of the request's */
};

/* At most `max` parts; *n is how many there are. ERR_FORMAT: what is wrong, and with which part. */
bool http_multipart_parse(struct arena *a, struct str content_type, struct str body,
			  struct http_part *parts, size_t max, size_t *n, struct err *e);

#endif
