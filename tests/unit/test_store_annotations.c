#include "test.h"

#include <sqlite3.h>

#include "base/when.h"
#include "stores.h"

static int64_t say(struct place *p, int64_t seconds, const char *service, const char *text,
		   const char *tags)
{
	struct store_annotation x = { .time = seconds * SECOND,
				      .end = seconds * SECOND,
				      .text = str_of(text),
				      .service = str_of(service),
				      .tags = str_of(tags),
				      .who = STR("ann") };
	struct err e;

	if (!store_annotate(p->store, &x, &e))
		fail_msg("%s", e.text);
	return x.id;
}

/* "text@seconds ", newest first. */
static const char *texts(struct place *p, struct store_annotation_query q)
{
	struct buf out = { 0 };
	struct store_annotations found;
	struct err e;
	const char *copy;

	q.to = q.to ? q.to : INT64_MAX;
	if (!store_annotations(p->store, &q, &p->w.arena, &found, &e))
		fail_msg("%s", e.text);
	for (size_t i = 0; i < found.n; i++)
		buf_printf(&out, "%.*s@%lld ", STR_ARG(found.at[i].text),
			   (long long)(found.at[i].time / SECOND));
	if (found.has_more)
		buf_puts(&out, "more");
	copy = str_dup(&p->w.arena, buf_view(&out));
	buf_release(&out);
	return copy;
}

#define TEXTS(p, ...) texts(p, (struct store_annotation_query){ __VA_ARGS__ })

TEST(they_are_found_by_time_service_and_tag)
{
	struct place p;

	place_init(&p);
	say(&p, 100, "web", "a", "deploy");
	say(&p, 300, "", "c", "outage,deploy");
	say(&p, 200, "batch", "b", "");
	assert_string_equal(TEXTS(&p, 0), "c@300 b@200 a@100 ");
	assert_string_equal(TEXTS(&p, .from = 150 * (int64_t)SECOND, .to = 250 * (int64_t)SECOND),
			    "b@200 ");
	/* What is of all services is of each. */
	assert_string_equal(TEXTS(&p, .service = STR("web")), "c@300 a@100 ");
	assert_string_equal(TEXTS(&p, .tag = STR("deploy")), "c@300 a@100 ");
	assert_string_equal(TEXTS(&p, .tag = STR("depl")), "");
	assert_string_equal(TEXTS(&p, .limit = 2), "c@300 b@200 more");
	assert_string_equal(TEXTS(&p, .limit = 3), "c@300 b@200 a@100 ");
	place_release(&p);
}

TEST(one_that_lasts_is_found_wherever_it_does)
{
	struct place p;
	struct store_annotation x = { .time = 100 * (int64_t)SECOND,
				      .end = 500 * (int64_t)SECOND,
				      .text = STR("load test") };
	struct err e;

	place_init(&p);
	assert_true(store_annotate(p.store, &x, &e));
	assert_string_equal(TEXTS(&p, .from = 400 * (int64_t)SECOND), "load test@100 ");
	assert_string_equal(TEXTS(&p, .from = 501 * (int64_t)SECOND), "");
	place_release(&p);
}

TEST(they_are_durable_and_an_id_is_never_anothers)
{
	struct place p;
	struct err e;
	int64_t first, second;

	place_init(&p);
	first = say(&p, 100, "web", "a", "");
	second = say(&p, 200, "web", "b", "");
	assert_true(second > first);
	assert_true(store_drop_annotation(p.store, second, &e));
	reopen(&p, NULL);
	assert_string_equal(TEXTS(&p, 0), "a@100 ");
	assert_true(say(&p, 300, "", "c", "") > second);
	assert_false(store_drop_annotation(p.store, second, &e));
	assert_int_equal(e.kind, ERR_NOTFOUND);
	place_release(&p);
}

