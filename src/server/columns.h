/* columns.h - profiles that come with one bare column of values get what kiln's type of them has,
 * so that those of all agents can be added. Tables must be nobody else's. */
#ifndef SERVER_COLUMNS_H
#define SERVER_COLUMNS_H

#include "profile/profile.h"
#include "server/profile_types.h"

/* The column, and what the period counts, are called as in the table. */
void columns_name(struct profile *p, const struct profile_type *t);
/* Values times a number; what does not fit becomes what is nearest. */
void columns_scale(struct profile *p, int64_t factor);
/* Of a CPU profile, which has a period: samples/count and cpu/nanoseconds, as Go's. The column
 * there is has the first, or, if `is_time`, the second. */
void columns_add_cpu(struct arena *a, struct profile *p, bool is_time);

#endif
