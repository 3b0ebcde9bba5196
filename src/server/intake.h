/* intake.h - profiles of other projects' agents on their way to the store: all of a request's that
 * are taken, or none.
 *
 *	struct intake in;
 *
 *	intake_begin(&in, c);
 *	ok = intake_read(&in, bytes, &profile) && intake_add(&in, &series, &profile) && ...;
 *	if (intake_end(&in, ok))
 *		... answer ...
 *
 * What fails has been answered, in the form that the route's clients understand.
 */
#ifndef SERVER_INTAKE_H
#define SERVER_INTAKE_H

#include "base/vec.h"
#include "profile/wire_json.h"
#include "server/server.h"

struct intake {
	struct call *c;
	struct store_batch *batch;
	struct desk *desk; /* of the profile that comes next */
	uint64_t held;	   /* memory that the request has without it */
	size_t nprofiles, nempty;
};

/* Where a profile belongs. */
struct intake_series {
	struct str service, type;
	vec(struct store_label) labels;
	struct str instance; /* store_new */
};
void intake_series_release(struct intake_series *s);
/* Labels with names as __session_id__ are between agent and server, and are left out; that one
 * tells processes apart. */
void intake_label(struct intake_series *s, struct str key, struct str value);
/* Value of a label; "" if it is not there. */
struct str intake_find_label(const struct intake_series *s, struct str key);

/* Any name will do; without one nobody could tell what it is. */
bool intake_is_type(struct str type);

/* A message that is JSON becomes protobuf, in the call's arena. False: it has been answered. */
bool intake_from_json(struct call *c, const struct wire_message *m, struct str *message);

void intake_begin(struct intake *in, struct call *c);
/* A profile of any format. It lies on the desk until the next. */
bool intake_read(struct intake *in, struct str bytes, struct profile *p);
/* One that is made here: its tables and strings go to in->desk. Forgets the one before. */
void intake_clear_desk(struct intake *in);
/* Of what has no samples nothing is stored, and that is fine: an idle program has none. */
bool intake_add(struct intake *in, const struct intake_series *s, const struct profile *p);
/* The same for those who can say what of a request was refused: it has not been answered. */
bool intake_offer(struct intake *in, const struct intake_series *s, const struct profile *p,
		  struct err *e);
/* Stores all that was added if `ok`. True: it is durable. */
bool intake_end(struct intake *in, bool ok);

#endif
