/* fuzz_perf.c - any bytes, read as perf.data or as the text of perf script, and printed. Stacks are
 * unwound by the files in tests/perf. */
#include <stddef.h>
#include <stdint.h>

#include "perf/perf.h"
#include "report/raw.h"
#include "symbol/symbol.h"

#define UNPACKED_MAX ((size_t)16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct locate_params locate = { "tests/perf", "", "", "" };
	struct str bytes = { (const char *)data, n };
	struct arena arena = { 0 };
	struct strings strings;
	struct profile profile = { 0 };
	struct buf out = { 0 };
	struct err e = { 0 };
	struct perf_params params = { .max_bytes = UNPACKED_MAX, .locate = &locate };

	strings_init(&strings);
	params.has_times = true;
	if (perf_recognizes(bytes) && perf_parse(&profile, &arena, &strings, bytes, &params, &e)) {
		raw_write(&out, &profile);
		if (profile.times)
			profile_take_times(&arena, &profile, 0, INT64_MAX / 2, NULL);
		raw_write(&out, &profile);
	}
	buf_release(&out);
	strings_release(&strings);
	arena_release(&arena);
	return 0;
}
