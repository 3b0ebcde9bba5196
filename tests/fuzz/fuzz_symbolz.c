/* fuzz_symbolz.c - what a server says when it is asked for names; the first byte is the offset. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "fetch/symbolz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena a = { 0 };
	struct strings strings;
	struct mapping mapping = { .id = 1, .start = 0x1000 };
	struct location locations[] = { { .id = 1, .address = 0x10 },
					{ .id = 2, .address = 0x11 } };
	struct profile p = { .strings = &strings,
			     .mappings = &mapping,
			     .nmappings = 1,
			     .locations = locations,
			     .nlocations = 2 };
	struct err e;

	strings_init(&strings);
	if (n && symbolz_reply(&a, &p, 0, (struct str){ (const char *)data + 1, n - 1 },
			       (int8_t)data[0], &e))
		for (uint32_t i = 0; i < p.nlocations; i++)
			if (p.locations[i].nlines &&
			    p.lines[p.locations[i].first_line].function >= p.nfunctions)
				abort();
	strings_release(&strings);
	arena_release(&a);
	return 0;
}
