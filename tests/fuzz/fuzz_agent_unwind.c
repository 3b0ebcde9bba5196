/* fuzz_agent_unwind.c - what a module says of its frames, .eh_frame_hdr and .eh_frame, as the agent
 * makes tables of it: a signal handler must find a rule for every address. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/unwind.h"

enum { BYTES_MAX = 1 << 16, CODE_BYTES = 1 << 18, STEP = 37 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The agent never does: it may be looked at. */
static void release(const struct unwind_table *t)
{
	const char *start = (const char *)t, *rows = (const char *)t->rows;
	size_t head = (size_t)((const char *)(t->blocks + t->nblocks + 1) - start),
	       bytes = t->nblocks ? t->blocks[t->nblocks] * sizeof(*t->rows) : 0;

	if (rows >= start && rows < start + head + 16) {
		head += bytes + 16;
		bytes = 0;
	}
	munmap((void *)start, head);
	if (bytes)
		munmap((void *)rows, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct unwind_scratch scratch;
	const struct unwind_table *t;
	struct unwind_source source;
	uint8_t *copy;

	if (n == 0 || n > BYTES_MAX)
		return 0;
	copy = malloc(n); /* of this size: what is read behind it is seen */
	memcpy(copy, data, n);
	source.header = source.start = (uintptr_t)copy;
	source.end = source.start + n;
	source.base = source.start - CODE_BYTES / 2; /* code is before and behind it */
	source.code_end = source.base + CODE_BYTES;
	t = unwind_build(&source, &scratch);
	if (!t)
		abort();
	for (uint64_t offset = 0; offset < CODE_BYTES; offset += STEP)
		if (unwind_find(t, offset) >= t->rules + t->nrules)
			abort();
	release(t);
	free(copy);
	return 0;
}
