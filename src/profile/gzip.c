#include "profile/profile.h"

#include <libdeflate.h>

#include "profile/gzip_size.h"

/* RFC 1951: 258 bytes from a code of one bit for the length and one for the distance. */
enum { MAX_RATIO = 1032 };

/* What the last member says of its size (RFC 1952: ISIZE). It may lie. */
static size_t claimed_size(struct str data)
{
	const unsigned char *p = (const unsigned char *)data.p + data.n - 4;

	return data.n < 18
		       ? 0
		       : (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
}

/* A gzip file in the making: what is left to unpack, and where to. */
struct unpacker {
	struct libdeflate_decompressor *d;
	struct str data; /* from the member on that comes next, or failed */
	char *to;
	size_t room, used;
};

static enum libdeflate_result unpack(struct unpacker *u)
{
	enum libdeflate_result r = LIBDEFLATE_SUCCESS;

	u->used = 0;
	while (r == LIBDEFLATE_SUCCESS && u->data.n) {
		size_t in_n = 0, out_n = 0;

		r = libdeflate_gzip_decompress_ex(u->d, u->data.p, u->data.n, u->to + u->used,
						  u->room - u->used, &in_n, &out_n);
		if (r == LIBDEFLATE_SUCCESS) {
			u->data = str_from(u->data, in_n);
			u->used += out_n;
		}
	}
	return r;
}

/* libdeflate only says that something is wrong. These are Go's words for what it is. */
static const char *find_damage(const struct unpacker *u)
{
	struct str m = u->data;
	size_t in_n = 0, out_n = 0, header = gzip_header_bytes(m);

	if (m.n >= 2 && !gzip_is(m))
		return "gzip: invalid header";
	if (header > m.n)
		return "unexpected EOF";
	if (libdeflate_deflate_decompress_ex(u->d, m.p + header, m.n - header, u->to + u->used,
					     u->room - u->used, &in_n,
					     &out_n) == LIBDEFLATE_SUCCESS)
		return m.n - header - in_n < 8 ? "unexpected EOF" : "gzip: invalid checksum";
	/* A file that is all there ends in its size. */
	if (claimed_size(m) >= m.n && claimed_size(m) / m.n < MAX_RATIO)
		return "flate: corrupt input";
	return "unexpected EOF";
}

bool profile_unpack(struct arena *a, struct str data, size_t max_bytes, struct str *out,
		    struct err *e)
{
	struct unpacker u = { .data = data };
	enum libdeflate_result r;
	size_t bound;

	if (max_bytes > UINT32_MAX)
		max_bytes = UINT32_MAX; /* offsets in a profile have 32 bits */
	*out = data;
	if (!gzip_is(data))
		return data.n <= max_bytes ||
		       err_set(e, ERR_LIMIT, "larger than %zu bytes; raise -max_profile_size",
			       max_bytes);
	bound = data.n < max_bytes / MAX_RATIO ? data.n * MAX_RATIO + 1 : max_bytes;
	u.d = libdeflate_alloc_decompressor();
	if (!u.d)
		return err_set(e, ERR_IO, "decompressing profile: out of memory");
	u.room = claimed_size(data) < bound ? claimed_size(data) : bound;
	u.to = arena_raw(a, u.room);
	huge_pages(u.to, u.room);
	r = unpack(&u);
	if (r == LIBDEFLATE_INSUFFICIENT_SPACE && u.room < bound) {
		/* Pages that stay untouched cost nothing, so take the upper bound. */
		u.room = bound;
		u.to = arena_raw(a, bound);
		u.data = data;
		r = unpack(&u);
	}
	if (r == LIBDEFLATE_INSUFFICIENT_SPACE)
		err_set(e, ERR_LIMIT,
			"decompressing profile: unpacks to more than %zu bytes; raise "
			"-max_profile_size if it is meant to",
			max_bytes);
	else if (r != LIBDEFLATE_SUCCESS)
		err_set(e, ERR_FORMAT, "decompressing profile: %s", find_damage(&u));
	libdeflate_free_decompressor(u.d);
	*out = (struct str){ u.to, u.used };
	return r == LIBDEFLATE_SUCCESS;
}
