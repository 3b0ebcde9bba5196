/* push.h - what a PushRequest says, for push.c and its fuzzer. */
#ifndef SERVER_PUSH_H
#define SERVER_PUSH_H

#include "profile/wire.h"
#include "server/intake.h"

enum { PUSH_SERIES = 1 }; /* field of a PushRequest */

/* For wire_from_json. */
extern const struct wire_message push_request_message;

/* Labels of a RawProfileSeries, which may come after its samples; `s` may have been used before.
 * With *is_delta values are of the time since the last profile. ERR_FORMAT, ERR_USAGE. */
bool push_read_labels(struct wire w, struct intake_series *s, bool *is_delta, struct err *e);

#endif
