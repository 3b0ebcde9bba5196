#include "test.h"

#include <stdio.h>

#include "base/path.h"

typedef void path_function(struct buf *out, struct str path);

static void check(path_function *f, const char *path, const char *want)
{
	struct buf b = { 0 };
	char text[100];

	buf_puts(&b, "<");
	f(&b, str_of(path));
	snprintf(text, sizeof(text), "%.*s", STR_ARG(buf_view(&b)));
	assert_string_equal(text + 1, want);
	buf_release(&b);
}

static void base(struct buf *out, struct str path)
{
	buf_str(out, path_base(path));
}

TEST(base_is_the_last_element)
{
	check(base, "", ".");
	check(base, ".", ".");
	check(base, "/", "/");
	check(base, "///", "/");
	check(base, "abc", "abc");
	check(base, "/abc/", "abc");
	check(base, "a/b.c", "b.c");
	check(base, "a//..", "..");
}

TEST(clean_shortens)
{
	check(path_clean, "", ".");
	check(path_clean, "/", "/");
	check(path_clean, "//", "/");
	check(path_clean, "abc", "abc");
	check(path_clean, "abc/", "abc");
	check(path_clean, "./abc", "abc");
	check(path_clean, "a//b/./c", "a/b/c");
	check(path_clean, "a/b/..", "a");
	check(path_clean, "a/..", ".");
	check(path_clean, "a/../b", "b");
	check(path_clean, "/a/..", "/");
	check(path_clean, "/a/../b", "/b");
	check(path_clean, "/..", "/");
	check(path_clean, "/../../a", "/a");
	check(path_clean, "..", "..");
	check(path_clean, "../..", "../..");
	check(path_clean, "../../a/../b", "../../b");
	check(path_clean, "a/../../b", "../b");
	check(path_clean, "a/b/../../..", "..");
	check(path_clean, "...", "...");
	check(path_clean, "/abc/def/../ghi/../jkl", "/abc/jkl");
}

TEST(dir_is_what_stands_before)
{
	check(path_dir, "", ".");
	check(path_dir, "abc", ".");
	check(path_dir, "/", "/");
	check(path_dir, "/abc", "/");
	check(path_dir, "a/b", "a");
	check(path_dir, "a/b/", "a/b");
	check(path_dir, "a/b/../c", "a");
	check(path_dir, "//a//b", "/a");
}

static void join_to_x(struct buf *out, struct str path)
{
	path_join(out, path, STR("../x/"));
}

TEST(join_cleans)
{
	struct buf b = { 0 };

	check(join_to_x, "", "../x");
	check(join_to_x, "a/b", "a/x");
	check(join_to_x, "/", "/x");
	path_join(&b, STR(""), STR(""));
	assert_int_equal(b.n, 0);
	path_join(&b, STR("a"), STR(""));
	assert_true(str_eq(buf_view(&b), STR("a")));
	buf_release(&b);
}
