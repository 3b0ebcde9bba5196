/* rates.h - how fast a client may push: a bucket for each, which fills up again over time.
 *
 * Whoever has anything left may take more than that and owe it, so that one large profile passes.
 * Threads: any number. */
#ifndef SERVER_RATES_H
#define SERVER_RATES_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct rates;

/* Both per second and client; 0: no limit. */
struct rates *rates_new(double profiles, double bytes);
void rates_free(struct rates *r);
/* Takes one profile; its bytes are taken as they have come. `now` is in nanoseconds of any clock
 * that goes on evenly. Returns 0, or the seconds after which there is something left again; then
 * *limit is the one that was met. */
double rates_take(struct rates *r, struct str client, int64_t now, const char **limit);
/* Of a request that has several: the others, which the client may owe. */
void rates_take_more(struct rates *r, struct str client, size_t profiles, int64_t now);
void rates_take_bytes(struct rates *r, struct str client, uint64_t bytes, int64_t now);

#endif
