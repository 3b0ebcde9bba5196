/* Budgets, turns, rates and the list of refusals. */
#include "server/budget.h"
#include "server/holds.h"
#include "server/rates.h"
#include "server/refusals.h"
#include "server/turns.h"

#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

/* ---- budgets */

TEST(a_budget_gives_no_more_than_it_has)
{
	struct budget b;
	unsigned nwaiting;

	budget_init(&b, 100, 1);
	assert_true(budget_take(&b, 60, 0, NULL));
	assert_false(budget_take(&b, 41, 0, NULL));
	assert_false(budget_take(&b, 41, 30, NULL));
	assert_false(budget_take(&b, UINT64_MAX, 0, NULL));
	assert_true(budget_take(&b, 40, 0, NULL));
	budget_give(&b, 60);
	assert_int_equal(budget_taken(&b, &nwaiting), 40);
	assert_int_equal(nwaiting, 0);
	budget_release(&b);
}

static void *take_late(void *budget)
{
	return budget_take(budget, 50, 20000, NULL) ? budget : NULL;
}

static void wait_until_waiting(struct budget *b)
{
	unsigned n = 0;

	while (!n) {
		budget_taken(b, &n);
		usleep(1000);
	}
}

TEST(who_waits_gets_what_others_give_back)
{
	struct budget b;
	pthread_t thread;
	void *got;

	budget_init(&b, 100, 1);
	budget_take(&b, 100, 0, NULL);
	pthread_create(&thread, NULL, take_late, &b);
	wait_until_waiting(&b);
	assert_false(budget_take(&b, 1, 20000, NULL)); /* one may wait: at once */
	budget_give(&b, 100);
	pthread_join(thread, &got);
	assert_ptr_equal(got, &b);
	budget_release(&b);
}

TEST(nobody_waits_for_who_has_gone)
{
	atomic_bool stop = true;
	struct budget b;

	budget_init(&b, 1, 1);
	budget_take(&b, 1, 0, NULL);
	assert_false(budget_take(&b, 1, 60000, &stop));
	budget_release(&b);
}

/* ---- turns */

struct asker {
	struct turns *turns;
	const char *client;
	bool got;
	pthread_t thread;
};

static void *ask(void *asker)
{
	struct asker *a = asker;

	a->got = turns_take(a->turns, str_of(a->client), 20000, NULL);
	return NULL;
}

static void start(struct asker *a, struct turns *t, const char *client, unsigned nwaiting)
{
	unsigned running, waiting = 0;

	*a = (struct asker){ .turns = t, .client = client };
	pthread_create(&a->thread, NULL, ask, a);
	for (int i = 0; i < 10000 && waiting != nwaiting; i++) {
		usleep(1000);
		turns_count(t, &running, &waiting);
	}
	assert_int_equal(waiting, nwaiting);
}

TEST(nobody_takes_the_last_turn)
{
	struct turns *t = turns_new(3, 4);

	assert_true(turns_take(t, STR("greedy"), 0, NULL));
	assert_true(turns_take(t, STR("greedy"), 0, NULL));
	assert_false(turns_take(t, STR("greedy"), 1, NULL));
	assert_true(turns_take(t, STR("modest"), 0, NULL));
	turns_give(t, STR("greedy"));
	assert_true(turns_take(t, STR("greedy"), 0, NULL));
	turns_free(t);
	t = turns_new(1, 4); /* but of one, that one */
	assert_true(turns_take(t, STR("greedy"), 0, NULL));
	turns_free(t);
}

TEST(clients_hold_what_they_have_not_given_back)
{
	struct holds *h = holds_new();

	holds_add(h, STR("a"), 10);
	holds_add(h, STR("b"), 1);
	holds_add(h, STR("a"), 5);
	assert_int_equal(holds_of(h, STR("a")), 15);
	assert_int_equal(holds_total(h), 16);
	holds_remove(h, STR("a"), 10);
	assert_int_equal(holds_of(h, STR("a")), 5);
	holds_remove(h, STR("a"), 5);
	assert_int_equal(holds_of(h, STR("a")), 0);
	assert_int_equal(holds_of(h, STR("b")), 1);
	assert_int_equal(holds_total(h), 1);
	holds_free(h);
}

