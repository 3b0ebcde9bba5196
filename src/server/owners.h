/* owners.h - who owns which functions, as options say it.
 *
 * A rule is a line "OWNER=FUNCTION", "OWNER@SERVICE=FUNCTION" or "OWNER@SERVICE", in which FUNCTION
 * and SERVICE are regular expressions that match anywhere in a name. The first rule that fits
 * counts.
 *
 * Threads: any number. */
#ifndef SERVER_OWNERS_H
#define SERVER_OWNERS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define NO_OWNER STR("(no owner)")

struct owners;

/* NULL: a rule is wrong. "" is no rules. */
struct owners *owners_new(struct str rules, struct err *e);
void owners_free(struct owners *o);
/* 0 of NULL. */
size_t owners_nrules(const struct owners *o);
/* Appends a rule as a line; `service` or `function` may be "". */
bool owners_put_rule(struct buf *out, struct str owner, struct str service, struct str function,
		     struct err *e);

/* Whose a function is that services of several kinds have, as owners_of_service tells them apart:
 * each owner once, the heaviest first. In `a`; names are good as long as the rules. */
struct store_top_part;
struct str *owners_of_parts(struct arena *a, struct str function,
			    const struct store_top_part *parts, size_t n, size_t *nowners);

/* For store_top_params: group_ctx_of, with the owners as ctx, and group. NO_OWNER if no rule fits.
 * Rules for services do not, if the service is "". */
void *owners_of_service(void *owners, struct str service);
struct str group_owner(void *ctx, struct str function, struct str file, struct str module);

#endif
