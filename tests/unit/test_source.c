#include "test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol/symbol.h"

static char scratch[] = "/tmp/kiln-test-XXXXXX";

__attribute__((constructor)) static void enter_scratch(void)
{
	if (!mkdtemp(scratch) || chdir(scratch) != 0 || mkdir("a", 0700) != 0 ||
	    mkdir("a/b", 0700) != 0)
		abort();
}

static void write_file(const char *name, const char *text, size_t n)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	fclose(f);
}

static void check_trim(const char *path, const char *trim_path, const char *source_path,
		       const char *want)
{
	struct str got = source_trim(str_of(path), trim_path, source_path);

	assert_true(str_eq(got, str_of(want)));
}

TEST(trim_finds_the_source_directory_in_the_path)
{
	check_trim("/build/proj/x/y.c", "", "/home/me/proj", "x/y.c");
	check_trim("/build/proj/x/proj/y.c", "", "/home/me/proj/", "x/proj/y.c");
	check_trim("/build/proj/y.c", "", "/a/none:/home/me/proj", "y.c");
	check_trim("/build/project/y.c", "", "/home/me/proj", "/build/project/y.c");
	check_trim("proj/y.c", "", "/home/me/proj", "proj/y.c");
	check_trim("/proj", "", "/home/me/proj", "/proj");
	check_trim("", "", "x", "");
	check_trim("/a/./b", "", ":", "b");
}

TEST(trim_takes_configured_prefixes)
{
	check_trim("/build/proj/y.c", "/build/proj", "/home/me/proj", "y.c");
	check_trim("/build/proj/y.c", "/none:/build/", "", "proj/y.c");
	check_trim("/buildings/y.c", "/build", "", "/buildings/y.c");
	check_trim("/build", "/build", "", "/build");
	check_trim("/x/y.c", "/z:", "", "x/y.c");
}

TEST(trim_knows_bazel)
{
	check_trim("/proc/self/cwd/./x.c", "", "", "x.c");
	check_trim("/proc/self/cwd/x.c", "/other", "/src", "x.c");
}

struct reading {
	struct arena arena;
	struct source_file file;
	struct err e;
	bool ok;
};

static struct reading read_source(const char *path, const char *source_path)
{
	struct source_params params = { .trim_path = "", .source_path = source_path };
	struct reading r = { 0 };

	r.ok = source_read(&r.arena, &r.file, str_of(path), &params, &r.e);
	return r;
}

TEST(lines_lose_their_ends)
{
	struct reading r;

	write_file("crlf.c", "one\r\ntwo\n\nfour", 14);
	r = read_source("crlf.c", ".");
	assert_true(r.ok);
	assert_int_equal(r.file.nlines, 4);
	assert_true(str_eq(r.file.lines[0], STR("one")));
	assert_true(str_eq(r.file.lines[1], STR("two")));
	assert_true(str_eq(r.file.lines[2], STR("")));
	assert_true(str_eq(r.file.lines[3], STR("four")));
	arena_release(&r.arena);
	unlink("crlf.c");
}

TEST(files_are_looked_for_upwards)
{
	struct reading r;

	write_file("up.c", "x\n", 2);
	r = read_source("up.c", "none:a/b");
	assert_true(r.ok);
	assert_int_equal(r.file.nlines, 1);
	arena_release(&r.arena);
	r = read_source("down.c", "none:a/b");
	assert_false(r.ok);
	assert_string_equal(r.e.text, "could not find file down.c on path none:a/b");
	arena_release(&r.arena);
	unlink("up.c");
}

TEST(absolute_paths_must_exist)
{
	struct reading r = read_source("/nonexistent/x.c", "a");

	assert_false(r.ok);
	assert_int_equal(r.e.kind, ERR_NOTFOUND);
	assert_string_equal(r.e.text, "open /nonexistent/x.c: no such file or directory");
	arena_release(&r.arena);
}

TEST(what_is_no_text_file_has_no_lines)
{
	static const char *const names[] = { "a", "fifo", "/dev/zero" };

	assert_int_equal(mkfifo("fifo", 0600), 0);
	for (size_t i = 0; i < 3; i++) {
		struct reading r = read_source(names[i], ".");

		assert_true(r.ok);
		assert_int_equal(r.file.nlines, 0);
		arena_release(&r.arena);
	}
	unlink("fifo");
}

static void check_confined(const char *path, const char *source_path, const char *want)
{
	struct source_params params = { .trim_path = "",
					.source_path = source_path,
					.is_confined = true };
	struct reading r = { 0 };

	r.ok = source_read(&r.arena, &r.file, str_of(path), &params, &r.e);
	assert_string_equal(r.ok ? "" : r.e.text, want);
	assert_int_equal(r.file.nlines, r.ok);
	arena_release(&r.arena);
}

