#include "base/when.h"

#include "test.h"

#define SECOND INT64_C(1000000000)
#define NOW (INT64_C(1794916800) * SECOND) /* 2026-11-17T12:00:00Z */

TEST(times_ago_have_a_sign_or_none)
{
	static const struct {
		const char *text;
		int64_t ago_s;
	} rows[] = {
		{ "24h", 86400 },
		{ "-24h", 86400 },
		{ "1h30m", 5400 },
		{ "2d", 2 * 86400 },
		{ "0m", 0 },
		{ "-0s", 0 },
		{ "now", 0 },
		{ "now-1h", 3600 },
		{ "now+1h", -3600 },
		{ "2026-11-17T11:00:00Z", 3600 },
		{ "2026-11-17", 43200 },
		{ "2026-11-17T12:00:00+01:00", 3600 },
		{ "1794916740", 60 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct err e;
		int64_t ns;

		assert_true(time_parse_ago(str_of(rows[i].text), NOW, &ns, &e));
		assert_int_equal((NOW - ns) / SECOND, rows[i].ago_s);
	}
}

TEST(what_is_no_time_ago)
{
	static const char *const texts[] = { "",     "-",    "h",   "2x",
					     "--2h", "-now", "+2h", "100w1000000d" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct err e;
		int64_t ns;

		assert_false(time_parse_ago(str_of(texts[i]), NOW, &ns, &e));
		assert_int_equal(e.kind, ERR_USAGE);
	}
}
