/* content.h - bytes that a server sends, maybe to many at a time: counted references, packed once.
 *
 * Threads: any number may use one content.
 */
#ifndef HTTP_CONTENT_H
#define HTTP_CONTENT_H

#include "base/buf.h"

struct http_content;

/* Takes over the bytes and empties the buffer. `type` must be a literal. One reference is the
 * caller's. */
struct http_content *http_content_new(struct buf *bytes, const char *type);
struct http_content *http_content_hold(struct http_content *c);
void http_content_drop(struct http_content *c);

struct str http_content_bytes(const struct http_content *c);
/* The same gzipped; empty if that is not worth it. */
struct str http_content_packed(struct http_content *c);
const char *http_content_type(const struct http_content *c);
/* A hash of the bytes with quotes around it, as ETag wants it. */
const char *http_content_tag(const struct http_content *c);
/* Memory that it takes. */
size_t http_content_size(const struct http_content *c);

#endif
