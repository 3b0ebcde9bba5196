/* Where targets are known from: the format of file_sd, and files that change. */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/yaml.h"
#include "collect/targets.h"

/* "host:1{a=b,c=d} host:2{}", or the error. */
static const char *read_text(const char *text)
{
	static char out[2000];
	struct arena a = { 0 };
	struct buf b = { 0 };
	struct target_spec *at;
	struct tree tree;
	struct err e;
	size_t n;

	if (!tree_read(&a, str_of(text), &tree, &e) ||
	    !targets_read(&a, &tree, false, &at, &n, &e)) {
		snprintf(out, sizeof(out), "%s", e.text);
		arena_release(&a);
		return out;
	}
	for (size_t i = 0; i < n; i++) {
		buf_printf(&b, "%s%.*s{", i ? " " : "", STR_ARG(at[i].address));
		for (size_t k = 0; k < at[i].nlabels; k++)
			buf_printf(&b, "%s%.*s=%.*s", k ? "," : "", STR_ARG(at[i].labels[k].name),
				   STR_ARG(at[i].labels[k].value));
		buf_char(&b, '}');
	}
	snprintf(out, sizeof(out), "%.*s", STR_ARG(buf_view(&b)));
	buf_release(&b);
	arena_release(&a);
	return out;
}

TEST(yaml_and_json_are_read_alike)
{
	assert_string_equal(read_text("[{\"targets\": [\"a:1\", \"b:2\"], \"labels\": {\"x\": "
				      "\"1\\u00e4\", \"y\": \"\"}}]"),
			    "a:1{x=1\xc3\xa4} b:2{x=1\xc3\xa4}");
	assert_string_equal(read_text("- targets: [a:1, 'b:2']\n  labels: {x: 1}\n- targets: "
				      "[\"[::1]:3\"]\n"),
			    "a:1{x=1} b:2{x=1} [::1]:3{}");
	assert_string_equal(read_text("[\n\t{\n\t\t\"targets\": [ \"a:1\" ]\n\t}\n]"), "a:1{}");
	assert_string_equal(read_text("- labels: {__meta_x: y, z: ~}\n  targets: [a:1]"), "a:1{}");
	assert_string_equal(read_text(""), "");
	assert_string_equal(read_text("[]"), "");
	assert_string_equal(read_text("- targets: []"), "");
}

TEST(mistakes_are_named_with_their_lines)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "targets: [a:1]", "line 1: targets are a list" },
		{ "- a:1", "line 1: a group is written as" },
		{ "- labels: {}", "line 1: the group has no targets" },
		{ "- targets: a:1", "line 1: targets are a list" },
		{ "- targets: [a:1]\n  label: {}", "line 2: a group has targets and labels, no" },
		{ "- targets:\n  - a:1\n  - {}", "line 3: \"\" is no target" },
		{ "- targets: [a]", "line 1: \"a\" is no target: write host:port" },
		{ "- targets: ['a:0']", "is no target" },
		{ "- targets: ['a:65536']", "is no target" },
		{ "- targets: ['a:1x']", "is no target" },
		{ "- targets: [':1']", "is no target" },
		{ "- targets: ['http://a:1']", "is no target" },
		{ "- targets: ['a/b:1']", "is no target" },
		{ "- targets: ['u@a:1']", "is no target" },
		{ "- targets: ['a#b:1']", "is no target" },
		{ "- targets: ['[]:1']", "is no target" },
		{ "- targets: ['[::1:1']", "is no target" },
		{ "- targets: ['a\n b:1']", "is no target" },
		{ "- targets: [a:1]\n  labels: [x]", "line 2: labels are written as" },
		{ "- targets: [a:1]\n  labels: {'x y': z}", "line 2: the name of a label" },
		{ "- targets: [a:1]\n  labels: {x: [z]}", "line 2: the value of the label x" },
		{ "- targets: &x [a:1]\n- targets: *x", "line 2: aliases" },
		{ "- targets: [a:1]\n  targets: [a:2]", "line 2: targets is there twice" },
		{ "[[[[[[[[[[[[[[[[", "line 1: nested too deep" },
		{ "[]\n---\n[]", "line 2: there is a second document" },
		{ "- targets: [a:1", "did not find expected" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *got = read_text(cases[i].text);

		if (!strstr(got, cases[i].want))
			fail_msg("%s: got %s, want %s", cases[i].text, got, cases[i].want);
	}
}

