#include "test.h"

#include <math.h>
#include <sqlite3.h>
#include <time.h>

#include "stores.h"
#include "store/column.h"

#define MINUTE (INT64_C(60) * SECOND)
#define HOUR (60 * MINUTE)

/* ---- what services tell */

struct told {
	const char *service, *pod, *instance;
	int64_t time;
};

static void tell(struct place *p, const struct told *what, const char *stacks)
{
	struct profile x = folded(&p->w, stacks);
	struct value_type type = { strings_add(&p->w.strings, STR("inuse_space")),
				   strings_add(&p->w.strings, STR("bytes")) };
	struct store_label label = { STR("pod"), str_of(what->pod ? what->pod : "") };
	struct store_new new = { .service = str_of(what->service),
				 .type = STR("heap"),
				 .labels = &label,
				 .nlabels = what->pod != NULL,
				 .instance = str_of(what->instance ? what->instance : ""),
				 .created = what->time,
				 .profile = &x };
	struct store_meta meta;
	struct err e;

	x.types = &type;
	x.ntypes = 1;
	x.default_type = 0;
	if (!store_put(p->store, &new, &p->w.arena, &meta, &e))
		fail_msg("%s", e.text);
}

/* Every minute of a time. */
static void tell_often(struct place *p, struct told what, int64_t until, const char *stacks)
{
	for (; what.time < until; what.time += MINUTE)
		tell(p, &what, stacks);
}

static struct store_top top_of(struct place *p, const struct store_top_params *params)
{
	struct store_top top = { 0 };
	struct err e;

	if (!store_top(p->store, params, &p->w.arena, &top, &e))
		fail_msg("%s", e.text);
	assert_true(top.is_gauge);
	return top;
}

static const struct store_top_row *row_of(const struct store_top *top, const char *function,
					  const char *by)
{
	for (size_t i = 0; i < top->n; i++)
		if (str_eq(top->rows[i].function, str_of(function)) &&
		    str_eq(top->rows[i].by, str_of(by)))
			return &top->rows[i];
	fail_msg("%s is not there", function);
	return NULL;
}

static void assert_near(double x, double y)
{
	assert_true(x > y * 0.999 && x < y * 1.001);
}

/* A whole hour, long ago. */
static const int64_t start = 1000 * 24 * HOUR;

static struct store_top_params hour_params(const char *by)
{
	return (struct store_top_params){ .query = { .from = start, .to = start + HOUR - 1 },
					  .by = str_of(by) };
}

/* The same, of values over time. */
static double level_of(struct place *p, const char *service, int64_t step)
{
	struct store_matcher m = { .name = STR("service"), .value = str_of(service) };
	struct store_series_params params = {
		.query = { .matchers = &m, .nmatchers = 1, .from = start, .to = start + HOUR - 1 },
		.step = step,
		.has_levels = true
	};
	struct store_line *lines;
	struct err e;
	size_t n;

	if (!store_series(p->store, &params, &p->w.arena, &lines, &n, &e))
		fail_msg("%s", e.text);
	assert_true(n == 1 && lines[0].n);
	return lines[0].points[0].level;
}

/* ---- */

TEST(who_tells_more_often_does_not_weigh_more)
{
	struct place p;
	struct store_top_params params = hour_params("");
	struct store_top top;

	place_init(&p);
	tell(&p, &(struct told){ .service = "big", .time = start + 5 * MINUTE }, "main;big 1000\n");
	tell_often(&p, (struct told){ .service = "small", .time = start }, start + 9 * MINUTE,
		   "main;small 100\n");
	top = top_of(&p, &params);
	assert_int_equal(top.total, 1100);
	assert_int_equal(row_of(&top, "big", "")->flat, 1000);
	assert_int_equal(row_of(&top, "small", "")->flat, 100);
	assert_int_equal(row_of(&top, "main", "")->cum, 1100);
	assert_int_equal(row_of(&top, "main", "")->nservices, 2);
	assert_near(row_of(&top, "big", "")->rate, 1000);
	assert_near(top.rate, 1100);
	params = hour_params("service");
	top = top_of(&p, &params);
	assert_int_equal(row_of(&top, "big", "big")->flat, 1000);
	assert_int_equal(row_of(&top, "small", "small")->flat, 100);
	assert_int_equal(top.total, 1100);
	place_release(&p);
}

