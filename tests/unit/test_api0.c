/* Parameters of profefe's API. */
#include "test.h"

#include "server/api0.h"

#define SECOND INT64_C(1000000000)

TEST(times_are_read)
{
	int64_t ns;

	assert_true(api0_parse_time(STR("1970-01-01T00:00:01"), &ns));
	assert_int_equal(ns, SECOND);
	assert_true(api0_parse_time(STR("2019-05-30T21:10:05"), &ns));
	assert_int_equal(ns, INT64_C(1559250605) * SECOND);
	assert_true(api0_parse_time(STR("2020-02-29T23:59:59"), &ns));
	assert_true(api0_parse_time(STR("9999-12-31T23:59:59"), &ns));
	assert_int_equal(ns, INT64_MAX);
	assert_true(api0_parse_time(STR("0100-01-01T00:00:00"), &ns));
	assert_int_equal(ns, INT64_MIN);
}

TEST(other_times_are_refused)
{
	static const char *const wrong[] = {
		"",
		"2019",
		"2019-05-30",
		"2019-05-30 21:10:05",
		"2019-05-30T21:10:05Z",
		"2019-05-30T21:10:05.5",
		"2019-05-30T21:10:05+01:00",
		"2019-05-30T21:10",
		"2019-5-30T21:10:05",
		"2019-02-29T00:00:00",
		"2019-13-01T00:00:00",
		"2019-00-01T00:00:00",
		"2019-01-00T00:00:00",
		"2019-01-01T24:00:00",
		"2019-01-01T00:60:00",
		"2019-01-01T00:00:60",
		"-019-01-01T00:00:00",
		"2019-05-30T21:10:05 ",
		"1559250605",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		int64_t ns;

		assert_false(api0_parse_time(str_of(wrong[i]), &ns));
	}
}

/* The labels as "key=value;key=value;", or the error. */
static void assert_labels(const char *text, const char *want)
{
	struct arena a = { 0 };
	struct buf got = { 0 };
	struct store_label *labels;
	struct err e;
	size_t n;

	if (api0_parse_labels(&a, str_of(text), &labels, &n, &e))
		for (size_t i = 0; i < n; i++)
			buf_printf(&got, "%.*s=%.*s;", STR_ARG(labels[i].key),
				   STR_ARG(labels[i].value));
	else
		buf_puts(&got, e.text);
	buf_char(&got, '\0');
	assert_string_equal(got.p, want);
	buf_release(&got);
	arena_release(&a);
}

TEST(labels_are_read_as_profefe_does)
{
	assert_labels("", "");
	assert_labels("k=v", "k=v;");
	assert_labels(",k=v,k2=v2,", "k=v;k2=v2;");
	assert_labels(" k = v , a = b ", "k=v;a=b;");
	assert_labels("k", "k=;");
	assert_labels("k=", "k=;");
	assert_labels("=v,,k=1", "k=1;");
	assert_labels("k=a=b", "k=a=b;");
	assert_labels("k=1,k=2", "k=1;k=2;");
	assert_labels("k%2C1=v%3D2%2Bx", "k,1=v=2+x;");
	assert_labels("k=a+b", "k=a b;");
}

TEST(labels_that_are_not_escaped_well_are_errors)
{
	assert_labels("%zz=1", "invalid URL escape \"%zz\"");
	assert_labels("k=%4", "invalid URL escape \"%4\"");
	assert_labels("a=b,k=%", "invalid URL escape \"%\"");
	assert_labels("a=b,k=x%1gyz", "invalid URL escape \"%1g\"");
}

TEST(metadata_is_profefes_json)
{
	struct store_label labels[] = { { STR("dc"), STR("f<\"a") }, { STR("region"), STR("") } };
	struct store_meta meta = { .service = STR("svc/a"),
				   .type = STR("cpu"),
				   .labels = labels,
				   .nlabels = 2,
				   .created = INT64_C(1559250605) * SECOND + 999999999 };
	struct buf out = { 0 };

	api0_put_meta(&out, &meta);
	buf_char(&out, '\0');
	assert_string_equal(
		out.p, "{\"id\":\"00000000000000000000\",\"type\":\"cpu\",\"service\":\"svc/a\","
		       "\"labels\":[{\"key\":\"dc\",\"value\":\"f\\u003c\\\"a\"},"
		       "{\"key\":\"region\",\"value\":\"\"}],"
		       "\"created_at\":\"2019-05-30T21:10:05Z\"}");
	out.n = 0;
	meta.nlabels = 0;
	api0_put_meta(&out, &meta);
	buf_char(&out, '\0');
	assert_string_equal(
		out.p, "{\"id\":\"00000000000000000000\",\"type\":\"cpu\",\"service\":\"svc/a\","
		       "\"created_at\":\"2019-05-30T21:10:05Z\"}");
	buf_release(&out);
}
