/* profile_types.h - types of profiles, translated between kiln and Pyroscope by profile_types.def.
 *
 * Who takes profiles in asks for kiln's type: profile_type_of_name(__name__) if the agent names it,
 * profile_type_of_samples if it does not. Who answers Pyroscope's queries takes an id apart
 * (profile_type_parse_id), asks where it may be stored (profile_type_homes), and selects `sample`
 *of what he finds there as the sample type; to list ids of a type of kiln's, he goes through
 * profile_types[], or calls profile_type_print_id with what a stored profile has in fact:
 *
 *	{ profile_type_name(type), sample type, its unit, period type, its unit }
 */
#ifndef SERVER_PROFILE_TYPES_H
#define SERVER_PROFILE_TYPES_H

#include "base/buf.h"
#include "base/str.h"

struct profile_type {
	const char *type; /* kiln's */
	const char *name, *sample, *unit, *period, *period_unit;
};
extern const struct profile_type profile_types[];
extern const size_t nprofile_types;

/* Both ways; what is not known is returned as it is. The prefix godeltaprof_ of a __name__ is not
 * part of kiln's type. */
struct str profile_type_name(struct str type);
struct str profile_type_of_name(struct str name);
/* The first row of kiln's type; NULL if there is none. */
const struct profile_type *profile_type_row(struct str type);
/* kiln's type of a profile that has these sample types; "": no rule fits. */
struct str profile_type_of_samples(const struct str *names, size_t n);

/* name:sample:unit:period:period_unit, of which each may be empty. */
struct profile_type_id {
	struct str name, sample, unit, period, period_unit;
};
/* False: it does not have five parts, or no name. */
bool profile_type_parse_id(struct str text, struct profile_type_id *out);
void profile_type_print_id(struct buf *out, const struct profile_type_id *id);

enum { PROFILE_TYPE_HOMES = 4 };
/* Types of kiln's that may have what the id names, the likeliest first; at least one. Units and the
 * period do not matter: there are no two that differ in those only. */
size_t profile_type_homes(const struct profile_type_id *id, struct str types[PROFILE_TYPE_HOMES]);

#endif
