#include "test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "web/settings.h"

static const char *printed(struct buf *out, const struct settings *s)
{
	out->n = 0;
	settings_print(out, s);
	buf_char(out, '\0');
	return out->p;
}

TEST(zero_values_are_not_written)
{
	struct settings s = { 0 };
	struct buf out = { 0 };
	struct analyze_options o = analyze_defaults;

	assert_string_equal(printed(&out, &s), "{\n  \"configs\": []\n}");
	o.focus = "a<b\"";
	o.output = "not saved";
	o.granularity = GRANULARITY_LINES;
	settings_put(&s, STR("one"), &o);
	assert_string_equal(
		printed(&out, &s),
		"{\n  \"configs\": [\n    {\n      \"name\": \"one\",\n"
		"      \"unit\": \"minimum\",\n      \"sort\": \"flat\",\n"
		"      \"nodecount\": -1,\n      \"nodefraction\": 0.005,\n"
		"      \"edgefraction\": 0.001,\n      \"trim\": true,\n"
		"      \"focus\": \"a\\u003cb\\\"\",\n      \"granularity\": \"lines\"\n"
		"    }\n  ]\n}");
	settings_release(&s);
	buf_release(&out);
}

TEST(what_is_written_is_read)
{
	struct settings s = { 0 }, again = { 0 };
	struct buf first = { 0 }, second = { 0 };
	struct analyze_options o = analyze_defaults;
	struct err e;

	o.call_tree = true;
	o.trim = false;
	o.nodecount = 17;
	o.hide = "x";
	settings_put(&s, STR("b"), &o);
	o.sort = SORT_CUM;
	settings_put(&s, STR("a"), &o);
	settings_put(&s, STR("b"), &analyze_defaults);
	printed(&first, &s);
	assert_true(settings_parse(&again, str_of(first.p), &e));
	assert_string_equal(printed(&second, &again), first.p);
	assert_int_equal(again.all.n, 2);
	assert_int_equal(again.all.at[1].options.sort, SORT_CUM);
	assert_true(settings_remove(&again, STR("b")));
	assert_false(settings_remove(&again, STR("b")));
	assert_int_equal(again.all.n, 1);
	settings_release(&s);
	settings_release(&again);
	buf_release(&first);
	buf_release(&second);
}

static void assert_wrong(const char *text, const char *want)
{
	struct settings s = { 0 };
	struct err e;

	assert_false(settings_parse(&s, str_of(text), &e));
	assert_string_equal(e.text, want);
	settings_release(&s);
}

TEST(wrong_files)
{
	assert_wrong("[]", "could not parse settings: the value of the file is of the wrong type");
	assert_wrong("{\"configs\": 1}",
		     "could not parse settings: the value of configs is of the wrong type");
	assert_wrong("{\"configs\": [{\"trim\": \"yes\"}]}",
		     "could not parse settings: the value of trim is of the wrong type");
	assert_wrong("{\"configs\": [{\"sort\": \"up\"}]}",
		     "could not parse settings: sort: invalid \"sort\" value \"up\"");
	assert_wrong("{", "could not parse settings: a string is missing at byte 1");
}

TEST(files_are_made_with_their_directories)
{
	char dir[] = "/tmp/kiln-settings-XXXXXX", path[100];
	struct settings s = { 0 }, again;
	struct err e;
	struct stat st;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a/b/settings.json", dir);
	assert_true(settings_read(&again, path, &e));
	assert_int_equal(again.all.n, 0);
	settings_put(&s, STR("x"), &analyze_defaults);
	assert_true(settings_write(&s, path, &e));
	assert_true(settings_write(&s, path, &e));
	assert_true(settings_read(&again, path, &e));
	assert_int_equal(again.all.n, 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	settings_release(&s);
	settings_release(&again);
	unlink(path);
	snprintf(path, sizeof(path), "%s/a/b", dir);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/a", dir);
	rmdir(path);
	rmdir(dir);
	assert_false(settings_write(&s, "/proc/nosuch/settings.json", &e));
	assert_true(str_has_prefix(str_of(e.text), STR("failed to create settings directory: ")));
}
