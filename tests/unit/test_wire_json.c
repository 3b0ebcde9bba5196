#include "profile/wire_json.h"

#include "profile/wire.h"
#include "test.h"

static const struct wire_message message;
static const struct wire_field fields[] = {
	WIRE_FIELD("a_number", 1, WIRE_KIND_INT),
	WIRE_FIELD("flag", 2, WIRE_KIND_BOOL),
	WIRE_FIELD("time_unix_nano", 3, WIRE_KIND_FIXED64),
	WIRE_FIELD("real", 4, WIRE_KIND_DOUBLE),
	WIRE_FIELD("text", 5, WIRE_KIND_STRING),
	WIRE_FIELD("bytes", 6, WIRE_KIND_BYTES),
	WIRE_FIELD("trace_id", 7, WIRE_KIND_HEX),
	WIRE_FIELD("inner", 8, WIRE_KIND_MESSAGE, .message = &message),
	{ 0 },
};
static const struct wire_message message = { .name = "Message", .fields = fields };

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
		     "Message as JSON: inner: flag: unexpected character at byte 18");
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

TEST(answers_become_json)
{
	static const struct wire_field name[] = { WIRE_FIELD("name", 1, WIRE_KIND_STRING), { 0 } };
	static const struct wire_message leaf = { .fields = name };
	static const struct wire_field answer[] = {
		WIRE_FIELD("labels_set", 1, WIRE_KIND_STRING, .is_repeated = true),
		WIRE_FIELD("tree", 2, WIRE_KIND_BYTES),
		WIRE_FIELD("values", 3, WIRE_KIND_INT, .is_repeated = true),
		WIRE_FIELD("value", 4, WIRE_KIND_DOUBLE),
		WIRE_FIELD("is_on", 5, WIRE_KIND_BOOL),
		WIRE_FIELD("leaf", 6, WIRE_KIND_MESSAGE, .message = &leaf),
		WIRE_FIELD("size", 7, WIRE_KIND_UINT),
		{ 0 },
	};
	const struct wire_message m = { .fields = answer };
	struct buf proto = { 0 }, inner = { 0 }, json = { 0 };

	assert_true(wire_to_json(&json, &m, STR("")));
	assert_true(str_eq(buf_view(&json), STR("{}")));
	/* Fields of one kind need not stand together. */
	put_bytes(&proto, 1, STR("a"));
	put_bytes(&proto, 2, STR("\x01\x02\xff\xfe"));
	put_bytes(&proto, 1, STR("b\""));
	put_varint(&inner, 1);
	put_varint(&inner, (uint64_t)-2);
	put_message(&proto, 3, &inner);
	put_number(&proto, 3, 3);
	put_double(&proto, 4, 0.25);
	put_number(&proto, 5, 1);
	put_bytes(&inner, 1, STR("x"));
	put_message(&proto, 6, &inner);
	put_number(&proto, 7, UINT64_MAX);
	json.n = 0;
	assert_true(wire_to_json(&json, &m, buf_view(&proto)));
	buf_char(&json, '\0');
	assert_string_equal(json.p, "{\"labelsSet\":[\"a\",\"b\\\"\"],\"tree\":\"AQL//g==\","
				    "\"values\":[\"1\",\"-2\",\"3\"],\"value\":0.25,\"isOn\":true,"
				    "\"leaf\":{\"name\":\"x\"},\"size\":\"18446744073709551615\"}");
	assert_false(wire_to_json(&json, &m, STR("\x0a\x05")));
	buf_release(&proto);
	buf_release(&inner);
	buf_release(&json);
}
