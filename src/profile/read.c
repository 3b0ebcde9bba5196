#include "profile/profile.h"

#include "profile/decode.h"
#include "profile/legacy.h"

bool profile_parse(struct profile *p, struct arena *a, struct strings *strings, struct str data,
		   const struct parse_params *params, struct err *e)
{
	if (data.n == 0)
		return err_set(e, ERR_FORMAT, "parsing profile: empty input file");
	switch (proto_decode(p, a, strings, data, params, e)) {
	case DECODE_OK:
		break;
	case DECODE_INVALID:
		return err_wrap(e, "malformed profile");
	case DECODE_CONCATENATED:
		return err_set(e, ERR_FORMAT, "parsing profile: concatenated profiles detected");
	case DECODE_MALFORMED:
		return legacy_read(p, a, strings, data, e) || err_wrap(e, "parsing profile");
	}
	return true;
}

bool profile_read(struct profile *p, struct arena *a, struct strings *strings, struct str data,
		  size_t max_bytes, struct err *e)
{
	struct arena unpacked = { 0 };
	struct str plain;
	bool ok = profile_unpack(&unpacked, data, max_bytes, &plain, e) &&
		  profile_parse(p, a, strings, plain, &(struct parse_params){ .threads = 1 }, e);

	arena_release(&unpacked);
	return ok;
}
