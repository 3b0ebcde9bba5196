#include "test.h"

#include <stdio.h>
#include <unistd.h>

#include "analyze/views.h"

/* A folder for the viewers' files, empty again at the end. */
static void enter(char dir[32])
{
	strcpy(dir, "/tmp/test_views.XXXXXX");
	assert_non_null(mkdtemp(dir));
	setenv("TMPDIR", dir, 1);
}

static bool has_file(const char *dir, const char *name)
{
	char path[100];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return access(path, R_OK) == 0;
}

TEST(in_the_shell_files_stay_until_the_end)
{
	struct viewed all = { 0 };
	struct err e = { 0 };
	char dir[32];

	enter(dir);
	setenv("BROWSER", "true", 1);
	assert_true(view_show(&all, view_find("web"), STR("<svg/>"), true, &e));
	assert_true(has_file(dir, "pprof001.svg"));
	assert_int_equal(all.pids.n, 1);
	viewed_release(&all);
	assert_false(has_file(dir, "pprof001.svg"));
	assert_int_equal(rmdir(dir), 0);
}

TEST(a_folder_that_is_not_there_is_named)
{
	struct viewed all = { 0 };
	struct err e = { 0 };

	setenv("TMPDIR", "/nonexistent", 1);
	assert_false(view_show(&all, view_find("web"), STR("<svg/>"), false, &e));
	assert_string_equal(e.text, "open /nonexistent/pprof001.svg: no such file or directory");
	viewed_release(&all);
}

TEST(reports_are_no_views)
{
	assert_null(view_find("top"));
	assert_string_equal(view_find("kcachegrind")->report, "callgrind");
}
