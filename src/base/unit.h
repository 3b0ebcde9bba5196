/* unit.h - the units that sample values come in, and the text of values, shares and durations.
 *
 * Three families are known: memory (B), time (s) and GCU. A unit string is looked up without regard
 * to case and without a plural s. Nothing here allocates; a returned `struct str` is either a
 * constant or the argument that came in.
 */
#ifndef BASE_UNIT_H
#define BASE_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

struct unit {
	struct str name;       /* as printed */
	struct str aliases[4]; /* lower case, without plural s; the unused ones are empty */
	double factor;	       /* in the family's base: B, ns, GCU */
};

struct unit_family {
	struct str default_unit;
	double default_factor;
	const struct unit *units; /* in ascending order of factor */
	size_t nunits;
};

#define UNIT_NFAMILIES 3
extern const struct unit_family unit_families[UNIT_NFAMILIES];

/* The family that knows this unit, or NULL. */
const struct unit_family *unit_family_of(struct str unit);
bool unit_is_time(struct str unit);
/* Are both known, and of one family? */
bool unit_same_family(struct str a, struct str b);
/* May values of these two types be added after scaling? The type names must be equal but for one
 * trailing s, and the units equal or of one family. */
bool unit_compatible(struct str type_a, struct str unit_a, struct str type_b, struct str unit_b);
/* Is `a` a finer unit than `b`, i.e. does 1a count as less than 1b? Of several compatible units
 * keep the first and replace it whenever a later one is finer than it. */
bool unit_is_finer(struct str a, struct str b);

/* `value` in unit `to`, and into *unit the unit's printed name. `to` may be "minimum" or "auto":
 * the largest unit in which the value is at least 1. A `to` of another family, or an unknown one,
 * gives the family's default unit. A value of unknown unit is not scaled: *unit is then "", or `to`
 * if that is none of count, sample, unit, minimum, auto. */
double unit_scale(int64_t value, struct str from, struct str to, struct str *unit);
/* Factor from `unit` to its family's default unit, whose name goes to *name; 1 and "" if unknown.
 */
double unit_to_default(struct str unit, struct str *name);
/* The scaled value with two decimals (".00" left out) and its unit: 1.50kB, 10ms, 0. */
void unit_label(struct buf *out, int64_t value, struct str from, struct str to);

/* The share of value in total, unsigned: "  100%", "12.34%", " 0.9%", "    0%" for a total of 0. */
void percent_text(struct buf *out, int64_t value, int64_t total);
/* As Go prints a time.Duration: 1h0m2.5s, 1.5ms, 100ns, 0s. */
void duration_text(struct buf *out, int64_t nanos);

#endif
