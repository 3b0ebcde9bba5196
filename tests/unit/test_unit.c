#include "test.h"

#include <stdio.h>

#include "base/unit.h"

static void check(const struct buf *got, const char *want)
{
	char text[100];

	snprintf(text, sizeof(text), "%.*s", STR_ARG(buf_view(got)));
	assert_string_equal(text, want);
}

static void check_label(int64_t value, const char *from, const char *to, const char *want)
{
	struct buf b = { 0 };

	unit_label(&b, value, str_of(from), str_of(to));
	check(&b, want);
	buf_release(&b);
}

static void check_percent(int64_t value, int64_t total, const char *want)
{
	struct buf b = { 0 };

	percent_text(&b, value, total);
	check(&b, want);
	buf_release(&b);
}

static void check_duration(int64_t nanos, const char *want)
{
	struct buf b = { 0 };

	duration_text(&b, nanos);
	check(&b, want);
	buf_release(&b);
}

TEST(labels_scale_to_the_unit_asked_for)
{
	check_label(1760000000, "nanoseconds", "ms", "1760ms");
	check_label(1760000000, "nanoseconds", "s", "1.76s");
	check_label(1536, "bytes", "kb", "1.50kB");
	check_label(1048576, "Bytes", "MEGABYTES", "1MB");
	check_label(-1536, "bytes", "kb", "-1.50kB");
	check_label(5400, "seconds", "hours", "1.50hrs");
}

TEST(labels_choose_a_unit)
{
	check_label(1760000000, "nanoseconds", "minimum", "1.76s");
	check_label(999, "ns", "auto", "999ns");
	check_label(1000, "ns", "auto", "1us");
	check_label(1023, "B", "auto", "1023B");
	check_label(1024, "B", "auto", "1kB");
	check_label(3600, "s", "auto", "1hrs");
	check_label(120, "s", "auto", "120s");
	check_label(1, "pb", "auto", "1PB");
	check_label(2000, "milligcu", "auto", "2GCU");
}

TEST(labels_of_zero_have_no_unit)
{
	check_label(0, "ns", "s", "0");
	check_label(1, "ns", "s", "0");
	check_label(-1, "ns", "s", "0");
	check_label(4999999, "ns", "s", "0");
	check_label(5000001, "ns", "s", "0.01s");
	check_label(0, "widgets", "hours", "0");
}

TEST(unknown_units)
{
	check_label(24029, "count", "hours", "24029hours");
	check_label(24029, "count", "minimum", "24029");
	check_label(24029, "count", "auto", "24029");
	check_label(7, "samples", "count", "7");
	check_label(7, "", "sample", "7");
	check_label(7, "x", "", "7");
	check_label(7000000000, "ns", "parsec", "7s");
	check_label(7000000000, "ns", "bytes", "7s");
	check_label(7, "minutes", "auto", "7");
	/* Three bytes and a plural s: what is left is no unit. */
	check_label(7, "\u03bcs", "auto", "7");
	check_label(7, "averyveryverylongunitname", "auto", "7");
}

TEST(labels_of_extreme_values)
{
	char longest[64];

	check_label(INT64_MAX, "bytes", "b", "9223372036854775808B");
	check_label(INT64_MIN, "bytes", "b", "-9223372036854775808B");
	/* It has no positive counterpart to choose a unit by. */
	check_label(INT64_MIN, "bytes", "auto", "-9223372036854775808B");
	check_label(INT64_MIN, "ns", "auto", "-9223372036.85s");
	check_label(INT64_MAX, "count", "auto", "9223372036854775808");
	snprintf(longest, sizeof(longest), "%.0fn*GCU", (double)INT64_MAX * 1e15 / 1e-9);
	check_label(INT64_MAX, "petagcu", "nanogcu", longest);
}

TEST(decimals_round_as_printf_does)
{
	uint64_t random = 88172645463325252u;

	for (int i = 0; i < 20000; i++) {
		struct buf b = { 0 };
		char want[64];
		int64_t value;
		size_t n;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		value = (int64_t)(random >> ((random & 31) | 8));
		if (i % 3 == 0)
			value = value / 5000 * 5000;
		unit_label(&b, value, STR("us"), STR("s"));
		n = (size_t)snprintf(want, sizeof(want), "%.2f", (double)value * 1e3 / 1e9);
		if (strcmp(want + n - 3, ".00") == 0)
			want[n -= 3] = '\0';
		if (strcmp(want, "0") != 0)
			strcat(want, "s");
		check(&b, want);
		buf_release(&b);
	}
}

TEST(percentages)
{
	check_percent(1, 1, "  100%");
	check_percent(9995, 10000, "  100%");
	check_percent(10006, 10000, "100.06%");
	check_percent(0, 5, "    0%");
	check_percent(5, 0, "    0%");
	check_percent(-1, 2, "50.00%");
	check_percent(893, 10000, " 8.93%");
	check_percent(9, 1000, "  0.9%");
	check_percent(17, 100000, "0.017%");
	check_percent(42, 100000000, "4.2e-05%");
	check_percent(INT64_MIN, 1, "922337203685477580800.00%");
}

TEST(small_percentages_round_as_printf_does)
{
	for (int64_t value = 1; value < 10000; value += 7) {
		for (int64_t total = 1000000; total <= 100000000000; total *= 10) {
			struct buf b = { 0 };
			char want[64];

			percent_text(&b, value, total);
			snprintf(want, sizeof(want), "%5.2g%%",
				 (double)value / (double)total * 100);
			check(&b, want);
			buf_release(&b);
		}
	}
}

TEST(durations)
{
	check_duration(0, "0s");
	check_duration(1, "1ns");
	check_duration(1100, "1.1µs");
	check_duration(2200000, "2.2ms");
	check_duration(3300000000, "3.3s");
	check_duration(123456000000, "2m3.456s");
	check_duration(3600000000000, "1h0m0s");
	check_duration(5445000000001, "1h30m45.000000001s");
	check_duration(-1500000, "-1.5ms");
	check_duration(INT64_MIN, "-2562047h47m16.854775808s");
	check_duration(INT64_MAX, "2562047h47m16.854775807s");
}

TEST(families)
{
	struct str name;

	assert_true(unit_is_time(STR("Microseconds")));
	assert_false(unit_is_time(STR("bytes")));
	assert_false(unit_is_time(STR("")));
	assert_true(unit_same_family(STR("kB"), STR("byte")));
	assert_false(unit_same_family(STR("s"), STR("byte")));
	assert_false(unit_same_family(STR("x"), STR("x")));
	assert_true(unit_compatible(STR("sample"), STR("x"), STR("samples"), STR("x")));
	assert_true(unit_compatible(STR("cpu"), STR("ms"), STR("cpu"), STR("nanoseconds")));
	assert_false(unit_compatible(STR("cpu"), STR("ms"), STR("wall"), STR("ms")));
	assert_false(unit_compatible(STR("cpu"), STR("ms"), STR("cpu"), STR("count")));
	assert_true(unit_is_finer(STR("ns"), STR("ms")));
	assert_false(unit_is_finer(STR("ms"), STR("ns")));
	assert_false(unit_is_finer(STR("ms"), STR("ms")));
	assert_float_equal(unit_to_default(STR("ms"), &name), 1e-3, 1e-18);
	assert_true(str_eq(name, STR("s")));
	assert_float_equal(unit_to_default(STR("count"), &name), 1, 0);
	assert_int_equal(name.n, 0);
}
