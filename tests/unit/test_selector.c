#include "test.h"

#include <stdio.h>

#include "base/when.h"
#include "server/selector.h"

/* What a selector reads as, printed; or the error. */
static const char *read_as(const char *text)
{
	static char out[1200];
	struct arena a = { 0 };
	struct selector s = { 0 };
	struct buf b = { 0 };
	struct err e = { 0 };

	if (selector_parse(&s, &a, str_of(text), &e))
		selector_print(&b, &s);
	else
		buf_puts(&b, e.text);
	snprintf(out, sizeof(out), "%.*s", STR_ARG(buf_view(&b)));
	assert_int_equal(e.kind, out[0] == '{' ? ERR_NONE : ERR_USAGE);
	buf_release(&b);
	selector_release(&s);
	arena_release(&a);
	return out;
}

#define READS(text, want) assert_string_equal(read_as(text), want)
#define FAILS(text, part)                                                            \
	do {                                                                         \
		const char *got = read_as(text);                                     \
		if (!strstr(got, part))                                              \
			fail_msg("%s: \"%s\" does not say \"%s\"", text, got, part); \
	} while (0)

TEST(braces_quotes_and_operators)
{
	READS("{service=\"a\", version=~\"1\\\\..*\", type!=\"heap\"}",
	      "{service=\"a\", version=~\"1\\\\..*\", type!=\"heap\"}");
	READS("{ host !~ `a\\d+` ,}", "{host!~\"a\\\\d+\"}");
	READS("{\"odd name, really\"=\"\"}", "{\"odd name, really\"=\"\"}");
	READS("{a=\"\\x41\\u00e9\\n\\t\\r\\\"\"}", "{a=\"A\xc3\xa9\\x0a\\x09\\x0d\\\"\"}");
}

TEST(escapes_of_promql)
{
	READS("{a='b\\'\"', c=\"it's\"}", "{a=\"b'\\\"\", c=\"it's\"}");
	READS("{a=\"\\a\\b\\f\\v\\101\\U0001f525\"}",
	      "{a=\"\\x07\\x08\\x0c\\x0bA\xf0\x9f\x94\xa5\"}");
	FAILS("{a=\"\\18\"}", "octal digits");
	FAILS("{a=\"\\U00110000\"}", "is no character");
	FAILS("{a='b}", "the ' that ends the text is missing");
}

TEST(everything)
{
	READS("", "{}");
	READS(" {  } ", "{}");
}

TEST(short_form)
{
	READS("service=a,version=~1.*", "{service=\"a\", version=~\"1.*\"}");
	READS(" service = my svc , k!= ", "{service=\"my svc\", k!=\"\"}");
	READS("{service=a,v=1}", "{service=\"a\", v=\"1\"}");
	READS("app.kubernetes.io/name=x=y", "{app.kubernetes.io/name=\"x=y\"}");
	READS("v=~1{2}", "{v=~\"1{2}\"}");
	READS("a==b", "{a=\"=b\"}");
}

TEST(errors_say_where)
{
	FAILS("{service<\"a\"}", "selector, column 9, after \"{service\": one of = != =~ !~ must "
				 "follow the name service, not '<'");
	FAILS("{service=\"a\"",
	      "column 13, after \"{service=\"a\"\": a comma or } must follow, not the end");
	FAILS("{service=\"a", "the \" that ends the text is missing");
	FAILS("{a=\"1\\.2\"}",
	      "column 7, after \"{a=\"1\\\": a backslash before '.' means nothing; "
	      "write \\\\ for one");
	FAILS("{a=\"\\x4\"}", "1 hexadecimal digits are missing");
	FAILS("{a=\"\\ud800\"}", "half of a character");
	FAILS("{a=\"\\", "a backslash before the end");
	FAILS("{a=~\"(\"}",
	      "column 5, after \"{a=~\": error parsing regexp: missing closing ): `(`");
	FAILS("a=~)|(", "unexpected ): `)|(`");
	FAILS("{=\"a\"}", "column 2, after \"{\": a name is missing before '='");
	FAILS("=a", "column 1: a name is missing before '='");
	FAILS("a=1,,b=2", "column 5, after \"a=1,\": a name is missing before ','");
	FAILS("{a=\"1\"} x", "nothing may follow the }, but there is 'x'");
	FAILS("service", "column 8, after \"service\": one of = != =~ !~ must follow the name");
	FAILS("{a=\"1\" b=\"2\"}", "a comma or } must follow, not 'b'");
	FAILS("a_name_of_more_than_thirty_letters", "after \"...me_of_more_than_thirty_letters\":");
	FAILS("a\x01", "must follow the name");
}

static bool matches(const char *text, const char *value)
{
	struct arena a = { 0 };
	struct selector s = { 0 };
	struct err e;
	bool is_match;

	assert_true(selector_parse(&s, &a, str_of(text), &e));
	assert_int_equal(s.matchers.n, 1);
	is_match = regex_match(s.matchers.at[0].regex, str_of(value));
	selector_release(&s);
	arena_release(&a);
	return is_match;
}

