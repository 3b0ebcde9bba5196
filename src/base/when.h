/* when.h - points in time as people write them in requests. */
#ifndef BASE_WHEN_H
#define BASE_WHEN_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* Nanoseconds since 1970 of a time between 1970 and 2262: 2026-11-16T14:00:00Z (RFC 3339: any zone,
 * any fraction; without a zone it is UTC), 2026-11-16 (midnight, UTC), seconds since 1970 (with any
 * fraction), now, now-2h, now+1d. */
bool time_parse(struct str text, int64_t now, int64_t *ns, struct err *e);
/* The same, and times ago: 24h and -24h, both a day before `now`, and 0m, which is now. */
bool time_parse_ago(struct str text, int64_t now, int64_t *ns, struct err *e);

/* As RFC 3339 in UTC, with just the digits that it takes: 2026-11-16T14:00:00.25Z */
void time_print(struct buf *out, int64_t ns);
int64_t time_now(void);

#endif
