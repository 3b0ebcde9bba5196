/* rules.h - what is kept of single services, whatever holds for all.
 *
 * Some rules are the opener's, the others have been set since and are in the database. Threads: any
 * number.
 */
#ifndef STORE_RULES_H
#define STORE_RULES_H

#include <pthread.h>

#include "base/vec.h"
#include "store/db.h"
#include "store/store.h"

struct rules {
	pthread_mutex_t lock;
	vec(struct store_rule) stored; /* sorted by name */
	vec(struct store_rule) fixed;  /* the opener's, in their order */
};

void rules_init(struct rules *r, const struct store_params *params);
void rules_release(struct rules *r);
bool rules_load(struct rules *r, struct db *db, struct err *e);
/* Another table, as it would be with the change; *is_found: there is a rule of its service. */
void rules_copy(struct rules *to, struct rules *from, const struct store_rule_change *change,
		bool *is_found);
/* Changes `keep`, which is that of all, to what holds for the service. */
void rules_apply(struct rules *r, struct str service, struct store_keep *keep);

#endif
