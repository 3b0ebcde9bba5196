/* fuzz_profile.c - any bytes: read as a profile of any format, and written again if they are one.
 */
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

#define UNPACKED_MAX ((size_t)16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str bytes = { (const char *)data, n };
	struct arena arena = { 0 };
	struct strings strings;
	struct profile profile = { 0 };
	struct buf out = { 0 };
	struct err e;

	strings_init(&strings);
	if (profile_read(&profile, &arena, &strings, bytes, UNPACKED_MAX, &e))
		profile_encode(&out, &profile);
	buf_release(&out);
	strings_release(&strings);
	arena_release(&arena);
	return 0;
}
