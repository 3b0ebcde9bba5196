/* fuzz_gotable.c - Go's tables of functions and lines. The last byte says how much of the input is
 * the program's data, where the inlined calls are. */
#include <stddef.h>
#include <stdint.h>

#include "symbol/gotable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct symbol_frame frames[GO_FRAMES_MAX];
	size_t ndata = n ? data[n - 1] * 4u : 0;
	struct section sections[3] = { 0 };
	struct segment segment = { .type = PT_LOAD, .vaddr = 0x500000 };
	struct elf f = { .bytes = { (const char *)data, n },
			 .is_64 = true,
			 .sections = sections,
			 .nsections = 3,
			 .segments = &segment,
			 .nsegments = 1 };
	struct go_table t;

	if (ndata > n)
		return 0;
	segment.filesz = ndata;
	sections[1] = (struct section){ .name = STR(".noptrdata"), .type = 1, .size = ndata };
	sections[2] = (struct section){ .name = STR(".gopclntab"), .type = 1, .addr = 0x600000 };
	sections[2].offset = ndata;
	sections[2].size = n - ndata;
	if (go_table_read(&t, &f))
		for (uint64_t at = 0; at < 80; at += 4)
			go_table_find(&t, 0x401000 + at, frames);
	return 0;
}
