/* fuzz_shell.c - any lines of the shell: what they ask for, and what Tab would make of each. */
#include <stddef.h>
#include <stdint.h>

#include "shell/complete.h"
#include "shell/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str rest = { (const char *)data, n };
	struct arena arena = { 0 };
	struct strings strings;
	struct profile p;
	struct shell_parser parser = { .profile = &p, .settings = analyze_defaults };
	struct shell_request q;
	struct err e;

	strings_init(&strings);
	if (!profile_read(&p, &arena, &strings, STR("main;a.(*T).run;operator new(int) 10\n"),
			  1 << 20, &e))
		__builtin_trap();
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		struct completion c = { 0 };

		parser.has_pipes = line.n % 2;
		if (shell_parse(&parser, &arena, line, &q, &e) && q.action == SHELL_REPORT &&
		    !q.command)
			__builtin_trap();
		shell_complete(&c, &arena, &p, line);
		if (c.start > line.n)
			__builtin_trap();
		completion_common(&c, line);
		completion_release(&c);
	}
	arena_release(&parser.arena);
	arena_release(&arena);
	strings_release(&strings);
	return 0;
}