TEST(instances_are_added_however_they_are_told_apart)
{
	struct place p;
	struct store_top_params params = hour_params("service");
	struct store_top top;

	place_init(&p);
	tell_often(&p, (struct told){ .service = "pods", .pod = "a", .time = start }, start + HOUR,
		   "main;keep 300\n");
	tell_often(&p, (struct told){ .service = "pods", .pod = "b", .time = start + MINUTE / 2 },
		   start + HOUR, "main;keep 200\n");
	tell_often(&p, (struct told){ .service = "same", .instance = "a", .time = start },
		   start + HOUR, "main;keep 300\n");
	tell_often(&p,
		   (struct told){ .service = "same", .instance = "b", .time = start + MINUTE / 2 },
		   start + HOUR, "main;keep 200\n");
	for (int i = 0; i < 2; i++) {
		top = top_of(&p, &params);
		assert_int_equal(row_of(&top, "keep", "pods")->flat, 500);
		assert_int_equal(row_of(&top, "keep", "same")->flat, 500);
		assert_int_equal(top.total, 1000);
		assert_true(level_of(&p, "pods", HOUR) == 500);
		assert_true(level_of(&p, "same", HOUR) == 500);
		/* Sums of minutes do not say of how many instances they are. */
		reopen(&p, NULL);
		assert_true(store_tidy(p.store, start + 48 * HOUR, &(struct err){ 0 }));
	}
	place_release(&p);
}

/* A deployment: nobody needs the memory of both. */
TEST(instances_that_follow_one_another_are_not_added)
{
	struct place p;
	struct store_top_params params = hour_params("");
	struct store_top top;

	place_init(&p);
	tell_often(&p, (struct told){ .service = "web", .pod = "old", .time = start },
		   start + HOUR / 2, "main;keep 300\n");
	tell_often(&p, (struct told){ .service = "web", .pod = "new", .time = start + HOUR / 2 },
		   start + HOUR, "main;keep 300\n");
	top = top_of(&p, &params);
	assert_near(row_of(&top, "keep", "")->rate, 300);
	assert_true(row_of(&top, "keep", "")->trend < 10);
	params = hour_params("pod");
	top = top_of(&p, &params);
	assert_near(row_of(&top, "keep", "old")->rate, 150);
	assert_near(row_of(&top, "keep", "new")->rate, 150);
	assert_near(top.rate, 300);
	place_release(&p);
}

TEST(gauges_have_a_trend)
{
	struct place p;
	struct store_top_params params = hour_params("");
	struct store_top top;

	place_init(&p);
	tell_often(&p, (struct told){ .service = "web", .time = start }, start + HOUR / 2,
		   "main;leak 100\nmain;keep 50\n");
	tell_often(&p, (struct told){ .service = "web", .time = start + HOUR / 2 }, start + HOUR,
		   "main;leak 300\nmain;keep 50\n");
	tell(&p, &(struct told){ .service = "once", .time = start + HOUR / 3 }, "main;once 7\n");
	params.order = STORE_TOP_TREND;
	top = top_of(&p, &params);
	assert_true(str_eq(top.rows[0].function, STR("leak")));
	assert_int_equal(top.rows[0].flat, 200);
	assert_near(top.rows[0].trend, 200);
	assert_true(row_of(&top, "keep", "")->trend == 0);
	/* Nobody knows what it was at other times. */
	assert_true(row_of(&top, "once", "")->trend == 0);
	place_release(&p);
}

