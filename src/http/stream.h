/* stream.h - an answer that goes on: whoever makes it writes to it when there is something to say.
 *
 * It takes no thread while nothing is written: libmicrohttpd has its connection suspended. A peer
 * that does not read what is written to it is cut off, one that went away is noticed within half a
 * second. Streams end when their server drains or stops.
 *
 *	reply->stream = http_stream_new(call, MAX_UNREAD_BYTES);
 *	... on any thread, even before the handler has returned ...
 *	if (!http_stream_write(stream, text))
 *		http_stream_end(stream);
 *
 * The writer's reference lasts until http_stream_end, which must come before http_server_stop.
 */
#ifndef HTTP_STREAM_H
#define HTTP_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct http_call;
struct http_stream;

/* One that is never given to a reply must be ended all the same. */
struct http_stream *http_stream_new(const struct http_call *c, size_t max_unread_bytes);
/* False: nobody reads it any more. */
bool http_stream_write(struct http_stream *s, struct str bytes);
/* How much of what was written it has not taken yet: who writes much may wait for that. */
size_t http_stream_unread(struct http_stream *s);
/* The peer gets what was written, and the end of it. */
void http_stream_end(struct http_stream *s);

#endif
