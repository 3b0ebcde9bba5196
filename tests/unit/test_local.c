/* Naming a profile by the files of its mappings, and choosing in which manner. */
#include "test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/profile.h"
#include "symbol/symbol.h"

static char dir[] = "/tmp/test_local.XXXXXX";

static void leave(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command) != 0)
		fprintf(stderr, "%s stays\n", dir);
}

/* A program without libraries: two functions of known addresses and lines. */
__attribute__((constructor)) static void build(void)
{
	static const char source[] =
		"volatile int sink;\n"
		"static inline __attribute__((always_inline)) void add(int n) { sink += n; }\n"
		"__attribute__((noinline, aligned(256))) void twice(int n) { add(n); add(n); }\n"
		"__attribute__((aligned(256))) void _start(void) { twice(2); for (;;) ; }\n";
	char command[400];
	FILE *f;

	if (!mkdtemp(dir) || atexit(leave) != 0 || chdir(dir) != 0 || !(f = fopen("p.c", "w")))
		abort();
	fputs(source, f);
	fclose(f);
	snprintf(command, sizeof(command),
		 "gcc -O1 -g -nostdlib -static -no-pie -Wl,--build-id=0xabcdef -Wl,-Ttext=0x401000 "
		 "-fno-asynchronous-unwind-tables -fcf-protection=none -o prog p.c");
	if (system(command) != 0)
		abort();
}

struct fixture {
	struct arena arena;
	struct strings strings;
	struct profile p;
	struct mapping mappings[2];
	struct location locations[3];
	struct function function;
	struct line line;
	struct buf warnings;
};

static void setup(struct fixture *x, const char *file, const char *build_id)
{
	*x = (struct fixture){ 0 };
	strings_init(&x->strings);
	x->mappings[0] = (struct mapping){ .id = 1, .start = 0x401000, .limit = 0x402000 };
	x->mappings[0].offset = 0x1000;
	x->mappings[0].file = strings_add(&x->strings, str_of(file));
	x->mappings[0].build_id = strings_add(&x->strings, str_of(build_id));
	x->mappings[1] = x->mappings[0];
	for (int i = 0; i < 3; i++)
		x->locations[i] = (struct location){ .id = (uint64_t)i + 1 };
	x->locations[0].address = 0x401000;
	x->locations[1].address = 0x401006;
	x->locations[2].address = 0x401100;
	x->function = (struct function){ .id = 7, .name = strings_add(&x->strings, STR("old")) };
	x->p = (struct profile){ .strings = &x->strings,
				 .mappings = x->mappings,
				 .nmappings = 1,
				 .locations = x->locations,
				 .nlocations = 3,
				 .functions = &x->function,
				 .nfunctions = 1,
				 .lines = &x->line,
				 .nlines = 1 };
}

static void symbolize(struct fixture *x, const struct symbolize_params *params)
{
	profile_symbolize(&x->arena, &x->p, params, &x->warnings);
	buf_char(&x->warnings, '\0');
}

static void teardown(struct fixture *x)
{
	arena_release(&x->arena);
	strings_release(&x->strings);
	buf_release(&x->warnings);
}

static const struct function *function_of(const struct fixture *x, uint32_t location, uint32_t line)
{
	const struct location *l = &x->p.locations[location];

	assert_true(line < l->nlines);
	return &x->p.functions[x->p.lines[l->first_line + line].function];
}

static void assert_name(const struct fixture *x, uint32_t string, const char *want)
{
	struct str got = profile_str(&x->p, string);

	if (!str_eq(got, str_of(want)))
		fail_msg("\"%.*s\", not \"%s\"", STR_ARG(got), want);
}

TEST(names_lines_and_functions)
{
	struct fixture x;

	setup(&x, "prog", "abcdef");
	symbolize(&x, &(struct symbolize_params){ .threads = 1 });
	assert_string_equal(x.warnings.p, "");
	assert_int_equal(x.p.locations[0].nlines, 2);
	assert_name(&x, function_of(&x, 0, 0)->name, "add");
	assert_name(&x, function_of(&x, 0, 1)->system_name, "twice");
	assert_name(&x, function_of(&x, 2, 0)->name, "_start");
	assert_int_equal(x.p.lines[x.p.locations[0].first_line].line, 2);
	assert_int_equal(x.p.lines[x.p.locations[0].first_line + 1].line, 3);
	/* Functions there were stay, and those that are found again are the same. */
	assert_int_equal(x.p.nfunctions, 4);
	assert_int_equal(function_of(&x, 0, 0)->id, 2);
	assert_ptr_equal(function_of(&x, 0, 1), function_of(&x, 1, x.p.locations[1].nlines - 1));
	assert_true(x.p.mappings[0].has_functions && x.p.mappings[0].has_filenames &&
		    x.p.mappings[0].has_line_numbers && x.p.mappings[0].has_inline_frames);
	assert_false(x.mappings[0].has_functions); /* the input is not written to */
	teardown(&x);
}

TEST(mappings_with_names_are_left_alone)
{
	struct fixture x;

	setup(&x, "prog", "");
	x.mappings[0].has_functions = true;
	symbolize(&x, &(struct symbolize_params){ .threads = 1 });
	assert_int_equal(x.p.locations[0].nlines, 0);
	symbolize(&x, &(struct symbolize_params){ .threads = 1, .force = true });
	assert_int_equal(x.p.locations[0].nlines, 2);
	teardown(&x);
}

