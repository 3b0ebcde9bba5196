/* selector.h - which profiles a request means: {service="a", version=~"1\\..*", type!="heap"}
 *
 * Conditions with commas between them; all must hold. The names service and type mean those, any
 * other is a label, and a label that is not there is "". The operators are = != and, with a regular
 * expression that must match all of the value, =~ !~.
 *
 * Names and values may stand in quotes, as in PromQL: "..." or '...' with \\ \" \' \a \b \f \n \r
 * \t \v \ooo \xHH \uHHHH \UHHHHHHHH, or `...` as it is. Without quotes they end at a comma (names
 * at an operator too), and blanks around them do not count. The braces may be left out:
 * service=a,version=~1.* means the same as above.
 */
#ifndef SERVER_SELECTOR_H
#define SERVER_SELECTOR_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "store/store.h"

enum { SELECTOR_MAX_BYTES = 16 << 10, SELECTOR_MAX_MATCHERS = 64 };

/* Zero-initialised it selects everything. Its strings are in the arena that it was read with. */
struct selector {
	vec(struct store_matcher) matchers;
	vec(struct regex *) regexes;
};

/* Adds the conditions in `text` to those there are. ERR_USAGE says what is wrong, and where; some
 * may have been added by then. */
bool selector_parse(struct selector *s, struct arena *a, struct str text, struct err *e);
/* Adds name = value. */
void selector_add_equal(struct selector *s, struct str name, struct str value);
/* In the form with braces and quotes, which reads as the same. */
void selector_print(struct buf *out, const struct selector *s);
void selector_release(struct selector *s);

#endif
