#include "server/ingest.h"

#include "test.h"

#define SAME(got, want) assert_true(str_eq(got, STR(want)))
#define NOW INT64_C(1700000000000000000)

static void assert_bad_name(const char *name, const char *want)
{
	struct intake_series s = { 0 };
	struct err e;

	assert_false(ingest_parse_name(str_of(name), &s, &e));
	assert_string_equal(e.text, want);
	intake_series_release(&s);
}

TEST(names_have_labels)
{
	struct intake_series s = { 0 };
	struct err e;

	assert_true(ingest_parse_name(STR(" my.app {a=1, b = x=y ,__session_id__=7,c=,}"), &s, &e));
	SAME(s.service, "my.app");
	assert_int_equal(s.labels.n, 3);
	SAME(intake_find_label(&s, STR("b")), "x=y");
	SAME(s.labels.at[2].key, "c");
	SAME(s.labels.at[2].value, "");
	intake_series_release(&s);
}

TEST(a_label_may_name_the_service)
{
	struct intake_series s = { 0 };
	struct err e;

	assert_true(ingest_parse_name(STR("app{service_name=web}"), &s, &e));
	SAME(s.service, "web");
	SAME(intake_find_label(&s, STR("app_name")), "app");
	intake_series_release(&s);
}

TEST(bad_names)
{
	assert_bad_name("", "it is empty: send name=app or name=app{k=v,k2=v2}");
	assert_bad_name(" {a=b}", "it is empty: send name=app or name=app{k=v,k2=v2}");
	assert_bad_name("app{", "its labels do not end in a '}'");
	assert_bad_name("app{a=b", "its labels do not end in a '}'");
	assert_bad_name("app{a}", "\"a\" is no label: k=v");
	assert_bad_name("app{=b}", "\"=b\" is no label: k=v");
}

TEST(the_last_part_of_a_name_is_a_type_if_it_is_known)
{
	struct intake_series s = { .service = STR("my.app.inuse_space") };
	struct str type = STR("");

	assert_true(ingest_cut_type(&s, &type));
	SAME(s.service, "my.app");
	SAME(type, "inuse_space");
	assert_false(ingest_cut_type(&s, &type));
	SAME(s.service, "my.app");
	s.service = STR("x.goroutines");
	assert_true(ingest_cut_type(&s, &type));
	SAME(type, "goroutine");
	s.service = STR(".cpu");
	assert_false(ingest_cut_type(&s, &type));
	s.service = STR("cpu");
	assert_false(ingest_cut_type(&s, &type));
}

TEST(times_go_by_the_number_of_digits)
{
	static const struct {
		const char *text;
		int64_t want;
	} cases[] = {
		{ "1700000000", NOW },
		{ "1700000000123", NOW + 123000000 },
		{ "1700000000123456", NOW + 123456000 },
		{ "1700000000123456789", NOW + 123456789 },
		{ "20231114", INT64_C(1699920000000000000) },
		{ "0", 0 },
		{ "now", NOW },
		{ "now-1h", NOW - INT64_C(3600000000000) },
	};
	struct err e;
	int64_t ns;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_true(ingest_parse_time(str_of(cases[i].text), NOW, &ns, &e));
		assert_int_equal(ns, cases[i].want);
	}
	assert_false(ingest_parse_time(STR(""), NOW, &ns, &e));
	assert_false(ingest_parse_time(STR("20231399"), NOW, &ns, &e));
	assert_false(ingest_parse_time(STR("99999999999"), NOW, &ns, &e));
	assert_false(ingest_parse_time(STR("9999999999999999999"), NOW, &ns, &e));
	assert_false(ingest_parse_time(STR("17000x"), NOW, &ns, &e));
}
