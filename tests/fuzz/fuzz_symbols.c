/* fuzz_symbols.c - symbols, DWARF, debug links and packed symbols of ELF files. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/symbol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void find(struct symbolizer *s, uint64_t address)
{
	const struct symbol_frame *frames;
	size_t n = symbolizer_find(s, address, &frames);

	/* Touches all bytes that the frames say they have. */
	for (size_t i = 0; i < n; i++) {
		struct buf out = { 0 };

		buf_str(&out, frames[i].name);
		buf_str(&out, frames[i].file);
		buf_release(&out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[64];
	struct err e;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, data, n) == (ssize_t)n) {
		for (int detail = SYMBOL_FULL; detail <= SYMBOL_NAMES; detail++) {
			struct symbolizer_params params = { .detail = (enum symbol_detail)detail };
			struct symbolizer *s = symbolizer_open(path, &params, &e);

			/* The text of the seeds starts at 0x401000, and is short. */
			for (uint64_t at = 0; s && at < 0x100; at += 5)
				find(s, 0x401000 + at);
			if (s)
				find(s, 0);
			symbolizer_close(s);
		}
	}
	close(fd);
	return 0;
}
