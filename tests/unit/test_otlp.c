#include "server/otlp.h"

#include "test.h"

enum { ATTRIBUTES = 4, LINKS = 3 };

static void put_rows(struct buf *dictionary, unsigned field, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_bytes(dictionary, field, STR(""));
}

/* A request with these samples. */
static void make_request(struct buf *out, const struct str *samples, size_t n)
{
	struct buf profile = { 0 }, scope = { 0 }, resource = { 0 }, dictionary = { 0 };

	for (size_t i = 0; i < n; i++)
		put_bytes(&profile, 2, samples[i]);
	put_message(&scope, 2, &profile);
	put_message(&resource, 2, &scope);
	put_message(out, 1, &resource);
	put_rows(&dictionary, 4, LINKS);
	put_rows(&dictionary, 6, ATTRIBUTES);
	put_message(out, 2, &dictionary);
	buf_release(&profile);
	buf_release(&scope);
	buf_release(&resource);
	buf_release(&dictionary);
}

static void assert_version(struct str sample, bool is_v1_9)
{
	struct buf request = { 0 };
	struct otlp o;
	struct err e;

	make_request(&request, &sample, 1);
	assert_true(otlp_open(&o, buf_view(&request), false, &e));
	assert_int_equal(o.is_v1_9, is_v1_9);
	otlp_release(&o);
	buf_release(&request);
}

/* Fields of a sample: v1.9 has values in 2, attributes in 3, a link in 4; v1.10 has attributes in
 * 2, a link in 3, values in 4; times are in 5. */
#define F2 "\x10"
#define F3 "\x18"
#define F4 "\x20"
#define P2 "\x12\x01"
#define P3 "\x1a\x01"
#define P4 "\x22\x01"
#define TIME "\x29\0\0\0\0\0\0\0\1"

TEST(lists_tell_versions_apart)
{
	assert_version(STR(P2 "\5" P3 "\1"), true);
	assert_version(STR(P2 "\1" P4 "\1"), false);
	assert_version(STR(P3 "\1" TIME), true);
	assert_version(STR(P2 "\1"), true); /* v1.10 would have no value at all */
}

TEST(single_numbers_tell_versions_apart)
{
	assert_version(STR(F4 "\1"), false);
	assert_version(STR(F2 "\1"), true);
	assert_version(STR(F2 "\1" F3 "\1"), true);
	assert_version(STR(F3 "\1" F4 "\1"), false);
	/* 9 can be no link, or no attribute, so it is a value. */
	assert_version(STR(F2 "\1" F2 "\2" F4 "\x9"), false);
	assert_version(STR(F2 "\1" F3 "\1" F4 "\x9"), false);
	assert_version(STR(F2 "\x9" F3 "\1" F4 "\1"), true);
	assert_version(STR(F2 "\x9" TIME), true);
	/* 3 can be an attribute, but no link. */
	assert_version(STR(F2 "\1" F3 "\3" F4 "\1"), true);
	/* It may be either. */
	assert_version(STR(F2 "\1" F3 "\1" F4 "\1"), false);
	assert_version(STR(F2 "\1" TIME), false);
}

TEST(versions_are_not_mixed)
{
	const struct str samples[] = { STR(P2 "\5" P3 "\1"), STR(P4 "\1") };
	struct buf request = { 0 };
	struct otlp o;
	struct err e;

	make_request(&request, samples, 2);
	assert_false(otlp_open(&o, buf_view(&request), false, &e));
	assert_string_equal(e.text, "1 samples have fields as in v1.9 of OTLP, and 1 as in v1.10");
	otlp_release(&o);
	buf_release(&request);
}

/* ---- observations */

#define TIMES_2 "\x2a\x10\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"

static bool read_sample(struct otlp_sample *s, struct str bytes, bool is_v1_9, struct err *e)
{
	const struct otlp o = { .is_v1_9 = is_v1_9 };

	return otlp_sample(&o, wire_of(bytes), s, e);
}

TEST(observations_have_a_value_and_a_time_each)
{
	struct otlp_sample s = { 0 };
	struct err e;

	for (int is_v1_9 = 0; is_v1_9 < 2; is_v1_9++) {
		struct str sample = is_v1_9 ? STR("\x12\2\5\7" TIMES_2) : STR("\x22\2\5\7" TIMES_2);

		assert_true(read_sample(&s, sample, is_v1_9, &e));
		assert_int_equal(s.values.n, 2);
		assert_int_equal(s.times.n, 2);
		assert_int_equal(s.values.at[1], 7);
		assert_int_equal(s.times.at[0], 2);
		assert_int_equal(s.times.at[1], 1);
	}
	/* without values: events; one by one */
	assert_true(read_sample(&s, STR(TIMES_2 "\x29\3\0\0\0\0\0\0\0"), false, &e));
	assert_int_equal(s.values.n, 3);
	assert_int_equal(s.values.at[2], 1);
	assert_int_equal(s.times.at[2], 3);
	/* without times: one observation, of all values */
	assert_true(read_sample(&s, STR("\x22\2\5\7"), false, &e));
	assert_int_equal(s.values.n, 1);
	assert_int_equal(s.values.at[0], 12);
	assert_int_equal(s.times.n, 0);
	assert_true(read_sample(&s, STR(""), false, &e));
	assert_int_equal(s.values.n, 1);
	assert_int_equal(s.values.at[0], 0);
	otlp_sample_release(&s);
}

TEST(times_that_do_not_fit_are_refused)
{
	const struct {
		struct str sample;
		const char *why;
	} cases[] = {
		{ STR(P4 "\1" TIMES_2), "1 values and 2 timestamps, which are one for each value" },
		{ STR(P4 "\1" F4 "\1" F4 "\1" TIMES_2),
		  "3 values and 2 timestamps, which are one for each value" },
		{ STR("\x29\0\0\0\0\0\0\0\x80"),
		  "timestamp 9223372036854775808 is after the year 2262" },
		{ STR("\x2a\x09\0\0\0\0\0\0\0\0\0"), "Sample: no protobuf" },
		{ STR("\x28\1"), "Sample: no protobuf" },
		{ STR("\x2d\1\0\0\0"), "Sample: no protobuf" },
	};
	struct otlp_sample s = { 0 };
	struct err e;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_false(read_sample(&s, cases[i].sample, false, &e));
		assert_string_equal(e.text, cases[i].why);
	}
	otlp_sample_release(&s);
}

TEST(rows_that_are_broken_stay_broken)
{
	struct otlp o;
	struct err e;

	/* dictionary: attribute_table "" and a message that ends too soon */
	assert_true(otlp_open(&o, STR("\x12\x05\x32\x00\x32\x01\x08"), false, &e));
	assert_ptr_equal(otlp_attribute(&o, 1, &e), NULL);
	assert_string_equal(e.text, "KeyValueAndUnit: no protobuf");
	assert_ptr_equal(otlp_attribute(&o, 1, &e), NULL);
	assert_string_equal(e.text, "attribute 1 is broken");
	assert_ptr_equal(otlp_attribute(&o, 2, &e), NULL);
	assert_string_equal(e.text, "something names attribute 2, and the dictionary has 2");
	assert_int_equal(otlp_attribute(&o, 0, &e)->key.n, 0);
	otlp_release(&o);
}
