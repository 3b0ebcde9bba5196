#include "test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"

/* Runs a line of shell. */
static bool run(const char *line, struct str input, int64_t seconds, struct buf *out, struct err *e)
{
	const char *const argv[] = { "sh", "-c", line, NULL };

	return child_run(
		&(struct child_params){ argv, input, seconds, 100u << 20, NULL, NULL, NULL }, out,
		e);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

TEST(passes_bytes_through)
{
	struct buf out = { 0 };
	struct err e = { 0 };

	assert_true(run("tr a-z A-Z", STR("hello\n"), 10, &out, &e));
	assert_true(str_eq(buf_view(&out), STR("HELLO\n")));
	buf_release(&out);
}

TEST(a_program_may_be_called_differently)
{
	const char *const argv[] = { "other", "-c", "echo $0", NULL };
	struct buf out = { 0 };
	struct err e = { 0 };

	assert_true(child_run(
		&(struct child_params){
			.argv = argv, .path = "/bin/sh", .max_seconds = 10, .max_output = 100 },
		&out, &e));
	assert_true(str_eq(buf_view(&out), STR("other\n")));
	buf_release(&out);
}

TEST(a_missing_program_is_named_as_go_does)
{
	const char *const argv[] = { "no-such-program", NULL };
	struct buf out = { 0 };
	struct err e = { 0 };

	assert_false(child_run(&(struct child_params){ argv, STR(""), 10, 1, NULL, NULL, NULL },
			       &out, &e));
	assert_int_equal(e.kind, ERR_NOTFOUND);
	assert_string_equal(e.text,
			    "exec: \"no-such-program\": executable file not found in $PATH");
	buf_release(&out);
}

TEST(a_missing_path_is_named)
{
	const char *const argv[] = { "./no/such", NULL };
	struct buf out = { 0 };
	struct err e = { 0 };

	assert_false(child_run(&(struct child_params){ argv, STR(""), 10, 1, NULL, NULL, NULL },
			       &out, &e));
	assert_string_equal(e.text,
			    "exec: \"./no/such\": stat ./no/such: no such file or directory");
	buf_release(&out);
}

TEST(a_file_that_is_no_program_fails_to_start)
{
	char path[] = "/tmp/test_child.XXXXXX";
	const char *const argv[] = { path, NULL };
	int fd = mkstemp(path);
	struct buf out = { 0 };
	struct err e = { 0 };

	assert_true(fd >= 0 && fchmod(fd, 0700) == 0 && write(fd, "\1\2\3", 3) == 3);
	close(fd);
	assert_false(child_run(&(struct child_params){ argv, STR(""), 10, 1, NULL, NULL, NULL },
			       &out, &e));
	unlink(path);
	assert_non_null(strstr(e.text, "exec format error"));
	buf_release(&out);
}

TEST(huge_input_and_output_do_not_deadlock)
{
	size_t n = 32u << 20;
	char *bytes = malloc(n);
	struct buf out = { 0 };
	struct err e = { 0 };

	memset(bytes, 'x', n);
	bytes[n - 1] = 'y';
	assert_true(run("cat", (struct str){ bytes, n }, 60, &out, &e));
	assert_int_equal(out.n, n);
	assert_memory_equal(out.p, bytes, n);
	free(bytes);
	buf_release(&out);
}

TEST(a_child_that_does_not_read_is_no_disaster)
{
	size_t n = 4u << 20;
	char *bytes = calloc(1, n);
	struct buf out = { 0 };
	struct err e = { 0 };

	assert_true(run("exec <&-; echo early", (struct str){ bytes, n }, 10, &out, &e));
	assert_true(str_eq(buf_view(&out), STR("early\n")));
	free(bytes);
	buf_release(&out);
}

TEST(its_status_is_told)
{
	struct buf out = { 0 };
	struct err e = { 0 };

	assert_false(run("exit 3", STR(""), 10, &out, &e));
	assert_string_equal(e.text, "exit status 3");
	assert_false(run("kill -SEGV $$", STR(""), 10, &out, &e));
	assert_non_null(strstr(e.text, "signal: "));
	buf_release(&out);
}

/* What is dead but has not been waited for does not count. */
static bool is_alive(pid_t pid)
{
	char path[64], letter = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %c", &letter) != 1)
		letter = 'Z';
	fclose(f);
	return letter != 'Z';
}

TEST(a_child_that_hangs_is_killed_with_its_group)
{
	double start = now();
	struct buf out = { 0 };
	struct err e = { 0 };
	pid_t grandchild;

	assert_false(run("sleep 1000 & echo $!; wait", STR(""), 1, &out, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_string_equal(e.text, "it did not finish within 1 seconds");
	assert_true(now() - start < 5);
	buf_char(&out, '\0');
	grandchild = (pid_t)atoi(out.p);
	for (int i = 0; i < 200 && is_alive(grandchild); i++)
		usleep(10000);
	assert_false(is_alive(grandchild));
	buf_release(&out);
}

TEST(a_daemon_that_keeps_the_pipe_is_not_waited_for)
{
	double start = now();
	struct buf out = { 0 };
	struct err e = { 0 };

	assert_true(run("sleep 1000 & echo done", STR(""), 30, &out, &e));
	assert_true(str_eq(buf_view(&out), STR("done\n")));
	assert_true(now() - start < 5);
	buf_release(&out);
}

TEST(too_much_output_is_refused)
{
	const char *const argv[] = { "yes", NULL };
	struct buf out = { 0 };
	struct err e = { 0 };

	assert_false(child_run(
		&(struct child_params){ argv, STR(""), 30, 1000000, NULL, NULL, NULL }, &out, &e));
	assert_string_equal(e.text, "it printed more than 1000000 bytes");
	buf_release(&out);
}

TEST(a_started_child_is_waited_for)
{
	const char *const good[] = { "true", NULL }, *const bad[] = { "false", NULL },
			  *const none[] = { "no-such-viewer", NULL };
	struct err e = { 0 };
	pid_t pid;

	assert_true(child_start(good, &pid, &e) && child_wait(pid, &e));
	assert_true(child_start(bad, &pid, &e));
	assert_false(child_wait(pid, &e));
	assert_string_equal(e.text, "exit status 1");
	assert_false(child_start(none, &pid, &e));
	assert_int_equal(e.kind, ERR_NOTFOUND);
}

TEST(the_environment_may_be_another)
{
	const char *const argv[] = { "/usr/bin/env", NULL };
	const char *const environment[] = { "A=1", "B=2", NULL };
	struct buf out = { 0 };
	struct err e;

	assert_true(child_run(&(struct child_params){ .argv = argv,
						      .environment = environment,
						      .max_seconds = 30,
						      .max_output = 1000 },
			      &out, &e));
	assert_true(str_eq(buf_view(&out), STR("A=1\nB=2\n")));
	buf_release(&out);
}
