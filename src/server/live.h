/* live.h - tells pages what has changed of what they show: GET /api/1/live.
 *
 * A stream has a selection and a window of time that ends now. One thread looks for all of them,
 * twice a second and only if profiles have come or the window has moved on by much, draws the
 * window and writes what differs from what the page has (web/feed.c). So a stream costs neither a
 * thread nor work while nothing happens. A page that has not read the last event is told later, of
 * all that came until then. A drawing takes a turn of the queries and memory of the requests, and
 * each stream rests for longer than it took. Streams end after a while, as rights may have changed:
 * pages come again.
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
