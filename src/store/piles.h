/* piles.h - sums of profiles by their sample types, and one profile of those that can be added.
 *
 * What cannot is left out (kind.h): a target that pushes something else as the same type must not
 * cost others their answer.
 */
#ifndef STORE_PILES_H
#define STORE_PILES_H

#include "store/kind.h"
#include "store/sums.h"

/* Profiles that have the same sample types. */
struct pile {
	struct profile like; /* its types are those of all */
	struct merger *merger;
	uint64_t nprofiles;
};

/* What a service has of a pile. */
struct pile_part {
	int64_t service;
	struct str service_name;
	uint32_t pile;
	uint64_t nprofiles;
};

struct piles {
	struct arena *a; /* of the caller, as the strings */
	struct strings *strings;
	/* own */
	vec(struct pile) at;
	vec(struct pile_part) parts;
};

/* `p` is what `sum` has been made into. Those of a service come together. */
bool piles_add(struct piles *t, const struct profile *p, const struct sum *sum, struct err *e);
/* One profile of what the query wants; once. There is at least one pile. */
bool piles_finish(struct piles *t, const struct store_query *q, struct profile *out,
		  struct store_left_out *left_out, struct err *e);
void piles_release(struct piles *t);

#endif