TEST(more_targets_than_there_may_be_are_refused)
{
	struct buf text = { 0 };

	buf_puts(&text, "- targets: [");
	for (int i = 0; i <= MAX_TARGETS; i++)
		buf_printf(&text, "h%d:1,", i);
	buf_puts(&text, "]");
	buf_char(&text, '\0');
	assert_non_null(strstr(read_text(text.p), "more than 20000 targets"));
	buf_release(&text);
}

/* A group's labels are each target's: a small file could take a great deal of memory. */
TEST(labels_have_so_many_bytes_and_no_more)
{
	struct buf text = { 0 };

	buf_puts(&text, "- targets: [a:1]\n  labels: {");
	for (int i = 0; i < 5; i++)
		buf_printf(&text, "l%d: '%0900d', ", i, i);
	buf_printf(&text, "}%c", '\0');
	assert_non_null(strstr(read_text(text.p), "line 2: labels have more than 4096 bytes"));
	text.n = 0;
	buf_printf(&text, "- labels: {a: '%0900d', b: '%0900d'}\n  targets: [", 1, 2);
	for (int i = 0; i < MAX_TARGETS; i++)
		buf_printf(&text, "h%d:1,", i);
	buf_printf(&text, "]%c", '\0');
	assert_non_null(strstr(read_text(text.p), "targets have more than 32 MB of labels"));
	buf_release(&text);
}

TEST(copies_share_labels_as_their_groups_do)
{
	struct arena a = { 0 };
	struct target_label labels[] = { { STR("x"), STR("1") } };
	struct target_spec from[] = { { .address = STR("a:1"), .labels = labels, .nlabels = 1 },
				      { .address = STR("b:1"), .labels = labels, .nlabels = 1 },
				      { .address = STR("c:1") } },
			   to[3];

	targets_copy(&a, to, from, 3);
	assert_ptr_equal(to[0].labels, to[1].labels);
	assert_ptr_not_equal(to[0].labels, labels);
	assert_true(str_eq(to[1].labels[0].value, STR("1")) && str_eq(to[2].address, STR("c:1")));
	assert_int_equal(to[2].nlabels, 0);
	arena_release(&a);
}

/* ---- files */

static char folder[60];