static void expect_refused(struct place *p, struct store_annotation x, const char *why)
{
	struct err e;

	if (!x.time)
		x.time = x.end = SECOND;
	assert_false(store_annotate(p->store, &x, &e));
	assert_int_equal(e.kind, ERR_USAGE);
	if (!strstr(e.text, why))
		fail_msg("%s, not %s", e.text, why);
}

TEST(what_is_no_text_or_too_long_is_refused)
{
	static char x[2000];
	struct place p;

	memset(x, 'x', sizeof(x));
	place_init(&p);
	expect_refused(&p, (struct store_annotation){ 0 }, "text is missing");
	expect_refused(&p, (struct store_annotation){ .text = { x, 501 } }, "501 bytes");
	expect_refused(&p, (struct store_annotation){ .text = STR("a\nb") }, "control");
	expect_refused(&p, (struct store_annotation){ .text = STR("\xff") }, "no UTF-8");
	expect_refused(&p, (struct store_annotation){ .text = STR("a"), .service = { x, 1025 } },
		       "service: 1025 bytes");
	expect_refused(&p, (struct store_annotation){ .text = STR("a"), .tags = { x, 41 } },
		       "tags: 41 bytes");
	expect_refused(&p, (struct store_annotation){ .text = STR("a"), .tags = STR("a,,b") },
		       "one of them is empty");
	expect_refused(
		&p, (struct store_annotation){ .text = STR("a"), .tags = STR("1,2,3,4,5,6,7,8,9") },
		"8 are the most");
	expect_refused(&p, (struct store_annotation){ .text = STR("a"), .time = 5, .end = 4 },
		       "end: is before");
	assert_string_equal(TEXTS(&p, 0), "");
	place_release(&p);
}

TEST(only_the_newest_are_kept)
{
	struct place p;
	struct store_annotation old = { .time = 1, .end = 1, .text = STR("old") };
	struct err e;
	char path[128];
	sqlite3 *db;

	place_init(&p);
	store_close(p.store);
	p.store = NULL;
	snprintf(path, sizeof(path), "%s/profiles.db", p.dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db,
			     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
			     " WHERE i < 10000) INSERT INTO annotations(time, ends, service, text,"
			     " tags, who) SELECT i * 1000000000, i * 1000000000, x'', x'61', x'',"
			     " x'' FROM n",
			     NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	reopen(&p, NULL);
	say(&p, 20000, "", "new", "");
	assert_string_equal(TEXTS(&p, .to = 3 * (int64_t)SECOND), "a@3 a@2 ");
	assert_string_equal(TEXTS(&p, .from = 10000 * (int64_t)SECOND), "new@20000 a@10000 ");
	assert_false(store_annotate(p.store, &old, &e));
	assert_non_null(strstr(e.text, "10000 later ones"));
	place_release(&p);
}

TEST(they_go_when_nothing_of_their_time_is_kept)
{
	const int64_t day = 86400;
	struct store_rule rule = { STR("long"), -1, -1, -1, 100 * day * SECOND, false };
	struct store_params params = { .keep = { .raw_ns = day * SECOND,
						 .minute_ns = day * SECOND,
						 .hour_ns = day * SECOND,
						 .day_ns = 10 * day * SECOND },
				       .rules = &rule,
				       .nrules = 1 };
	int64_t now = time_now() / SECOND;
	struct place p;
	struct err e;

	place_init(&p);
	reopen(&p, &params);
	say(&p, now - 20 * day, "", "old", "");
	say(&p, now - 20 * day, "long", "kept", "");
	say(&p, now - 5 * day, "", "new", "");
	if (!store_tidy(p.store, now * SECOND, &e))
		fail_msg("%s", e.text);
	assert_string_equal(TEXTS(&p, .from = (now - 6 * day) * SECOND),
			    TEXTS(&p, .service = STR("web")));
	assert_int_equal(strncmp(TEXTS(&p, .service = STR("long")), "new@", 4), 0);
	assert_non_null(strstr(TEXTS(&p, .service = STR("long")), "kept@"));
	place_release(&p);
}
