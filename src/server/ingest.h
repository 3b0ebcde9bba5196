/* ingest.h - what Pyroscope's SDKs say of a profile in the request. Private to ingest.c; here for
 * tests. */
#ifndef SERVER_INGEST_H
#define SERVER_INGEST_H

#include "server/intake.h"

/* "app.cpu{k=v,k2=v2}": the service, which a label service_name names if there is one, and labels.
 * ERR_USAGE: the reason. */
bool ingest_parse_name(struct str text, struct intake_series *s, struct err *e);
/* Takes the last part of "app.cpu" off the service, if it is the name of a type. */
bool ingest_cut_type(struct intake_series *s, struct str *type);
/* Digits by their number: 8 are 20261117, 13 milliseconds, 16 microseconds, 19 nanoseconds since
 * 1970, others seconds; or as time_parse has it. */
bool ingest_parse_time(struct str text, int64_t now, int64_t *ns, struct err *e);

#endif
