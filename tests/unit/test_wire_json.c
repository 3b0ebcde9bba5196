#include "profile/wire_json.h"

#include "profile/wire.h"
#include "test.h"

static const struct wire_message message;
static const struct wire_field fields[] = {
	{ "a_number", 1, WIRE_KIND_INT, NULL },
	{ "flag", 2, WIRE_KIND_BOOL, NULL },
	{ "time_unix_nano", 3, WIRE_KIND_FIXED64, NULL },
	{ "real", 4, WIRE_KIND_DOUBLE, NULL },
	{ "text", 5, WIRE_KIND_STRING, NULL },
	{ "bytes", 6, WIRE_KIND_BYTES, NULL },
	{ "trace_id", 7, WIRE_KIND_HEX, NULL },
	{ "inner", 8, WIRE_KIND_MESSAGE, &message },
	{ 0 },
};
static const struct wire_message message = { "Message", fields };

static void assert_wire(const char *json, struct str want)
{
	struct buf out = { 0 };
	struct err e;

	if (!wire_from_json(&out, &message, str_of(json), &e))
		fail_msg("%s: %s", json, e.text);
	if (!str_eq(buf_view(&out), want))
		fail_msg("%s", json);
	buf_release(&out);
}

static void assert_wrong(const char *json, const char *want)
{
	struct buf out = { 0 };
	struct err e;

	assert_false(wire_from_json(&out, &message, str_of(json), &e));
	assert_string_equal(e.text, want);
	buf_release(&out);
}

TEST(all_kinds)
{
	assert_wire("{}", STR(""));
	assert_wire("{\"aNumber\":\"300\",\"a_number\":-1}",
		    STR("\x08\xac\x02\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
	assert_wire("{\"anumber\":1e3}", STR("\x08\xe8\x07"));
	assert_wire("{\"flag\":true}", STR("\x10\x01"));
	assert_wire("{\"timeUnixNano\":\"18446744073709551615\"}",
		    STR("\x19\xff\xff\xff\xff\xff\xff\xff\xff"));
	assert_wire("{\"real\":1}", STR("\x21\0\0\0\0\0\0\xf0\x3f"));
	assert_wire("{\"text\":\"\\u0041b\"}", STR("\x2a\x02"
						   "Ab"));
	assert_wire("{\"bytes\":\"TWE=\"}", STR("\x32\x02"
						"Ma"));
	assert_wire("{\"traceId\":\"0aF7\"}", STR("\x3a\x02\x0a\xf7"));
	assert_wire("{\"inner\":{\"aNumber\":1}}", STR("\x42\x02\x08\x01"));
}

TEST(lists_of_numbers_are_packed)
{
	assert_wire("{\"aNumber\":[1,\"2\",3]}", STR("\x0a\x03\x01\x02\x03"));
	assert_wire("{\"aNumber\":[]}", STR(""));
	assert_wire("{\"inner\":[{},{\"flag\":false}]}", STR("\x42\0\x42\x02\x10\0"));
	assert_wire("{\"text\":[\"a\",\"\"]}", STR("\x2a\x01"
						   "a\x2a\0"));
}

TEST(what_is_not_known_is_passed_over)
{
	assert_wire("{\"other\":{\"deep\":[1,{\"x\":null}]},\"flag\":null,\"text\":\"a\"}",
		    STR("\x2a\x01"
			"a"));
}

TEST(errors_name_the_field_and_the_place)
{
	assert_wrong("[]", "Message as JSON: an object is missing at byte 0");
	assert_wrong("{\"aNumber\":1.5}",
		     "Message as JSON: a_number: no whole number of 64 bits at byte 14");
	assert_wrong("{\"aNumber\":\"x\"}",
		     "Message as JSON: a_number: no whole number of 64 bits at byte 14");
	assert_wrong("{\"inner\":[{\"flag\":1}]}",
		     "Message as JSON: unexpected character at byte 18");
	assert_wrong("{\"bytes\":\"*\"}", "Message as JSON: bytes: no base64 at byte 12");
	assert_wrong("{\"traceId\":\"0\"}",
		     "Message as JSON: trace_id: no hexadecimal text at byte 14");
	assert_wrong("{\"flag\":true} x", "Message as JSON: there is more at byte 14");
	assert_wrong("{\"flag\":true", "Message as JSON: a , is missing at byte 12");
}

TEST(depth_is_limited)
{
	struct buf json = { 0 }, out = { 0 };
	struct err e;

	for (int i = 0; i < 1000; i++)
		buf_puts(&json, "{\"inner\":");
	assert_false(wire_from_json(&out, &message, buf_view(&json), &e));
	assert_non_null(strstr(e.text, "nested too deeply"));
	buf_release(&json);
	buf_release(&out);
}
