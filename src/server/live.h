/* live.h - tells pages that what they show has changed: GET /api/1/live.
 *
 * A stream has a selection and a window of time that ends now. One thread looks for all of them,
 * twice a second and only if profiles have come or the window has moved on by much, and writes an
 * event of a hundred bytes; who gets it asks for what is new. So a stream costs neither a thread
 * nor work while nothing happens. Streams end after a while, as rights may have changed: pages come
 * again.
 *
 * Threads: any number may add streams.
 */
#ifndef SERVER_LIVE_H
#define SERVER_LIVE_H

#include "server/api1.h"

struct live;

struct live *live_start(struct server *s);
/* Ends all streams. Before http_server_drain, which waits for them. */
void live_stop(struct live *l);
void live_free(struct live *l);

/* Answers the call with a stream, or refuses it: there are as many as --max-live allows. */
void live_add(struct live *l, struct request *q);
/* How many there are, and how many events they got so far. */
void live_count(struct live *l, size_t *nstreams, uint64_t *nevents);

#endif