TEST(a_turn_goes_to_who_has_fewest)
{
	struct turns *t = turns_new(2, 4);
	struct asker greedy, modest;

	assert_true(turns_take(t, STR("greedy"), 0, NULL));
	assert_true(turns_take(t, STR("other"), 0, NULL));
	assert_false(turns_take(t, STR("greedy"), 1, NULL));
	start(&greedy, t, "greedy", 1);
	start(&modest, t, "modest", 2);
	turns_give(t, STR("other"));
	pthread_join(modest.thread, NULL); /* it came later */
	assert_true(modest.got);
	turns_give(t, STR("greedy"));
	pthread_join(greedy.thread, NULL);
	assert_true(greedy.got);
	turns_free(t);
}

TEST(who_waits_most_makes_room)
{
	struct turns *t = turns_new(1, 2);
	struct asker first, second, modest;

	assert_true(turns_take(t, STR("greedy"), 0, NULL));
	start(&first, t, "greedy", 1);
	start(&second, t, "greedy", 2);
	assert_false(turns_take(t, STR("greedy"), 20000, NULL)); /* at once */
	start(&modest, t, "modest", 2);
	pthread_join(second.thread, NULL);
	assert_false(second.got);
	turns_give(t, STR("greedy"));
	pthread_join(modest.thread, NULL);
	turns_give(t, STR("modest"));
	pthread_join(first.thread, NULL);
	assert_true(modest.got && first.got);
	turns_free(t);
}

TEST(many_of_a_client_wait_for_each_other)
{
	struct turns *t = turns_new(1, 4);
	struct asker bombs[2], other, modest;
	unsigned running, waiting;

	assert_true(turns_take(t, STR("greedy"), 0, NULL));
	start(&bombs[0], t, "greedy", 1);
	start(&bombs[1], t, "greedy", 2);
	start(&other, t, "other", 3);
	start(&modest, t, "modest", 4);
	turns_give(t, STR("greedy"));
	pthread_join(other.thread, NULL); /* not who was last */
	turns_count(t, &running, &waiting);
	assert_true(other.got && running == 1 && waiting == 3);
	turns_give(t, STR("other"));
	pthread_join(bombs[0].thread, NULL); /* the first of those who were not */
	turns_give(t, STR("greedy"));
	pthread_join(modest.thread, NULL);
	turns_give(t, STR("modest"));
	pthread_join(bombs[1].thread, NULL);
	assert_true(bombs[0].got && modest.got && bombs[1].got);
	turns_free(t);
}

/* ---- rates */

static unsigned take_many(struct rates *r, const char *client, unsigned n, int64_t now)
{
	const char *limit = "";
	unsigned taken = 0;

	for (unsigned i = 0; i < n; i++)
		taken += rates_take(r, str_of(client), now, &limit) == 0;
	return taken;
}

TEST(a_bucket_fills_up_again)
{
	struct rates *r = rates_new(10, 0);
	const char *limit = "";

	assert_int_equal(take_many(r, "a", 1000, 0), 50);
	assert_int_equal(take_many(r, "b", 1000, 0), 50); /* each has its own */
	assert_true(rates_take(r, STR("a"), 0, &limit) > 0);
	assert_string_equal(limit, "rate-profiles");
	assert_int_equal(take_many(r, "a", 1000, SECOND), 10);
	assert_int_equal(take_many(r, "a", 1000, 1000 * SECOND), 50);
	rates_free(r);
}

TEST(bytes_may_be_owed)
{
	struct rates *r = rates_new(0, 100);
	const char *limit = "";
	double wait;

	assert_int_equal(take_many(r, "a", 100, 0), 100);
	rates_take_bytes(r, STR("a"), 1500, 0); /* 500 were there */
	wait = rates_take(r, STR("a"), 0, &limit);
	assert_true(wait > 9.9 && wait < 10.5);
	assert_string_equal(limit, "rate-bytes");
	assert_true(rates_take(r, STR("a"), 11 * SECOND, &limit) == 0);
	rates_free(r);
}

TEST(a_million_clients_do_not_grow_it)
{
	struct rates *r = rates_new(1, 0);
	unsigned taken = 0;

	take_many(r, "a", 5, 0);
	for (unsigned i = 0; i < 300000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "c%u", i);
		taken += take_many(r, name, 1, SECOND);
	}
	assert_int_equal(taken, 300000);
	rates_free(r);
}

/* ---- refusals */

