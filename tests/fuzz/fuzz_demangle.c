/* fuzz_demangle.c - names as they stand in a profile, through demangle_name in each mode. */
#include <stddef.h>
#include <stdint.h>

#include "symbol/symbol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str name = { (const char *)data, n };

	for (int mode = DEMANGLE_DEFAULT; mode <= DEMANGLE_CLONES; mode++) {
		struct buf out = { 0 };

		demangle_name(&out, name, (enum demangle_mode)mode);
		buf_release(&out);
	}
	return 0;
}
