/* api0.h - the parameters of profefe's API, read as profefe reads them, and its JSON. Private to
 * api0_*.c. */
#ifndef SERVER_API0_H
#define SERVER_API0_H

#include "server/server.h"

/* What a profile is stored under, or looked for by. */
struct api0_series {
	struct str service, type; /* "": none was given */
	struct store_label *labels;
	size_t nlabels;
};

/* All of these reply with what is wrong, in profefe's words, and return false. */
bool api0_read_series(struct call *c, struct api0_series *series);
/* `from`, `to`, whose whole second belongs to it, and `limit`, all as nanoseconds. */
bool api0_read_query(struct call *c, const struct api0_series *series, struct store_query *query);
/* 0: not given. */
bool api0_read_created(struct call *c, int64_t *created);

/* For the unit test. 2006-01-02T15:04:05, in nanoseconds; what an int64_t cannot hold becomes what
 * is nearest. */
bool api0_parse_time(struct str text, int64_t *ns);
/* k=v,k2=v2 with both escaped as in URLs. ERR_USAGE: the reason. */
bool api0_parse_labels(struct arena *a, struct str text, struct store_label **labels, size_t *n,
		       struct err *e);

/* {"id":...} */
void api0_put_meta(struct buf *out, const struct store_meta *meta);

#endif
