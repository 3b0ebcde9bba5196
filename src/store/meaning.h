/* meaning.h - what values of a sample type say, and so how several of them become one. */
#ifndef STORE_MEANING_H
#define STORE_MEANING_H

#include "base/arena.h"
#include "base/str.h"
#include "profile/profile.h"

enum meaning {
	MEANING_COUNTER,    /* of what happened in the profile's time: added */
	MEANING_GAUGE,	    /* of what there was at one moment: averaged */
	MEANING_CUMULATIVE, /* of what happened since the process began: differences are added. In a
			       profile that has a duration they have been taken already, so there
			       it is a counter */
};

/* `profile_type` as it was pushed ("heap"), `sample_type` as in the profile ("inuse_space"). */
enum meaning meaning_of(struct str profile_type, struct str sample_type);

/* A sum of n profiles of this type: what is to be averaged is divided by n, all of it or, if not
 * `is_all`, gauges. Samples that are left with nothing go. */
void average_profile(struct arena *a, struct profile *p, struct str profile_type, bool is_all,
		     uint64_t n);

#endif
