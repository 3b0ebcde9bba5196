#include "test.h"

#include "server/regress.h"
#include "stores.h"

#define MINUTES (60 * INT64_C(1))
#define HOURS (60 * MINUTES)
#define DAYS (24 * HOURS)

/* Every five minutes, in seconds from `from` on. By day, from 8 to 14 o'clock, f takes more. */
static void put_days(struct place *p, const char *labels, int64_t from, int64_t to)
{
	for (int64_t at = from; at < to; at += 5 * MINUTES) {
		int64_t hour = at % DAYS / HOURS;

		put(p, "shop", "cpu", labels, at,
		    hour >= 8 && hour < 14 ? "main;f 60\nmain;g 40\n" : "main;f 40\nmain;g 60\n");
	}
}

static struct regress compared(struct place *p, enum regress_kind kind, int64_t window, int64_t now)
{
	struct regress_params params = { .store = p->store,
					 .service = STR("shop"),
					 .type = STR("cpu"),
					 .kind = kind,
					 .version_label = STR("version"),
					 .window = window * SECOND,
					 .now = now * SECOND,
					 .limits = { .min_share = 0.005 } };
	struct regress r;
	struct err e;

	if (!regress_run(&p->w.arena, &params, &r, &e))
		fail_msg("%s", e.text);
	return r;
}

TEST(a_version_is_compared_with_the_same_hours_of_an_earlier_day)
{
	int64_t start = 100 * DAYS, change = start + 2 * DAYS + 8 * HOURS;
	struct place p;
	struct regress r;

	place_init(&p);
	put_days(&p, "version=1", start, change);
	put_days(&p, "version=2", change, change + 6 * HOURS);
	r = compared(&p, REGRESS_VERSIONS, 7 * DAYS, change + 6 * HOURS);
	assert_int_equal(r.result, REGRESS_COMPARED);
	assert_int_equal(r.old.from / SECOND, change - DAYS);
	assert_true(r.old.to / SECOND <= change - 18 * HOURS);
	assert_int_equal(r.new.from / SECOND, change);
	assert_int_equal(r.n, 0);
	place_release(&p);
}

/* The day before is missing: the one before that will do. */
TEST(a_day_without_profiles_is_passed_over)
{
	int64_t start = 100 * DAYS, change = start + 2 * DAYS + 8 * HOURS;
	struct place p;
	struct regress r;

	place_init(&p);
	put_days(&p, "version=1", start, start + 26 * HOURS);
	put_days(&p, "version=1", change - HOURS, change);
	put_days(&p, "version=2", change, change + 6 * HOURS);
	r = compared(&p, REGRESS_VERSIONS, 7 * DAYS, change + 6 * HOURS);
	assert_int_equal(r.result, REGRESS_COMPARED);
	assert_int_equal(r.old.from / SECOND, change - 2 * DAYS);
	assert_int_equal(r.n, 0);
	place_release(&p);
}

TEST(without_an_earlier_day_the_time_before_counts)
{
	int64_t change = 102 * DAYS + 8 * HOURS;
	struct place p;
	struct regress r;

	place_init(&p);
	put_days(&p, "version=1", change - 6 * HOURS, change);
	put_days(&p, "version=2", change, change + 6 * HOURS);
	r = compared(&p, REGRESS_VERSIONS, 7 * DAYS, change + 6 * HOURS);
	assert_int_equal(r.old.from / SECOND, change - 6 * HOURS);
	assert_true(r.old.to / SECOND < change);
	assert_int_equal(r.n, 1);
	place_release(&p);
}

/* What is left of the old window are sums. */
TEST(thinned_profiles_are_compared)
{
	const struct store_params params = { .is_passive = true,
					     .keep = { .raw_ns = 5 * DAYS * SECOND } };
	int64_t start = 100 * DAYS, end = start + 16 * DAYS;
	struct place p;
	struct regress r;
	struct err e;

	place_init(&p);
	reopen(&p, &params);
	put_days(&p, "", start, end);
	assert_true(store_tidy(p.store, end * SECOND, &e));
	r = compared(&p, REGRESS_WINDOWS, 7 * DAYS, end);
	assert_int_equal(r.result, REGRESS_COMPARED);
	assert_int_equal(r.old.nparts, 7);
	assert_int_equal(r.new.nparts, 7);
	assert_true(r.old.samples > 0.9 * r.new.samples);
	assert_int_equal(r.n, 0);
	place_release(&p);
}

/* More of them than are worth a scan each: the others change with a part. */
TEST(each_change_has_a_time)
{
	int64_t start = 100 * DAYS, change = start + 8 * HOURS;
	struct place p;
	struct regress r;

	place_init(&p);
	for (int64_t at = start; at < start + 16 * HOURS; at += 5 * MINUTES) {
		struct buf stacks = { 0 };

		for (int i = 0; i < 7; i++)
			buf_printf(&stacks, "main;f%d %d\n", i, at < change ? 20 : 60 + i);
		for (int i = 0; i < 30; i++)
			buf_printf(&stacks, "main;g%d 40\n", i);
		put(&p, "shop", "cpu", "", at, text_of(&p, &stacks));
	}
	r = compared(&p, REGRESS_WINDOWS, 8 * HOURS, start + 16 * HOURS);
	assert_int_equal(r.result, REGRESS_COMPARED);
	assert_int_equal(r.n, 7);
	for (size_t i = 0; i < r.n; i++) {
		int64_t away = r.findings[i].changed / SECOND - change;

		assert_true(llabs(away) <= (i < 5 ? 5 * MINUTES : HOURS));
	}
	place_release(&p);
}
