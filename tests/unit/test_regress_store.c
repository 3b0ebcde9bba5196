#include "test.h"

#include <math.h>

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

static struct regress compared_type(struct place *p, const char *type, enum regress_kind kind,
				    int64_t window, int64_t now)
{
	struct regress_params params = { .store = p->store,
					 .service = STR("shop"),
					 .type = str_of(type),
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

static struct regress compared(struct place *p, enum regress_kind kind, int64_t window, int64_t now)
{
	return compared_type(p, "cpu", kind, window, now);
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

/* ---- how much it is */

struct half {
	const char *version, *stacks;
	int64_t from, duration; /* of each profile, in seconds */
};

/* Each minute of an hour, from two pods. */
static void put_hour(struct place *p, const char *type, const struct half *half)
{
	static const char *const pods[] = { "a", "b" };

	for (int64_t i = 0; i < 120; i++) {
		struct profile x = folded(&p->w, half->stacks);
		struct store_label labels[] = { { STR("pod"), str_of(pods[i % 2]) },
						{ STR("version"), str_of(half->version) } };
		struct store_new new = { .service = STR("shop"),
					 .type = str_of(type),
					 .labels = labels,
					 .nlabels = 2,
					 .created = (half->from + i / 2 * MINUTES) * SECOND,
					 .profile = &x };
		struct store_meta meta;
		struct err e;

		x.duration_nanos = half->duration * SECOND;
		if (!store_put(p->store, &new, &p->w.arena, &meta, &e))
			fail_msg("%s", e.text);
	}
}

static void assert_cores(const struct regress *r, double old, double new)
{
	assert_int_equal(r->n, 1);
	assert_true(str_eq(r->findings[0].function, STR("f")));
	assert_true(fabs(r->findings[0].old_cores / old - 1) < 0.01);
	assert_true(fabs(r->findings[0].new_cores / new - 1) < 0.01);
}

/* A sixth of the time is profiled, in each of the parts that are compared. */
TEST(time_between_profiles_is_no_time_without_load)
{
	int64_t change = 100 * DAYS;
	struct place p;
	struct regress r;

	place_init(&p);
	put_hour(&p, "cpu", &(struct half){ "1", "main;f 600\nmain;g 2400\n", change - HOURS, 10 });
	put_hour(&p, "cpu", &(struct half){ "2", "main;f 900\nmain;g 2100\n", change, 10 });
	r = compared(&p, REGRESS_VERSIONS, 7 * DAYS, change + HOURS);
	assert_false(r.is_gauge);
	assert_cores(&r, 2 * 60, 2 * 90);
	place_release(&p);
}

TEST(what_there_is_at_a_moment_has_no_rate)
{
	int64_t change = 100 * DAYS;
	struct place p;
	struct regress r;

	place_init(&p);
	put_hour(&p, "threads",
		 &(struct half){ "1", "main;f 1000\nmain;g 1000\n", change - HOURS, 0 });
	put_hour(&p, "threads", &(struct half){ "2", "main;f 3000\nmain;g 1000\n", change, 0 });
	r = compared_type(&p, "threads", REGRESS_VERSIONS, 7 * DAYS, change + HOURS);
	assert_true(r.is_gauge);
	assert_cores(&r, 2 * 1000, 2 * 3000);
	place_release(&p);
}
