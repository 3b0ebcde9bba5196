/* fuzz_agent_names.c - files of the program that the agent reads names from: the first byte says
 * whether it is an ELF image or a JIT compiler's list. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool read_list(struct names *t, const void *p, size_t n)
{
	int fd = memfd_create("list", MFD_CLOEXEC);
	bool ok = fd >= 0 && write(fd, p, n) == (ssize_t)n && names_read_perf_map(t, fd);

	close(fd);
	return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct names t = { 0 };
	uint64_t offset;
	size_t length = 0;

	if (!n || !(data[0] & 1 ? read_list(&t, data + 1, n - 1)
				: names_read_image(&t, data + 1, n - 1))) {
		names_release(&t);
		return 0;
	}
	for (size_t i = 0; i < t.n; i++) {
		const char *name = names_find(&t, t.symbols[i].start, &offset);

		if (!name || offset || (i && t.symbols[i - 1].start >= t.symbols[i].start))
			abort();
		length += strlen(name);
		names_find(&t, t.symbols[i].start + t.symbols[i].size, &offset);
	}
	names_release(&t);
	return length == SIZE_MAX;
}
