/* keep_rules.h - how long what is kept of single services, as options say it. */
#ifndef SERVER_KEEP_RULES_H
#define SERVER_KEEP_RULES_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "store/store.h"

/* "batch-*:raw=2d,day=365d,web:raw=30d": NAME:TIER=AGE, and more tiers of the same name, with
 * commas between them. A name may have colons. The rules are in `a`, in their order. */
bool keep_rules_parse(struct arena *a, struct str text, struct store_rule **rules, size_t *n,
		      struct err *e);

/* "raw", "minute", "hour" or "day"; NULL: there is no such tier. */
int64_t *keep_rule_age(struct store_rule *rule, struct str tier);
/* Of no age yet. */
struct store_rule keep_rule_new(struct str service);

#endif
