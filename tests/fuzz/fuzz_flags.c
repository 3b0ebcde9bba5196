/* fuzz_flags.c - any command line, its words separated by NUL. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "analyze/flags.h"

enum { WORDS_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena arena = { 0 };
	char *text = str_dup(&arena, (struct str){ (const char *)data, n });
	char program[] = "kiln", *argv[WORDS_MAX + 2] = { program };
	struct buf warnings = { 0 }, out = { 0 };
	struct command_line c;
	struct err e = { 0 };
	int argc = 1;

	for (size_t at = 0; at < n && argc <= WORDS_MAX; at += strlen(text + at) + 1)
		argv[argc++] = text + at;
	if (!flags_parse(&c, &arena, argc, argv, &warnings, &e))
		flags_explain(&out, &c, program, &e);
	buf_release(&warnings);
	buf_release(&out);
	arena_release(&arena);
	return 0;
}
