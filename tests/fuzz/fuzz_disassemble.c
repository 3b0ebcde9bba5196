/* fuzz_disassemble.c - object files, through their symbols and the instructions of all sections. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/symbol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void use(const struct object *o, struct asm_style style)
{
	struct arena a = { 0 };
	struct symbol_list symbols;
	struct instructions code;
	struct disassembler *d;
	struct err e;

	symbol_list_read(&a, o, &symbols);
	for (size_t i = 1; i < symbols.n; i++)
		if (symbols.at[i - 1].address > symbols.at[i].address)
			abort();
	d = disassembler_new(o, &symbols, style, &e);
	if (d) {
		disassemble(d, &a, 0x401000, 0x402000, &code);
		for (size_t i = 0; i < code.n; i++)
			disassembler_function(d, code.at[i].address);
	}
	disassembler_free(d);
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct object o;
	struct err e;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, data, n) == (ssize_t)n && object_open(&o, path, &e)) {
		use(&o, (struct asm_style){ .is_gnu = n & 2, .is_intel = n & 1 });
		object_close(&o);
	}
	close(fd);
	return 0;
}
