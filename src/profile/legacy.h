/* legacy.h - the formats that came before profile.proto, and folded stacks.
 *
 * Each reader returns true, or false with kind ERR_UNRECOGNIZED when the bytes are of another
 * format, or false with another kind and pprof's message when they are of this format and broken.
 */
#ifndef PROFILE_LEGACY_H
#define PROFILE_LEGACY_H

#include "profile/profile.h"

/* Tries every format below in pprof's order, then folded stacks. All unknown: ERR_UNRECOGNIZED and
 * "unrecognized profile format". */
bool legacy_read(struct profile *p, struct arena *a, struct strings *strings, struct str data,
		 struct err *e);

#endif
