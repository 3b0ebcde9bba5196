/* narrow.h - a profile's samples cut shorter, or left out, on all cores. Private to profile/. */
#ifndef PROFILE_NARROW_H
#define PROFILE_NARROW_H

#include "profile/profile.h"

/* May cut the sample's stack, by its range. False: it goes. Called on several threads. */
typedef bool narrow_sample(const void *ctx, struct sample *s);

/* Gives the profile samples of its own, in the same order. Of the filter it needs what says how. */
void narrow_samples(struct arena *a, struct profile *p, const struct profile_filter *how,
		    narrow_sample *narrow, const void *ctx);

#endif
