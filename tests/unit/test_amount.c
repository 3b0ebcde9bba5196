/* Sizes and times in settings. */
#include "test.h"

#include "base/amount.h"

#define SECOND INT64_C(1000000000)

static int64_t time_of(const char *text)
{
	int64_t ns;
	struct err e;

	return amount_parse_time(str_of(text), &ns, &e) ? ns : -1;
}

static int64_t bytes_of(const char *text)
{
	int64_t bytes;
	struct err e;

	return amount_parse_bytes(str_of(text), &bytes, &e) ? bytes : -1;
}

TEST(times_are_read)
{
	assert_int_equal(time_of("90s"), 90 * SECOND);
	assert_int_equal(time_of("90"), 90 * SECOND);
	assert_int_equal(time_of("1h30m"), 5400 * SECOND);
	assert_int_equal(time_of("1.5h"), 5400 * SECOND);
	assert_int_equal(time_of("14d"), 14 * 86400 * SECOND);
	assert_int_equal(time_of("2w"), 14 * 86400 * SECOND);
	assert_int_equal(time_of("250ms"), SECOND / 4);
	assert_int_equal(time_of("0"), 0);
	assert_int_equal(time_of("120h"), 120 * 3600 * SECOND);
}

TEST(what_is_no_time_is_refused)
{
	static const char *const wrong[] = { "",      "d",	"1x",	"-1s",
					     "1 s",   "1.2.3s", "1e9s", "500000000000d",
					     "0x10s", "inf",	"1h-",	"s1" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(time_of(wrong[i]), -1);
}

TEST(sizes_are_read)
{
	assert_int_equal(bytes_of("512"), 512);
	assert_int_equal(bytes_of("64KB"), 64 << 10);
	assert_int_equal(bytes_of("64k"), 64 << 10);
	assert_int_equal(bytes_of("2GB"), INT64_C(2) << 30);
	assert_int_equal(bytes_of("2GiB"), INT64_C(2) << 30);
	assert_int_equal(bytes_of("1.5T"), INT64_C(3) << 39);
	assert_int_equal(bytes_of("0"), 0);
}

TEST(what_is_no_size_is_refused)
{
	static const char *const wrong[] = { "",    "GB",	    "-1",  "1 GB", "1GB2",
					     "1PB", "9999999999TB", "1e3", "nan" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(bytes_of(wrong[i]), -1);
}

TEST(what_is_printed_reads_back_as_the_same)
{
	static const int64_t values[] = { 0,
					  1,
					  1500,
					  1024,
					  90 * SECOND,
					  -0,
					  3600 * SECOND,
					  1 << 20,
					  INT64_C(5) << 40,
					  86400 * SECOND };

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		struct buf time = { 0 }, bytes = { 0 };

		amount_print_time(&time, values[i]);
		buf_char(&time, '\0');
		assert_int_equal(time_of(time.p), values[i]);
		amount_print_bytes(&bytes, values[i]);
		buf_char(&bytes, '\0');
		assert_int_equal(bytes_of(bytes.p), values[i]);
		buf_release(&time);
		buf_release(&bytes);
	}
}

TEST(amounts_are_short)
{
	struct buf out = { 0 };

	amount_print_time(&out, 14 * 86400 * SECOND);
	amount_print_time(&out, 5400 * SECOND);
	amount_print_bytes(&out, INT64_C(2) << 30);
	amount_print_bytes(&out, 1000);
	assert_true(str_eq(buf_view(&out), STR("14d90m2GB1000")));
	buf_release(&out);
}