static void write_file(const char *name, const char *text)
{
	char path[200], fresh[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	snprintf(fresh, sizeof(fresh), "%s/.fresh", folder);
	f = fopen(fresh, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(rename(fresh, path), 0);
}

static void remove_file(const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(unlink(path), 0);
}

/* How many targets there are now; -1: nothing has changed. */
static int look(struct target_source *s, char *problem)
{
	struct target_set set = { 0 };
	int n = -1;

	*problem = '\0';
	if (s->look(s, &set)) {
		n = (int)set.n;
		if (set.problem.kind != ERR_NONE)
			snprintf(problem, 300, "%.299s", set.problem.text);
	}
	target_set_release(&set);
	return n;
}

static const char *make_folder(const char *name)
{
	static char pattern[100];

	snprintf(folder, sizeof(folder), "/tmp/test_targets.%d", (int)getpid());
	assert_int_equal(mkdir(folder, 0700), 0);
	snprintf(pattern, sizeof(pattern), "%s/%s", folder, name);
	return pattern;
}

/* With no descriptor left. */
static int look_without_files(struct target_source *s, char *problem)
{
	struct rlimit limit, none;
	int n;

	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	n = look(s, problem);
	setrlimit(RLIMIT_NOFILE, &limit);
	return n;
}

TEST(a_folder_that_cannot_be_read_keeps_its_files)
{
	char problem[300];
	const char *pattern = make_folder("*.yaml");
	struct target_source *s = source_files_new(&pattern, 1);

	write_file("a.yaml", "- targets: [a:1, a:2]");
	assert_int_equal(look(s, problem), 2);
	assert_int_equal(look_without_files(s, problem), 2);
	assert_non_null(strstr(problem, "too many open files"));
	assert_int_equal(look_without_files(s, problem), -1); /* it is known */
	assert_int_equal(look(s, problem), 2);
	assert_string_equal(problem, "");
	remove_file("a.yaml");
	assert_int_equal(look(s, problem), 0);
	s->free(s);
	rmdir(folder);
}

TEST(a_file_that_cannot_be_read_is_tried_again)
{
	char problem[300];
	const char *pattern = make_folder("a.yaml");
	struct target_source *s = source_files_new(&pattern, 1);

	assert_int_equal(look(s, problem), 0); /* it is not there yet */
	assert_string_equal(problem, "");
	write_file("a.yaml", "- targets: [a:1, a:2]");
	assert_int_equal(look_without_files(s, problem), 0);
	assert_non_null(strstr(problem, "too many open files"));
	assert_int_equal(look_without_files(s, problem), -1);
	assert_int_equal(look(s, problem), 2);
	assert_string_equal(problem, "");
	assert_int_equal(look(s, problem), -1);
	remove_file("a.yaml");
	assert_int_equal(look(s, problem), 0);
	s->free(s);
	rmdir(folder);
}

TEST(what_is_written_in_place_is_seen_though_its_time_is_set_back)
{
	char problem[300];
	const char *pattern = make_folder("a.yaml");
	struct target_source *s = source_files_new(&pattern, 1);
	struct stat st;
	FILE *f;

	write_file("a.yaml", "- targets: [a:1, a:2]");
	assert_int_equal(look(s, problem), 2);
	assert_int_equal(stat(pattern, &st), 0);
	usleep(20000); /* times of files are the kernel's ticks */
	f = fopen(pattern, "r+");
	assert_non_null(f);
	fputs("- targets: [a:1]     ", f);
	fclose(f);
	utimensat(AT_FDCWD, pattern, (struct timespec[]){ st.st_atim, st.st_mtim }, 0);
	assert_int_equal(look(s, problem), 1);
	remove_file("a.yaml");
	s->free(s);
	rmdir(folder);
}

TEST(an_empty_file_keeps_what_it_had)
{
	char problem[300];
	const char *pattern = make_folder("a.yaml");
	struct target_source *s = source_files_new(&pattern, 1);

	write_file("a.yaml", "- targets: [a:1, a:2]");
	assert_int_equal(look(s, problem), 2);
	write_file("a.yaml", "");
	assert_int_equal(look(s, problem), 2);
	assert_non_null(strstr(problem, "a.yaml: line 1: it is empty; write []"));
	write_file("a.yaml", "# later\n");
	assert_int_equal(look(s, problem), 2);
	write_file("a.yaml", "[]");
	assert_int_equal(look(s, problem), 0);
	assert_string_equal(problem, "");
	remove_file("a.yaml");
	s->free(s);
	rmdir(folder);
}

TEST(a_source_goes_on_where_another_ended)
{
	char problem[300];
	const char *pattern = make_folder("*.yaml");
	struct target_source *old = source_files_new(&pattern, 1), *s;

	write_file("a.yaml", "- targets: [a:1, a:2]");
	write_file("b.yaml", "- targets: [b:1]");
	assert_int_equal(look(old, problem), 3);
	write_file("a.yaml", "- targets: [");
	s = source_files_new(&pattern, 1);
	s->inherit(s, old);
	old->free(old);
	assert_int_equal(look(s, problem), 3);
	assert_non_null(strstr(problem, "a.yaml: line "));
	remove_file("b.yaml");
	assert_int_equal(look(s, problem), 2);
	remove_file("a.yaml");
	s->free(s);
	rmdir(folder);
}

TEST(files_come_change_break_and_go)
{
	char problem[300];
	const char *pattern = make_folder("*.yaml"), *patterns[] = { pattern, pattern };
	struct target_source *s;

	s = source_files_new(patterns, 2);
	assert_int_equal(look(s, problem), 0);
	assert_int_equal(look(s, problem), -1);
	write_file("a.yaml", "- targets: [a:1, a:2]");
	assert_int_equal(look(s, problem), 2); /* found by both, and read once */
	assert_int_equal(look(s, problem), -1);
	write_file("b.yaml", "- targets: [b:1]");
	assert_int_equal(look(s, problem), 3);
	write_file("a.yaml", "- targets: [a:1, a:2, a:3, a:"); /* being written */
	assert_int_equal(look(s, problem), 3);
	assert_non_null(strstr(problem, "/a.yaml: line "));
	write_file("a.yaml", "- targets: [a:1, a:2, a:3]");
	assert_int_equal(look(s, problem), 4);
	assert_string_equal(problem, "");
	remove_file("b.yaml");
	assert_int_equal(look(s, problem), 3);
	remove_file("a.yaml");
	assert_int_equal(look(s, problem), 0);
	s->free(s);
	rmdir(folder);
}

TEST(those_of_the_configuration_are_told_once)
{
	struct target_spec spec = { .address = STR("a:1") };
	struct target_source *s = source_fixed_new(&spec, 1);
	char problem[300];

	assert_int_equal(look(s, problem), 1);
	assert_int_equal(look(s, problem), -1);
	s->free(s);
}
