/* Names addresses of programs that the test compiles in ways that differ in their debug
 * information.
 */
#include "test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "symbol/symbol.h"

/* A call that is inlined into outer() calls mark(), which knows where it was called from. */
static const char source[] =
	"extern int printf(const char *, ...);\n"
	"void *spot;\n"
	"__attribute__((noinline)) void mark(void)\n"
	"{\n"
	"	spot = __builtin_return_address(0);\n"
	"}\n"
	"static inline __attribute__((always_inline)) void inner(int n)\n"
	"{\n"
	"	if (n)\n"
	"		mark();\n"
	"	__asm__ volatile(\"\");\n"
	"}\n"
	"__attribute__((noinline)) void outer(int n)\n"
	"{\n"
	"	inner(n);\n"
	"	__asm__ volatile(\"\");\n"
	"}\n"
	"extern char __executable_start[];\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	(void)argv;\n"
	"	outer(argc);\n"
	"	printf(\"%lx\\n\", (unsigned long)((char *)spot - 1 - (char *)BASE));\n"
	"	return 0;\n"
	"}\n";

static char dir[] = "/tmp/test_symbolizer.XXXXXX";
static bool has_dir;

__attribute__((destructor)) static void remove_dir(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (has_dir && system(command) != 0)
		fprintf(stderr, "%s stays\n", dir);
}

/* Runs a command in the test's directory. */
static void run(const char *fmt, ...)
{
	char command[1000];
	va_list args;
	int n = snprintf(command, sizeof(command), "cd %s && ", dir);

	va_start(args, fmt);
	vsnprintf(command + n, sizeof(command) - (size_t)n, fmt, args);
	va_end(args);
	if (system(command) != 0)
		fail_msg("failed: %s", command);
}

