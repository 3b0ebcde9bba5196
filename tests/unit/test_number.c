#include "test.h"

#include <math.h>
#include <stdio.h>

#include "base/number.h"

struct int_case {
	const char *text;
	unsigned base;
	enum number_result result;
	int64_t value;
};

TEST(integers)
{
	static const struct int_case cases[] = {
		{ "0", 10, NUMBER_OK, 0 },
		{ "-12", 10, NUMBER_OK, -12 },
		{ "+5", 10, NUMBER_OK, 5 },
		{ "010", 10, NUMBER_OK, 10 },
		{ "", 10, NUMBER_SYNTAX, 0 },
		{ "-", 10, NUMBER_SYNTAX, 0 },
		{ "1_0", 10, NUMBER_SYNTAX, 0 },
		{ " 1", 10, NUMBER_SYNTAX, 0 },
		{ "9223372036854775807", 10, NUMBER_OK, INT64_MAX },
		{ "9223372036854775808", 10, NUMBER_RANGE, INT64_MAX },
		{ "-9223372036854775808", 10, NUMBER_OK, INT64_MIN },
		{ "-9223372036854775809", 10, NUMBER_RANGE, INT64_MIN },
		{ "99999999999999999999x", 10, NUMBER_RANGE, INT64_MAX },
		{ "ff", 16, NUMBER_OK, 255 },
		{ "zz", 36, NUMBER_OK, 1295 },
		{ "2", 2, NUMBER_SYNTAX, 0 },
		{ "0", 0, NUMBER_OK, 0 },
		{ "00", 0, NUMBER_OK, 0 },
		{ "017", 0, NUMBER_OK, 15 },
		{ "08", 0, NUMBER_SYNTAX, 0 },
		{ "0x7F", 0, NUMBER_OK, 127 },
		{ "-0X80", 0, NUMBER_OK, -128 },
		{ "0o17", 0, NUMBER_OK, 15 },
		{ "0b101", 0, NUMBER_OK, 5 },
		{ "0b12", 0, NUMBER_SYNTAX, 0 },
		{ "0x", 0, NUMBER_SYNTAX, 0 },
		{ "1_000", 0, NUMBER_OK, 1000 },
		{ "0x_1", 0, NUMBER_OK, 1 },
		{ "0_7", 0, NUMBER_OK, 7 },
		{ "1__0", 0, NUMBER_SYNTAX, 0 },
		{ "_1", 0, NUMBER_SYNTAX, 0 },
		{ "0_", 0, NUMBER_SYNTAX, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t value = 77;

		assert_int_equal(number_parse_int(str_of(cases[i].text), cases[i].base, &value),
				 cases[i].result);
		assert_int_equal(value, cases[i].value);
	}
}

TEST(unsigned_integers)
{
	uint64_t value;

	assert_int_equal(number_parse_uint(STR("18446744073709551615"), 10, &value), NUMBER_OK);
	assert_true(value == UINT64_MAX);
	assert_int_equal(number_parse_uint(STR("18446744073709551616"), 10, &value), NUMBER_RANGE);
	assert_true(value == UINT64_MAX);
	assert_int_equal(number_parse_uint(STR("+1"), 10, &value), NUMBER_SYNTAX);
	assert_int_equal(number_parse_uint(STR("0xffffffffffffffff"), 0, &value), NUMBER_OK);
	assert_true(value == UINT64_MAX);
}

TEST(floats)
{
	static const struct {
		const char *text;
		enum number_result result;
		double value;
	} cases[] = {
		{ "0", NUMBER_OK, 0 },
		{ "1.5", NUMBER_OK, 1.5 },
		{ "-.5e1", NUMBER_OK, -5 },
		{ "1.", NUMBER_OK, 1 },
		{ "0x1p-2", NUMBER_OK, 0.25 },
		{ "0x.8P1", NUMBER_OK, 1 },
		{ "0x1_0p0", NUMBER_OK, 16 },
		{ "1_2.5", NUMBER_OK, 12.5 },
		{ "1e1_0", NUMBER_OK, 1e10 },
		{ "INF", NUMBER_OK, INFINITY },
		{ "-Infinity", NUMBER_OK, -INFINITY },
		{ "1e999", NUMBER_RANGE, INFINITY },
		{ "-1e999", NUMBER_RANGE, -INFINITY },
		{ "1e-999", NUMBER_OK, 0 },
		{ "", NUMBER_SYNTAX, 0 },
		{ ".", NUMBER_SYNTAX, 0 },
		{ "1e", NUMBER_SYNTAX, 0 },
		{ "1_.5", NUMBER_SYNTAX, 0 },
		{ "1._5", NUMBER_SYNTAX, 0 },
		{ "0x1", NUMBER_SYNTAX, 0 },
		{ "0x.p1", NUMBER_SYNTAX, 0 },
		{ "-nan", NUMBER_SYNTAX, 0 },
		{ "infi", NUMBER_SYNTAX, 0 },
		{ "1 ", NUMBER_SYNTAX, 0 },
		{ "nan(1)", NUMBER_SYNTAX, 0 },
	};
	double value;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(number_parse_float(str_of(cases[i].text), &value),
				 cases[i].result);
		assert_true(value == cases[i].value);
	}
	assert_int_equal(number_parse_float(STR("NaN"), &value), NUMBER_OK);
	assert_true(isnan(value));
	assert_int_equal(number_parse_float(STR("1\0002"), &value), NUMBER_SYNTAX);
}

TEST(booleans)
{
	bool value;

	assert_int_equal(number_parse_bool(STR("True"), &value), NUMBER_OK);
	assert_true(value);
	assert_int_equal(number_parse_bool(STR("f"), &value), NUMBER_OK);
	assert_false(value);
	assert_int_equal(number_parse_bool(STR("tRue"), &value), NUMBER_SYNTAX);
	assert_int_equal(number_parse_bool(STR(""), &value), NUMBER_SYNTAX);
}

TEST(error_text_is_that_of_go)
{
	struct err e;

	assert_false(number_error(&e, NUMBER_SYNTAX, "Atoi", STR("1\"x")));
	assert_string_equal(e.text, "strconv.Atoi: parsing \"1\\\"x\": invalid syntax");
	number_error(&e, NUMBER_RANGE, "ParseFloat", STR("1e999"));
	assert_string_equal(e.text, "strconv.ParseFloat: parsing \"1e999\": value out of range");
}

TEST(quoting)
{
	struct buf b = { 0 };

	quote_go(&b,
		 STR("a\0\a\b\f\n\r\t\v\\\"'`\x7f\xff\u00e9\u200b\u00a0\u2028\U0001F600\U000E0001"
		     "\ufffd\ufeff"));
	buf_char(&b, '\0');
	assert_string_equal(b.p,
			    "\"a\\x00\\a\\b\\f\\n\\r\\t\\v\\\\\\\"'`\\x7f\\xff\u00e9\\u200b\\u00a0"
			    "\\u2028\U0001F600\\U000e0001\ufffd\\ufeff\"");
	buf_release(&b);
}
