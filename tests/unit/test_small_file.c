#include "base/small_file.h"

#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *write_file(const char *text)
{
	static char path[60];
	int fd;

	snprintf(path, sizeof(path), "/tmp/test_small_file.%d", (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	return path;
}

TEST(a_file_is_read_whole_and_ends_with_nul)
{
	const char *path = write_file("0123456789");
	struct buf b = { 0 };
	struct err e;

	buf_puts(&b, "before ");
	assert_true(small_file_read(&b, path, 10, &e));
	assert_int_equal(b.n, 17);
	assert_string_equal(b.p, "before 0123456789");
	unlink(path);
	buf_release(&b);
}

TEST(what_is_too_large_or_no_file_is_named)
{
	const char *path = write_file("0123456789");
	struct buf b = { 0 };
	struct err e;

	assert_false(small_file_read(&b, path, 9, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.text, path));
	unlink(path);
	assert_false(small_file_read(&b, path, 9, &e));
	assert_non_null(strstr(e.text, path));
	assert_false(small_file_read(&b, "/tmp", 9, &e));
	assert_non_null(strstr(e.text, "/tmp is no regular file"));
	assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes to it */
	assert_false(small_file_read(&b, path, 9, &e));
	unlink(path);
	assert_int_equal(b.n, 0);
	buf_release(&b);
}

TEST(a_file_that_changes_has_another_version)
{
	struct file_version first = file_version(write_file("a")), same, longer, gone;
	const char *path;

	path = write_file("a long text");
	longer = file_version(path);
	same = file_version(path);
	unlink(path);
	gone = file_version(path);
	assert_true(file_version_same(&longer, &same));
	assert_false(file_version_same(&first, &longer));
	assert_false(file_version_same(&first, &gone));
}

TEST(a_file_is_replaced_whole)
{
	const char *path = write_file("0123456789");
	struct buf b = { 0 };
	struct err e;

	assert_true(small_file_write(path, STR("new"), &e));
	assert_true(small_file_read(&b, path, 10, &e));
	assert_string_equal(b.p, "new");
	assert_false(small_file_write("/nowhere/x", STR(""), &e));
	assert_non_null(strstr(e.text, "/nowhere/x"));
	unlink(path);
	buf_release(&b);
}
