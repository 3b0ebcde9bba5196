/* kind.h - which values may be added: those of one sample type, in units of one family.
 *
 * Profiles of one type need not have the same sample types: what one target pushes as "cpu" may be
 * counted in samples, and of another in nanoseconds. A query that finds several kinds takes the one
 * that was asked for, or that most services have, and tells what it has left out. Times and bytes
 * in different units are of one kind, and are told in the finest.
 */
#ifndef STORE_KIND_H
#define STORE_KIND_H

#include "base/strings.h"
#include "base/vec.h"
#include "store/store.h"

struct kind {
	struct str name, unit; /* the finest of its units */
	uint64_t nservices, nprofiles;
	int64_t service; /* that was counted last */
	struct str service_name;
	bool is_unfit; /* not of the sample type, or in the unit, that was asked for */
};

struct kinds {
	struct strings strings;
	struct buf key;
	vec(struct kind) at; /* by the number of its key in `strings`; others have no profiles */
	bool has_units;	     /* one kind was met in several */
};

void kinds_init(struct kinds *k);
void kinds_release(struct kinds *k);
/* Its number. Any two that may be added have the same. */
uint32_t kinds_find(struct kinds *k, struct str name, struct str unit);
/* So many profiles of a service are of the kind. Those of one service come together. */
void kinds_count(struct kinds *k, uint32_t kind, int64_t service, struct str service_name,
		 uint64_t nprofiles);
/* Those of another table, of other services. */
void kinds_join(struct kinds *k, const struct kinds *more);
/* There is more than one that fits, or one in several units. */
bool kinds_are_mixed(const struct kinds *k);
/* What most services have, and then most profiles, of those that fit; NONE: there is none. */
uint32_t kinds_choose(const struct kinds *k);
/* All but this one; texts lie in `a`. */
void kinds_left_out(const struct kinds *k, uint32_t chosen, struct arena *a,
		    struct store_left_out *out);
/* How much one of a unit is in another of the same family. */
double kind_ratio(struct str from, struct str to);

#endif