static unsigned nlines;
static char last_line[2000];

static void log_line(void *ctx, const char *line)
{
	(void)ctx;
	nlines++;
	snprintf(last_line, sizeof(last_line), "%s", line);
}

TEST(refusals_are_counted_listed_and_logged_once_a_second)
{
	struct refusals *r = refusals_new(log_line, NULL);
	struct refusal x = { STR("max-body"), 413, STR("10.0.0.1"), STR("ann"), STR("POST /\"\n"),
			     STR("too large") };
	struct buf json = { 0 };

	for (int i = 0; i < 1000; i++)
		refusals_add(r, &x, SECOND);
	assert_int_equal(nlines, 1);
	refusals_add(r, &x, 3 * SECOND);
	assert_int_equal(nlines, 2);
	assert_non_null(strstr(last_line, "limit=max-body status=413 client=10.0.0.1"));
	assert_non_null(strstr(last_line, "not_logged=999"));
	assert_null(strchr(last_line, '\n'));
	refusals_json(&json, r);
	buf_char(&json, '\0');
	assert_non_null(strstr(json.p, "{\"limit\":\"max-body\",\"count\":1001,"
				       "\"first\":\"1970-01-01T00:00:01Z\","
				       "\"last\":\"1970-01-01T00:00:03Z\"}"));
	assert_non_null(strstr(json.p, "\"what\":\"POST /\\\""));
	assert_true(json.n < 100000);
	buf_release(&json);
	refusals_free(r);
}

TEST(services_have_their_reasons_and_only_so_many_are_told_apart)
{
	struct refusals *r = refusals_new(NULL, NULL);
	char name[200];
	struct buf json = { 0 };

	memset(name, 'x', sizeof(name));
	refusals_add_service(r, STR("web \"1\""), STR("format"), STR("no <pprof>"), SECOND);
	refusals_add_service(r, STR("web \"1\""), STR("max-labels"), STR("65"), 2 * SECOND);
	refusals_add_service(r, STR("web \"1\""), STR("format"), STR("broken"), 3 * SECOND);
	refusals_json(&json, r);
	buf_char(&json, '\0');
	assert_non_null(strstr(json.p, "\"services\":[\n{\"service\":\"web \\\"1\\\"\",\"count\":3,"
				       "\"first\":\"1970-01-01T00:00:01Z\","
				       "\"last\":\"1970-01-01T00:00:03Z\",\"why\":\"broken\","
				       "\"reasons\":[{\"reason\":\"format\",\"count\":2},"
				       "{\"reason\":\"max-labels\",\"count\":1}]}]"));
	/* Names that are too long to be told apart, and those beyond the first. */
	refusals_add_service(r, (struct str){ name, sizeof(name) }, STR("format"), STR(""), SECOND);
	for (int i = 0; i < 1000; i++) {
		int n = snprintf(name, sizeof(name), "s%d", i);

		refusals_add_service(r, (struct str){ name, (size_t)n }, STR("format"), STR(""),
				     SECOND);
	}
	for (int i = 0; i < 20; i++) {
		int n = snprintf(name, sizeof(name), "reason%d", i);

		refusals_add_service(r, STR("s7"), (struct str){ name, (size_t)n }, STR(""),
				     SECOND);
	}
	json.n = 0;
	refusals_json(&json, r);
	buf_char(&json, '\0');
	assert_non_null(strstr(json.p, "{\"service\":null,\"count\":503,"));
	assert_non_null(strstr(json.p, "{\"service\":\"s7\",\"count\":21,"));
	assert_non_null(strstr(json.p, "{\"reason\":\"other\",\"count\":14}"));
	assert_null(strstr(json.p, "\"s999\""));
	buf_release(&json);
	refusals_free(r);
}

TEST(limits_without_end_are_counted_together)
{
	struct refusals *r = refusals_new(NULL, NULL);
	struct buf json = { 0 };

	for (int i = 0; i < 1000; i++) {
		char name[16];
		struct refusal x = { .limit = { name,
						(size_t)snprintf(name, sizeof(name), "l%d", i) } };

		refusals_add(r, &x, SECOND);
	}
	refusals_json(&json, r);
	buf_char(&json, '\0');
	assert_non_null(strstr(json.p, "{\"limit\":\"other\",\"count\":937,"));
	buf_release(&json);
	refusals_free(r);
}