TEST(confined_are_those_who_did_not_start_it)
{
	write_file("above.c", "x\n", 2);
	write_file("a/inside.c", "x\n", 2);
	assert_int_equal(symlink("inside.c", "a/link.c"), 0);
	assert_int_equal(symlink("../above.c", "a/out.c"), 0);
	assert_int_equal(mkfifo("a/fifo", 0600), 0);
	check_confined("inside.c", "a", "");
	check_confined("link.c", "a", "");
	check_confined("inside.c", "a/b", "");
	check_confined("above.c", "a", "");
	check_confined("out.c", "a",
		       "out.c is not shown: it is outside of the directories to look in");
	check_confined("../above.c", "a",
		       "../above.c is not shown: it is outside of the directories to look in");
	check_confined("fifo", "a", "fifo is not shown: it is not a regular file");
	check_confined("b", "a", "b is not shown: it is not a regular file");
	check_confined("/dev/zero", "a", "/dev/zero is not shown: it is not a regular file");
	check_confined("/proc/self/maps", "a",
		       "/proc/self/maps is not shown: it is one of the system's own");
	check_confined("/etc/../proc/version", "a",
		       "/etc/../proc/version is not shown: it is one of the system's own");
	check_confined("etc/passwd", "a", "could not find file etc/passwd on path a");
	check_confined("none.c", "a", "could not find file none.c on path a");
	unlink("above.c");
	unlink("a/inside.c");
	unlink("a/link.c");
	unlink("a/out.c");
	unlink("a/fifo");
}

/* With the scratch directory for each '@'. */
static const char *with_scratch(struct arena *a, const char *text)
{
	struct buf out = { 0 };
	const char *copy;

	for (; *text; text++)
		buf_printf(&out, "%.*s", *text == '@' ? (int)strlen(scratch) : 1,
			   *text == '@' ? scratch : text);
	copy = str_dup(a, buf_view(&out));
	buf_release(&out);
	return copy;
}

/* `want` is what is wrong, or the text. */
static void check_beneath(const char *path, const char *map, const char *want)
{
	struct source_params params = { .max_bytes = 4 };
	struct reading r = { 0 };

	params.beneath = with_scratch(&r.arena, map);
	path = with_scratch(&r.arena, path);
	r.ok = source_read(&r.arena, &r.file, str_of(path), &params, &r.e);
	if (r.ok)
		assert_true(r.file.nlines == 1 && str_eq(r.file.lines[0], str_of(want)));
	else
		assert_non_null(strstr(r.e.text, want));
	assert_int_equal(r.ok, !strchr(want, ' '));
	arena_release(&r.arena);
}

TEST(nothing_is_read_but_what_lies_beneath)
{
	static const char out[] = "leads out of the directories to look in";

	write_file("above.c", "up\n", 3);
	write_file("a/b/in.c", "in\n", 3);
	write_file("a/b/long.c", "123456\n", 7);
	assert_int_equal(symlink("b/in.c", "a/link.c"), 0);
	assert_int_equal(symlink("../above.c", "a/out.c"), 0);
	assert_int_equal(symlink("..", "a/up"), 0);
	assert_int_equal(symlink("/proc/self/root", "a/root"), 0);
	assert_int_equal(mkfifo("a/fifo", 0600), 0);
	/* By its own name, as one of a build elsewhere, by what a name begins with. */
	check_beneath("@/a/b/in.c", "@/a", "in");
	check_beneath("b/in.c", "@/a", "in");
	check_beneath("/build/a/b/in.c", "@/a", "in");
	check_beneath("/build/a/b/in.c", "/build=@", "in");
	check_beneath("/proc/self/cwd/b/in.c", "/none:@/a", "in");
	check_beneath("link.c", "@/a", "in");
	check_beneath("b/../b/in.c", "@/a", "in");
	check_beneath("b/long.c", "@/a", "1234");
	check_beneath("/elsewhere/b/in.c", "@/a", "is not below");
	check_beneath("/builds/a/b/in.c", "/build=@", "is not below");
	check_beneath("", "@/a", "is not below");
	check_beneath("b/none.c", "@/a", "is not below");
	check_beneath("@/above.c", "@/a", "is not below");
	check_beneath("above.c", "@/a", "is not below");
	check_beneath("../above.c", "@/a", out);
	check_beneath("@/a/../above.c", "@/a", out);
	check_beneath("/build/../above.c", "/build=@/a", out);
	check_beneath("//etc/passwd", "/=@/a", out);
	check_beneath("out.c", "@/a", out);
	check_beneath("up/above.c", "@/a", out);
	check_beneath("root/etc/passwd", "@/a", out);
	check_beneath("fifo", "@/a", "not a regular file");
	check_beneath("b", "@/a", "not a regular file");
	check_beneath("/etc/passwd", "", "no directories");
	unlink("above.c");
	unlink("a/b/in.c");
	unlink("a/b/long.c");
	unlink("a/link.c");
	unlink("a/out.c");
	unlink("a/up");
	unlink("a/root");
	unlink("a/fifo");
}

TEST(places_for_sources_are_directories)
{
	static const char *const good[] = { "", "/a", "/a:/b", "x=/a", "/build=/a:/b" };
	static const char *const bad[] = { "a", ":", "/a:", "=/a", "x=", "x=a", "/a:b=c" };
	struct err e;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(source_beneath_check(good[i], &e));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(source_beneath_check(bad[i], &e));
}

TEST(a_huge_line_ends_the_file)
{
	struct buf text = { 0 };
	struct reading r;

	buf_puts(&text, "one\n");
	buf_fill(&text, 'x', 65535);
	buf_puts(&text, "\nthree\n");
	buf_fill(&text, 'x', 65536);
	buf_puts(&text, "\nfive\n");
	write_file("wide.c", text.p, text.n);
	r = read_source("wide.c", ".");
	assert_true(r.ok);
	assert_int_equal(r.file.nlines, 3);
	arena_release(&r.arena);
	buf_release(&text);
	unlink("wide.c");
}

TEST(zz_scratch_is_empty_again)
{
	assert_int_equal(rmdir("a/b"), 0);
	assert_int_equal(rmdir("a"), 0);
	assert_int_equal(rmdir(scratch), 0);
}
