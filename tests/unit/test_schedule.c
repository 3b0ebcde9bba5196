/* When targets are profiled. */
#include "test.h"

#include "base/map.h"
#include "collect/schedule.h"

#define S INT64_C(1000000000)

static uint64_t hash_of(unsigned i)
{
	return hash_bytes(1, &i, sizeof(i));
}

TEST(each_comes_once_in_a_round)
{
	for (unsigned i = 0; i < 100; i++) {
		int64_t first = schedule_next(0, 60 * S, 0, hash_of(i)), at = first;

		assert_true(first > 0 && first <= 60 * S);
		for (int round = 1; round < 10; round++) {
			at = schedule_next(at, 60 * S, 0, hash_of(i));
			assert_int_equal(at - first, round * 60 * S);
		}
		/* One that took too long goes on at its place. */
		assert_int_equal(schedule_next(at + 90 * S, 60 * S, 0, hash_of(i)), at + 120 * S);
	}
}

/* Of 6000 targets each second of the minute gets 100: chi-squared of 59 degrees of freedom. */
TEST(they_are_spread_evenly)
{
	unsigned counts[60] = { 0 };
	double sum = 0;

	for (unsigned i = 0; i < 6000; i++)
		counts[schedule_next(0, 60 * S, 0, hash_of(i)) / S % 60]++;
	for (size_t i = 0; i < 60; i++)
		sum += (counts[i] - 100.0) * (counts[i] - 100.0) / 100;
	assert_true(sum < 100); /* p = 0.0006 */
}

TEST(jitter_is_as_wide_as_it_is_said_to_be)
{
	int64_t last = 0;

	for (unsigned i = 0; i < 1000; i++) {
		int64_t at = schedule_next(0, 60 * S, 5 * S, hash_of(i));

		assert_true(at <= 5 * S || at == 60 * S);
		last = at < 60 * S && at > last ? at : last;
	}
	assert_true(last > 4 * S);
}

TEST(backoff_doubles_up_to_its_limit)
{
	static const struct {
		unsigned nfailures;
		int64_t interval, max, want;
	} cases[] = {
		{ 1, 60 * S, 300 * S, 60 * S },	  { 2, 60 * S, 300 * S, 120 * S },
		{ 3, 60 * S, 300 * S, 240 * S },  { 4, 60 * S, 300 * S, 300 * S },
		{ 1000000, S, 300 * S, 300 * S }, { 1, 600 * S, 300 * S, 600 * S },
		{ 9, 600 * S, 300 * S, 600 * S }, { 5, S, 0, S },
	};
	uint64_t seed = 7;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int64_t least = INT64_MAX, most = 0, want = cases[i].want;

		for (int k = 0; k < 1000; k++) {
			int64_t d = schedule_backoff(cases[i].interval, cases[i].nfailures,
						     cases[i].max, random_next(&seed));

			least = d < least ? d : least;
			most = d > most ? d : most;
		}
		assert_true(least >= want - want / 4 && least < want - want / 5);
		assert_true(most <= want + want / 4 && most > want + want / 5);
	}
}

TEST(the_queue_is_in_order)
{
	enum { N = 1000 };
	static struct queued all[N];
	struct queue q = { 0 };
	uint64_t seed = 1;
	int64_t last = 0;
	size_t n = 0;

	assert_null(queue_first(&q));
	for (size_t i = 0; i < N; i++)
		queue_put(&q, &all[i], (int64_t)(random_next(&seed) % 500));
	for (size_t i = 0; i < N; i += 3) /* some change their minds */
		queue_put(&q, &all[i], (int64_t)(random_next(&seed) % 500));
	for (size_t i = 0; i < N; i += 5)
		queue_remove(&q, &all[i]);
	queue_remove(&q, &all[0]);
	for (struct queued *x = queue_first(&q); x; x = queue_first(&q)) {
		assert_true(x->due >= last);
		assert_int_not_equal((x - all) % 5, 0);
		last = x->due;
		queue_remove(&q, x);
		n++;
	}
	assert_int_equal(n, N - N / 5);
	vec_release(&q.at);
}
