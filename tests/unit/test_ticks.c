#include "agent/ticks.h"

#include <time.h>

#include "test.h"

enum { MILLISECOND = 1000000 };

/* Both clocks are read one after the other, and somebody may come between: once in ten times they
 * agree. */
static int64_t least_difference(int64_t sleep_ns)
{
	int64_t least = INT64_MAX;

	for (int i = 0; i < 10; i++) {
		struct timespec nap = { 0, sleep_ns };
		int64_t start = now_ns(), end, difference;
		uint64_t first = ticks_now(), last;

		nanosleep(&nap, NULL);
		last = ticks_now();
		end = now_ns();
		difference = ticks_between(first, last, end) - (end - start);
		difference = difference < 0 ? -difference : difference;
		least = difference < least ? difference : least;
	}
	return least;
}

TEST(times_are_those_of_the_clock)
{
	ticks_prepare();
	assert_true(least_difference(0) < 5000);
	assert_true(least_difference(MILLISECOND) < 5000);
	assert_true(least_difference(20 * MILLISECOND) < 5000);
}

TEST(nothing_ends_before_it_begins)
{
	uint64_t now;

	ticks_prepare();
	now = ticks_now();
	assert_int_equal(ticks_between(now + MILLISECOND, now, now_ns()), 0);
}
