/* limits.h - how much requests may take: of memory, of turns, of everybody's patience. */
#ifndef SERVER_LIMITS_H
#define SERVER_LIMITS_H

#include "server/budget.h"
#include "server/holds.h"
#include "server/options.h"
#include "server/rates.h"
#include "server/refusals.h"
#include "server/turns.h"

struct limits {
	uint64_t max_memory;
	struct budget memory;  /* of requests: bodies, what they unpack to, answers */
	struct budget scrapes; /* of these, bodies of profiles that targets send */
	struct turns *turns;   /* of queries */
	struct turns *hashing; /* of passwords */
	struct turns *large;   /* profiles that are being read */
	struct turns *code;    /* children that read instructions */
	struct holds *unread;  /* bytes of answers that have not been read */
	uint64_t max_unread;   /* of a client */
	struct rates *rates;
	struct refusals *refusals;
	_Atomic int64_t measured_ns, measured; /* resident memory, as of some moments ago */
};

struct limits *limits_new(const struct server_options *o, void (*log)(void *ctx, const char *line),
			  void *ctx);
void limits_free(struct limits *l);
/* What the store may have of max_memory. The rest is for requests, and for what nobody counts. */
uint64_t limits_store_memory(const struct server_options *o);
/* That are worked on at a time. */
unsigned limits_queries(const struct server_options *o);
/* Does the process take so much memory that new work has to wait? Looks a few times a second. */
bool limits_is_short(struct limits *l);
/* Memory of the process that is not that of a file. */
uint64_t limits_resident(void);

#endif
