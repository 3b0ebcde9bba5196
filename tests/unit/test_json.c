#include "test.h"

#include "base/json.h"

static struct json parsed(struct arena *a, const char *text)
{
	struct json j;
	struct err e;

	if (!json_parse(a, str_of(text), &j, &e))
		fail_msg("%s: %s", text, e.text);
	return j;
}

static void assert_wrong(const char *text, const char *want)
{
	struct arena a = { 0 };
	struct json j;
	struct err e;

	assert_false(json_parse(&a, str_of(text), &j, &e));
	assert_string_equal(e.text, want);
	arena_release(&a);
}

TEST(all_kinds_of_values)
{
	struct arena a = { 0 };
	struct json j =
		parsed(&a, " {\"a\": [1, -2.5e3, true, false, null], \"b\": {}, \"a2\": \"x\"} ");
	const struct json *list = json_member(&j, "a");

	assert_int_equal(j.n, 3);
	assert_int_equal(list->n, 5);
	assert_true(str_eq(list->at[1].text, STR("-2.5e3")));
	assert_true(list->at[2].is_true);
	assert_int_equal(list->at[3].type, JSON_BOOL);
	assert_int_equal(list->at[4].type, JSON_NULL);
	assert_int_equal(json_member(&j, "b")->n, 0);
	assert_true(str_eq(json_member(&j, "a2")->text, STR("x")));
	assert_null(json_member(&j, "c"));
	assert_null(json_member(list, "a"));
	arena_release(&a);
}

TEST(escapes_of_strings)
{
	struct arena a = { 0 };
	struct json j = parsed(&a, "\"\\\"\\\\\\/\\n\\u0041\\u00e4\\ud83d\\ude00\\ud800x\\udc00\"");

	assert_true(
		str_eq(j.text, STR("\"\\/\nA\xc3\xa4\xf0\x9f\x98\x80\xef\xbf\xbdx\xef\xbf\xbd")));
	arena_release(&a);
}

TEST(wrong_text_is_told_with_its_place)
{
	assert_wrong("", "unexpected character at byte 0");
	assert_wrong("{\"a\" 1}", "a : is missing at byte 5");
	assert_wrong("[1 2]", "a , is missing at byte 3");
	assert_wrong("[1,]", "unexpected character at byte 3");
	assert_wrong("{} x", "there is more at byte 3");
	assert_wrong("\"abc", "a string does not end at byte 4");
	assert_wrong("\"\\q\"", "unknown escape at byte 3");
	assert_wrong("\"\\u12\"", "not four hexadecimal digits at byte 5");
	assert_wrong("nul", "unexpected character at byte 0");
}

TEST(depth_is_limited)
{
	char deep[402] = { 0 };
	struct arena a = { 0 };
	struct json j;
	struct err e;

	memset(deep, '[', 200);
	memset(deep + 200, ']', 200);
	assert_false(json_parse(&a, str_of(deep), &j, &e));
	assert_true(str_has_prefix(str_of(e.text), STR("nested too deeply")));
	arena_release(&a);
}