TEST(all_of_a_value_must_match)
{
	assert_true(matches("v=~1.*", "1.0"));
	assert_true(matches("v=~a|ab", "ab"));
	assert_false(matches("v=~a|ab", "abc"));
	assert_false(matches("v=~1", "1\n"));
	assert_true(matches("v=~1.*", "1\n2"));
	assert_false(matches("v=~(?m)1$", "1\n2"));
	assert_true(matches("v=~", ""));
	assert_false(matches("v=~", "x"));
}

TEST(number_and_size_are_limited)
{
	struct buf b = { 0 };

	for (int i = 0; i <= SELECTOR_MAX_MATCHERS; i++)
		buf_puts(&b, "a=1,");
	buf_char(&b, '\0');
	FAILS(b.p, "more than 64 conditions");
	b.n--;
	buf_fill(&b, 'x', SELECTOR_MAX_BYTES);
	buf_char(&b, '\0');
	FAILS(b.p, "at most 16384");
	buf_release(&b);
}

TEST(conditions_add_up)
{
	struct arena a = { 0 };
	struct selector s = { 0 };
	struct buf b = { 0 };
	struct err e;

	selector_add_equal(&s, STR("service"), STR("x"));
	assert_true(selector_parse(&s, &a, STR("v=1"), &e));
	selector_print(&b, &s);
	assert_true(str_eq(buf_view(&b), STR("{service=\"x\", v=\"1\"}")));
	buf_release(&b);
	selector_release(&s);
	arena_release(&a);
}

/* ---- times */

#define SECOND INT64_C(1000000000)

static int64_t at(const char *text)
{
	struct err e;
	int64_t ns;

	return time_parse(str_of(text), 1000 * SECOND, &ns, &e) ? ns : -1;
}

TEST(times)
{
	assert_int_equal(at("1970-01-01T00:00:00Z"), 0);
	assert_int_equal(at("2026-11-16T14:00:00Z"), 1794837600 * SECOND);
	assert_int_equal(at("2026-11-16T14:00:00"), 1794837600 * SECOND);
	assert_int_equal(at("2026-11-16 14:00:00"), 1794837600 * SECOND);
	assert_int_equal(at("2026-11-16T15:30:00.25+01:30"), 1794837600 * SECOND + SECOND / 4);
	assert_int_equal(at("2026-11-16T13:00:00-01:00"), 1794837600 * SECOND);
	assert_int_equal(at("2026-11-16"), 1794787200 * SECOND);
	assert_int_equal(at("1794837600"), 1794837600 * SECOND);
	assert_int_equal(at("1794837600.5"), 1794837600 * SECOND + SECOND / 2);
	assert_int_equal(at("0"), 0);
	assert_int_equal(at("now"), 1000 * SECOND);
	assert_int_equal(at("now-15m"), 100 * SECOND);
	assert_int_equal(at("now+1s500ms"), 1001 * SECOND + SECOND / 2);
	for (const char **bad =
		     (const char *[]){ "", "x", "now-", "now-1h", "now*2h", "1794837600000",
				       "2026-13-01", "2026-02-30", "2026-11-16T25:00:00Z", "-1",
				       "2026-11-16T", "2026-11-16T14:00", "2026-11-16T14:00:00+1",
				       "2026-11-16T14:00:00ZZ", "2262-12-31",
				       "1970-01-01T00:00:00+01:00", "99999999999999999999",
				       "now+9999w99999w", NULL };
	     *bad; bad++)
		if (at(*bad) >= 0)
			fail_msg("%s was taken for a time", *bad);
}

static void prints(int64_t ns, const char *want)
{
	struct buf b = { 0 };

	time_print(&b, ns);
	buf_char(&b, '\0');
	assert_string_equal(b.p, want);
	buf_release(&b);
}

TEST(times_are_printed_with_the_digits_they_need)
{
	prints(1794837600 * SECOND, "2026-11-16T14:00:00Z");
	prints(1794837600 * SECOND + SECOND / 4, "2026-11-16T14:00:00.25Z");
	prints(1, "1970-01-01T00:00:00.000000001Z");
	prints(-1, "1969-12-31T23:59:59.999999999Z");
	prints(INT64_MAX, "2262-04-11T23:47:16.854775807Z");
}

TEST(large_numbers_may_be_milliseconds)
{
	struct err e;
	int64_t ns;

	assert_false(time_parse(STR("1794837600000"), 0, &ns, &e));
	assert_non_null(strstr(e.text, "milliseconds?"));
}

TEST(times_at_the_ends_of_what_there_is)
{
	prints(INT64_MIN, "1677-09-21T00:12:43.145224192Z");
	prints(INT64_MAX, "2262-04-11T23:47:16.854775807Z");
}
