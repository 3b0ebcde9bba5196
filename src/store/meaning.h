/* meaning.h - what values of a sample type say, and so how several of them become one. */
#ifndef STORE_MEANING_H
#define STORE_MEANING_H

#include "base/str.h"

enum meaning {
	MEANING_COUNTER,    /* of what happened in the profile's time: added */
	MEANING_GAUGE,	    /* of what there was at one moment: averaged */
	MEANING_CUMULATIVE, /* of what happened since the process began: differences are added. In a
			       profile that has a duration they have been taken already, so there
			       it is a counter */
};

/* `profile_type` as it was pushed ("heap"), `sample_type` as in the profile ("inuse_space"). */
enum meaning meaning_of(struct str profile_type, struct str sample_type);

#endif
