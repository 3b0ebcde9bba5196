/* decode.h - reads profile.proto. */
#ifndef PROFILE_DECODE_H
#define PROFILE_DECODE_H

#include "profile/profile.h"

enum decode_result {
	DECODE_OK,
	DECODE_MALFORMED,    /* not profile.proto: another format may know it */
	DECODE_CONCATENATED, /* two profiles in one file */
	DECODE_INVALID,	     /* well-formed, but against pprof's rules; `e` says which */
};

enum decode_result proto_decode(struct profile *p, struct arena *a, struct strings *strings,
				struct str data, const struct parse_params *params, struct err *e);

#endif