TEST(other_build)
{
	struct fixture x;

	setup(&x, "prog", "1234");
	symbolize(&x, &(struct symbolize_params){ .threads = 1 });
	assert_string_equal(x.warnings.p, "Local symbolization failed for prog (build ID 1234): "
					  "build ID mismatch\n");
	assert_int_equal(x.p.locations[0].nlines, 0);
	teardown(&x);
}

TEST(missing_files_and_reasons)
{
	const char *reasons[2] = { 0 };
	struct fixture x;
	struct buf out = { 0 };

	setup(&x, "/no/such/prog", "");
	x.mappings[1].file = 0;
	x.p.nmappings = 2;
	x.locations[2].mapping = 1;
	symbolize(&x, &(struct symbolize_params){ .threads = 1, .reasons = reasons });
	assert_string_equal(
		x.warnings.p,
		"Local symbolization failed for prog: stat /no/such/prog: no such file or "
		"directory\n"
		"Some binary filenames not available. Symbolization may be incomplete.\n"
		"Try setting PPROF_BINARY_PATH to the search path for local binaries.\n");
	profile_explain_names(&x.p, reasons, &out);
	buf_char(&out, '\0');
	assert_string_equal(
		out.p,
		"No names for 2 addresses in /no/such/prog: stat /no/such/prog: no such file or "
		"directory; looked for it below $HOME/pprof/binaries, as prog, "
		"./no/such/prog. Set PPROF_BINARY_PATH to a directory that has it.\n");
	buf_release(&out);
	teardown(&x);
}

TEST(another_build_and_its_reason)
{
	const char *reasons[2] = { 0 };
	struct symbolize_params params = { .symbolizer.binary_path = "/bin:/opt",
					   .threads = 1,
					   .reasons = reasons };
	struct fixture x;

	setup(&x, "prog", "1234");
	symbolize(&x, &params);
	assert_non_null(strstr(reasons[0], "prog is another build, "));
	assert_non_null(
		strstr(reasons[0],
		       "below PPROF_BINARY_PATH=/bin:/opt, as 1234/prog, prog. Put it there."));
	teardown(&x);
}

/* Its file was not looked at before. */
TEST(a_reason_for_a_mapping_with_some_names)
{
	const char *reasons[2] = { 0 };
	struct fixture x;

	setup(&x, "/no/such/prog", "");
	x.mappings[0].has_functions = true;
	symbolize(&x, &(struct symbolize_params){ .threads = 1, .reasons = reasons });
	assert_string_equal(x.warnings.p, "");
	assert_non_null(strstr(reasons[0], "stat /no/such/prog: no such file"));
	teardown(&x);
}

TEST(mappings_that_are_no_files)
{
	static const char *const names[] = { "[vdso]",	 "linux-vdso.so.1", "/dev/dri/x",
					     "/memfd:x", "//anon",	    "http://x/y" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct fixture x;

		setup(&x, names[i], "");
		symbolize(&x, &(struct symbolize_params){ .threads = 1 });
		assert_string_equal(x.warnings.p, "");
		teardown(&x);
	}
}

static void add_tool(const char *name)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	fclose(f);
	assert_int_equal(chmod(name, 0755), 0);
}

static enum symbol_detail choose(const char *option, const char *path, bool only_names)
{
	return symbol_tools_choose(&(struct symbol_tools){ option, path }, only_names).detail;
}

static bool objdump_is_gnu(const char *option, const char *path)
{
	return symbol_tools_objdump_is_gnu(&(struct symbol_tools){ option, path });
}

TEST(tools_decide_what_is_shown)
{
	assert_int_equal(mkdir("empty", 0755), 0);
	assert_int_equal(mkdir("gnu", 0755), 0);
	assert_int_equal(mkdir("llvm", 0755), 0);
	add_tool("gnu/addr2line");
	add_tool("gnu/nm");
	add_tool("gnu/objdump");
	add_tool("llvm/llvm-symbolizer");
	add_tool("llvm/llvm-objdump");
	assert_int_equal(choose("", "llvm:gnu", false), SYMBOL_FULL);
	assert_int_equal(choose("", "gnu", false), SYMBOL_PLAIN);
	assert_int_equal(choose("", "gnu", true), SYMBOL_NAMES);
	assert_int_equal(choose("", "empty", false), SYMBOL_FULL);
	assert_int_equal(choose("gnu", "empty", false), SYMBOL_PLAIN);
	assert_int_equal(choose("addr2line:gnu", "llvm", false), SYMBOL_FULL);
	assert_int_equal(choose("llvm-symbolizer:llvm", "gnu", false), SYMBOL_FULL);
	assert_int_equal(choose("", "/no/such/dir", false), SYMBOL_FULL);
	assert_int_equal(choose("gnu", "/no/such/dir", false), SYMBOL_PLAIN);
	assert_true(objdump_is_gnu("", "gnu"));
	assert_true(objdump_is_gnu("objdump:gnu", "empty"));
	assert_false(objdump_is_gnu("", "gnu:llvm"));
	assert_false(objdump_is_gnu("objdump:llvm", "gnu"));
	assert_false(objdump_is_gnu("", "empty"));
}