static const char *in_dir(const char *name)
{
	static char path[200];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* Compiles the program as NAME and returns the address that mark() was called from. */
static uint64_t build(const char *name, const char *compiler, const char *flags)
{
	unsigned long address = 0;
	char line[300];
	FILE *f;

	if (!has_dir)
		assert_non_null(mkdtemp(dir));
	has_dir = true;
	f = fopen(in_dir("prog.c"), "w");
	assert_non_null(f);
	fputs(source, f);
	fclose(f);
	run("%s -O2 %s -o %s prog.c -DBASE=%s 2>&1", compiler, flags, name,
	    strstr(flags, "-no-pie") ? "0" : "__executable_start");
	snprintf(line, sizeof(line), "%s/%s", dir, name);
	f = popen(line, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lx", &address), 1);
	assert_int_equal(pclose(f), 0);
	return address;
}

static struct symbolizer *open_with(const char *name, enum symbol_detail detail,
				    const char *binary_path)
{
	struct symbolizer_params params = { .detail = detail, .binary_path = binary_path };
	struct err e = { 0 };
	struct symbolizer *s = symbolizer_open(in_dir(name), &params, &e);

	if (!s)
		fail_msg("%s", e.text);
	return s;
}

static void assert_str(struct str got, const char *want)
{
	if (!str_eq(got, str_of(want)))
		fail_msg("\"%.*s\", not \"%s\"", STR_ARG(got), want);
}

static void assert_frames(struct symbolizer *s, uint64_t address, const char *inner,
			  const char *outer)
{
	const struct symbol_frame *f;

	assert_int_equal(symbolizer_find(s, address, &f), 2);
	assert_str(f[0].name, inner);
	assert_str(f[1].name, outer);
	assert_str(path_base(f[0].file), "prog.c");
	assert_int_equal(f[0].line, 10);
	assert_int_equal(f[1].line, 15);
	assert_int_equal(f[0].start_line, 7);
	assert_int_equal(f[1].start_line, 13);
	assert_true(f[1].column > 0);
}

static void check_c(const char *flags)
{
	uint64_t address = build("prog", "gcc", flags);
	struct symbolizer *s = open_with("prog", SYMBOL_FULL, NULL);

	assert_frames(s, address, "inner", "outer");
	symbolizer_close(s);
}

TEST(dwarf_4)
{
	check_c("-gdwarf-4");
}

TEST(dwarf_5)
{
	check_c("-gdwarf-5");
}

TEST(type_units)
{
	check_c("-g -fdebug-types-section");
}

TEST(compressed_sections)
{
	check_c("-g -gz=zlib");
}

TEST(fixed_addresses)
{
	check_c("-g -no-pie");
}

TEST(no_aranges)
{
	uint64_t address = build("prog", "gcc", "-g");
	struct symbolizer *s;

	run("objcopy --remove-section=.debug_aranges prog");
	s = open_with("prog", SYMBOL_FULL, NULL);
	assert_frames(s, address, "inner", "outer");
	symbolizer_close(s);
}

TEST(split_units)
{
	const struct symbol_frame *f;
	uint64_t address = build("prog", "gcc", "-g -gsplit-dwarf");
	struct symbolizer *s = open_with("prog", SYMBOL_FULL, NULL);

	assert_int_equal(symbolizer_find(s, address, &f), 2);
	assert_str(f[0].name, "inner");
	assert_str(f[1].name, "outer");
	symbolizer_close(s);
}

TEST(linkage_names)
{
	uint64_t address = build("prog", "g++", "-g -x c++ -Dprintf=__builtin_printf");
	struct symbolizer *s = open_with("prog", SYMBOL_FULL, NULL);

	assert_frames(s, address, "inner", "_Z5outeri");
	symbolizer_close(s);
}

TEST(plain_frames_have_lines_only)
{
	const struct symbol_frame *f;
	uint64_t address = build("prog", "gcc", "-g");
	struct symbolizer *s = open_with("prog", SYMBOL_PLAIN, NULL);

	assert_int_equal(symbolizer_find(s, address, &f), 2);
	assert_str(f[0].name, "inner");
	assert_int_equal(f[0].line, 10);
	assert_int_equal(f[0].column, 0);
	assert_int_equal(f[1].start_line, 0);
	symbolizer_close(s);
}

TEST(plain_frames_without_debug_information)
{
	const struct symbol_frame *f;
	uint64_t address = build("prog", "gcc", "-g0");
	struct symbolizer *s = open_with("prog", SYMBOL_PLAIN, NULL);

	assert_int_equal(symbolizer_find(s, address, &f), 1);
	assert_str(f[0].name, "outer");
	assert_str(f[0].file, "?\?:?");
	assert_int_equal(symbolizer_find(s, 8, &f), 0);
	symbolizer_close(s);
}

TEST(names_of_symbols)
{
	const struct symbol_frame *f;
	uint64_t address = build("prog", "gcc", "-g");
	struct symbolizer *s = open_with("prog", SYMBOL_NAMES, NULL);

	assert_int_equal(symbolizer_find(s, address, &f), 1);
	assert_str(f[0].name, "outer");
	assert_str(f[0].file, "");
	assert_int_equal(symbolizer_find(s, 0, &f), 0);
	symbolizer_close(s);
}

TEST(stripped_programs_have_one_empty_frame)
{
	const struct symbol_frame *f;
	uint64_t address = build("prog", "gcc", "-g0 -s");
	struct symbolizer *s = open_with("prog", SYMBOL_FULL, NULL);
	struct buf why = { 0 };

	assert_int_equal(symbolizer_find(s, address, &f), 1);
	assert_str(f[0].name, "");
	symbolizer_explain(s, &why);
	assert_true(str_has_prefix(buf_view(&why), STR("it is stripped")));
	assert_true(str_contains(buf_view(&why), STR("/usr/lib/debug/.build-id/")));
	buf_release(&why);
	symbolizer_close(s);
}

TEST(debug_link)
{
	const struct symbol_frame *f;
	uint64_t address = build("prog", "gcc", "-g -Wl,--build-id=none");
	struct symbolizer *s;

	run("mkdir -p .debug && objcopy --only-keep-debug prog .debug/prog.dbg && "
	    "objcopy --strip-all --add-gnu-debuglink=.debug/prog.dbg prog");
	s = open_with("prog", SYMBOL_FULL, NULL);
	assert_frames(s, address, "inner", "outer");
	symbolizer_close(s);

	/* The file that the link was made for has another checksum. */
	run("printf x >> .debug/prog.dbg");
	s = open_with("prog", SYMBOL_FULL, NULL);
	assert_int_equal(symbolizer_find(s, address, &f), 1);
	assert_str(f[0].name, "");
	symbolizer_close(s);
}

TEST(build_id_directory)
{
	uint64_t address = build("prog", "gcc", "-g -Wl,--build-id=0xabcdef0123");
	struct symbolizer *s;
	char ids[100];

	snprintf(ids, sizeof(ids), "%s/ids", dir);
	run("mkdir -p ids/.build-id/ab && "
	    "objcopy --only-keep-debug prog ids/.build-id/ab/cdef0123.debug && strip prog");
	s = open_with("prog", SYMBOL_FULL, ids);
	assert_frames(s, address, "inner", "outer");
	symbolizer_close(s);
}

TEST(debug_data)
{
	const struct symbol_frame *f;
	uint64_t address = build("prog", "gcc", "-g0");
	struct symbolizer *s;

	run("objcopy --only-keep-debug prog mini && rm -f mini.xz && xz mini && "
	    "objcopy --strip-all --add-section .gnu_debugdata=mini.xz prog");
	s = open_with("prog", SYMBOL_FULL, NULL);
	assert_int_equal(symbolizer_find(s, address, &f), 1);
	assert_str(f[0].name, "outer");
	symbolizer_close(s);
}

TEST(not_an_object)
{
	struct symbolizer_params params = { .detail = SYMBOL_FULL };
	struct err e;

	assert_null(symbolizer_open("tests/unit/test.h", &params, &e));
	assert_string_equal(e.text, "unrecognized binary format: tests/unit/test.h");
}
