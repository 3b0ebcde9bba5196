/* fuzz_legacy.c - any bytes, read as one of the legacy formats or folded stacks, and printed. */
#include <stddef.h>
#include <stdint.h>

#include "profile/legacy.h"
#include "report/raw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str bytes = { (const char *)data, n };
	struct arena arena = { 0 };
	struct strings strings;
	struct profile profile = { 0 };
	struct buf out = { 0 };
	struct err e = { 0 };

	strings_init(&strings);
	if (legacy_read(&profile, &arena, &strings, bytes, &e))
		raw_write(&out, &profile);
	buf_release(&out);
	strings_release(&strings);
	arena_release(&arena);
	return 0;
}
