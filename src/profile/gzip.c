#include "profile/profile.h"

#include <libdeflate.h>

/* RFC 1951: 258 bytes from a code of one bit for the length and one for the distance. */
enum { MAX_RATIO = 1032 };

static bool is_gzip(struct str s)
{
	return s.n >= 2 && (unsigned char)s.p[0] == 0x1f && (unsigned char)s.p[1] == 0x8b;
}

static bool fail(enum libdeflate_result r, size_t max_bytes, struct err *e)
{
	if (r == LIBDEFLATE_INSUFFICIENT_SPACE)
		return err_set(e, ERR_LIMIT,
			       "decompressing profile: unpacks to more than %zu bytes; "
			       "raise -max_profile_size if it is meant to",
			       max_bytes);
	return err_set(e, ERR_FORMAT,
		       "decompressing profile: unexpected EOF, or the gzip data is damaged");
}

/* Unpacks all members to `to`; *used is how much there is. */
static enum libdeflate_result unpack(struct libdeflate_decompressor *d, struct str data, char *to,
				     size_t room, size_t *used)
{
	enum libdeflate_result r = LIBDEFLATE_SUCCESS;

	*used = 0;
	while (r == LIBDEFLATE_SUCCESS && data.n) {
		size_t in_n = 0, out_n = 0;

		r = libdeflate_gzip_decompress_ex(d, data.p, data.n, to + *used, room - *used,
						  &in_n, &out_n);
		if (r == LIBDEFLATE_SUCCESS) {
			data = str_from(data, in_n);
			*used += out_n;
		}
	}
	return r;
}

/* What the last member says of its size (RFC 1952: ISIZE). It may lie. */
static size_t claimed_size(struct str data)
{
	const unsigned char *p = (const unsigned char *)data.p + data.n - 4;

	return data.n < 18
		       ? 0
		       : (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
}

bool profile_unpack(struct arena *a, struct str data, size_t max_bytes, struct str *out,
		    struct err *e)
{
	struct libdeflate_decompressor *d;
	enum libdeflate_result r;
	size_t bound, room, used;
	char *to;

	if (max_bytes > UINT32_MAX)
		max_bytes = UINT32_MAX; /* offsets in a profile have 32 bits */
	*out = data;
	if (!is_gzip(data))
		return data.n <= max_bytes ||
		       err_set(e, ERR_LIMIT, "larger than %zu bytes; raise -max_profile_size",
			       max_bytes);
	bound = data.n < max_bytes / MAX_RATIO ? data.n * MAX_RATIO + 1 : max_bytes;
	room = claimed_size(data) < bound ? claimed_size(data) : bound;
	d = libdeflate_alloc_decompressor();
	if (!d)
		return err_set(e, ERR_IO, "decompressing profile: out of memory");
	to = arena_raw(a, room);
	r = unpack(d, data, to, room, &used);
	if (r == LIBDEFLATE_INSUFFICIENT_SPACE && room < bound) {
		/* Pages that stay untouched cost nothing, so take the upper bound. */
		to = arena_raw(a, bound);
		r = unpack(d, data, to, bound, &used);
	}
	libdeflate_free_decompressor(d);
	*out = (struct str){ to, used };
	return r == LIBDEFLATE_SUCCESS || fail(r, max_bytes, e);
}