/* Neither windows nor versions begin where halves do. */
TEST(what_stays_the_same_is_steady_wherever_the_middle_is)
{
	for (int i = 0; i < 5; i++) {
		int64_t first = start + i * MINUTE;
		struct store_top_params params = { .query = { .from = first,
							      .to = first + 105 * MINUTE } };
		struct store_top top;
		struct place p;

		place_init(&p);
		for (int minute = 0; minute < 120; minute += 5)
			tell(&p,
			     &(struct told){ .service = "web",
					     .pod = minute < 60 ? "a" : "b",
					     .time = first + minute * MINUTE },
			     "main;keep 4000\n");
		top = top_of(&p, &params);
		assert_near((double)top.rows[0].flat, 4000);
		assert_true(fabs(top.rows[0].trend) < 4000 * 0.001);
		place_release(&p);
	}
}

/* ---- folders of before */

/* A sum as it was written when there were no names of types, nor rounds: of the same functions. */
static void put_old_sum(struct buf *out, struct str now)
{
	struct sealed s = { 0 };
	struct err e;
	size_t begin = seal_begin(out);
	uint64_t n;

	assert_true(seal_open(&s, now, &e));
	put_number(out, get_number(&s.head) & 15);
	for (int i = 0; i < 5; i++)
		put_number(out, get_number(&s.head)); /* total, profiles, first, last, duration */
	n = get_number(&s.head);
	put_number(out, n);
	buf_str(out, (struct str){ (const char *)s.head.p, n });
	s.head.p += n;
	s.head.p += get_number(&s.head); /* the name of the sample type */
	get_number(&s.head);		 /* profiles that have it */
	put_number(out, get_number(&s.head));
	get_number(&s.head); /* rounds */
	assert_true(seal_unpack(&s, &e));
	seal_end(out, begin, STR(""),
		 (struct str){ (const char *)s.dense.p, (size_t)(s.dense.end - s.dense.p) }, 3,
		 NULL);
	sealed_release(&s);
}

static void make_old(struct place *p)
{
	sqlite3 *db;
	sqlite3_stmt *rows, *change;
	char path[100];
	struct buf old = { 0 };
	int n = 0;

	snprintf(path, sizeof(path), "%s/profiles.db", p->dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_prepare_v2(db, "SELECT row, data FROM kept WHERE row > 0", -1, &rows, NULL);
	sqlite3_prepare_v2(db, "UPDATE kept SET data = ? WHERE row = ?", -1, &change, NULL);
	for (; sqlite3_step(rows) == SQLITE_ROW; n++) {
		old.n = 0;
		put_old_sum(&old, (struct str){ sqlite3_column_blob(rows, 1),
						(size_t)sqlite3_column_bytes(rows, 1) });
		sqlite3_bind_blob(change, 1, old.p, (int)old.n, SQLITE_TRANSIENT);
		sqlite3_bind_int64(change, 2, sqlite3_column_int64(rows, 0));
		assert_int_equal(sqlite3_step(change), SQLITE_DONE);
		sqlite3_reset(change);
	}
	assert_true(n > 0);
	sqlite3_finalize(rows);
	sqlite3_finalize(change);
	sqlite3_close(db);
	buf_release(&old);
}

TEST(what_is_kept_without_rounds_is_made_again)
{
	struct place p;
	struct store_params passive = { .is_passive = true };
	int64_t now = (int64_t)time(NULL) * SECOND, from = now - now % HOUR - 5 * HOUR;
	struct store_top_params params = { .query = { .from = from, .to = now },
					   .is_settled = true,
					   .is_kept = true };
	struct store_top top;

	place_init(&p);
	reopen(&p, &passive);
	tell_often(&p, (struct told){ .service = "web", .instance = "a", .time = from },
		   from + 2 * HOUR, "main;keep 300\n");
	tell_often(&p, (struct told){ .service = "web", .instance = "b", .time = from },
		   from + 2 * HOUR, "main;keep 200\n");
	top = top_of(&p, &params);
	assert_int_equal(top.total, 500);
	/* They are read again, as they were written. */
	params.is_kept = false;
	reopen(&p, &passive);
	top = top_of(&p, &params);
	assert_int_equal(top.total, 500);
	store_close(p.store);
	make_old(&p);
	p.store = NULL;
	reopen(&p, &passive);
	top = top_of(&p, &params);
	assert_int_equal(top.total, 500);
	place_release(&p);
}
