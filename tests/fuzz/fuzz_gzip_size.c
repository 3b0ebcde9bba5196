/* fuzz_gzip_size.c - any codes: the size that is told from them is not less than what zlib
 * unpacks, and nothing else happens where it does not. */
#include <stdlib.h>
#include <zlib.h>

#include "profile/gzip_size.h"

enum { ROOM = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The codes behind a header: one of their own, or of those that are not checked. */
static struct str file_of(const uint8_t *data, size_t n, size_t *header)
{
	static const char usual[] = "\x1f\x8b\x08\0\0\0\0\0\0\xff";
	struct str s = { (const char *)data, n };
	char *file;

	*header = gzip_is(s) ? gzip_header_bytes(s) : sizeof(usual) - 1;
	if (gzip_is(s))
		return (struct str){ memcpy(malloc(n), data, n), n };
	file = malloc(*header + n);
	memcpy(file, usual, *header);
	if (n)
		memcpy(file + *header, data, n);
	return (struct str){ file, *header + n };
}

/* All of it, and no more than there is room for; libdeflate lets codes pass that there are not. */
static bool unpack(struct str codes, size_t *n)
{
	static char plain[ROOM];
	z_stream z = { .next_in = (Bytef *)(uintptr_t)codes.p,
		       .avail_in = (uInt)codes.n,
		       .next_out = (Bytef *)plain,
		       .avail_out = sizeof(plain) };
	bool ok = inflateInit2(&z, -15) == Z_OK && inflate(&z, Z_FINISH) == Z_STREAM_END;

	*n = z.total_out;
	inflateEnd(&z);
	return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t header, size = 0;
	struct str file = file_of(data, n, &header);
	uint64_t least = gzip_least_size(file, ROOM);

	if (header < file.n && unpack(str_from(file, header), &size) && least < size)
		abort();
	free((char *)(uintptr_t)file.p);
	return 0;
}
