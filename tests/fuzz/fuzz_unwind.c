/* fuzz_unwind.c - object files with any call frame information: unwinds from addresses all over the
 * file, with the file itself as the stack. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/symbol.h"

enum { STARTS = 200, STEPS_MAX = 50, STACK_START = 0x7000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void unwind_all(struct unwind_table *t, const uint8_t *data, size_t n)
{
	struct unwind_stack stack = { STACK_START, { (const char *)data, n } };

	for (uint64_t i = 0; i < STARTS; i++) {
		struct unwind_frame f = { .pc = n * i / STARTS };

		for (uint32_t k = 0; k < UNWIND_REGISTERS; k++)
			f.registers[k] = STACK_START + k * 8;
		for (int k = 0; k < STEPS_MAX && unwind_step(t, f.pc, &f, &stack); k++)
			;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct unwind_table *t;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, data, n) == (ssize_t)n) {
		for (int machine = UNWIND_X86_64; machine <= UNWIND_AARCH64; machine++) {
			t = unwind_open(path, STR(""), (enum unwind_machine)machine);
			if (t)
				unwind_all(t, data, n);
			unwind_close(t);
		}
	}
	close(fd);
	return 0;
}
