#include "agent/signal.h"

#include "test.h"

/* As signal.c has it: ticks each 10 ms. */
struct cpu_pace cpu_pace = { .period = 10000000, .is_uneven = true };

enum { TICKS = 400, TENTHS = 10 };

static struct cpu_timer timer_of(uint32_t chance)
{
	struct cpu_timer t = { .chance = chance };

	t.first = 123 + timer_delay(&t, 0);
	return t;
}

static uint64_t clock_at(const struct cpu_timer *t, uint64_t n)
{
	return timer_begin(t) + n * cpu_pace.period + timer_delay(t, n);
}

TEST(each_period_has_one_tick)
{
	struct cpu_timer t = timer_of(0xdeadbeef);

	assert_int_equal(timer_begin(&t), 123);
	assert_int_equal(timer_due(&t, 0), 0);
	for (uint64_t n = 0; n < TICKS; n++) {
		uint64_t at = clock_at(&t, n);

		assert_true(timer_delay(&t, n) < cpu_pace.period);
		assert_int_equal(timer_due(&t, at - 1), n);
		assert_int_equal(timer_due(&t, at), n + 1);
		assert_int_equal(timer_due(&t, 123 + (n + 1) * cpu_pace.period - 1), n + 1);
	}
}

/* A program that does the same each 10 ms, or each 5. */
TEST(all_of_a_cycle_is_seen)
{
	for (uint64_t part = 1; part <= 2; part++) {
		struct cpu_timer t = timer_of(0x1234567);
		uint64_t cycle = cpu_pace.period / part;
		unsigned seen[TENTHS] = { 0 };

		for (uint64_t n = 0; n < TICKS; n++)
			seen[clock_at(&t, n) % cycle * TENTHS / cycle]++;
		for (int i = 0; i < TENTHS; i++)
			assert_in_range(seen[i], TICKS / TENTHS - 4, TICKS / TENTHS + 4);
	}
}

TEST(even_ticks_go_on_from_the_first)
{
	struct cpu_timer t = timer_of(0x80000000);

	cpu_pace.is_uneven = false;
	assert_int_equal(timer_due(&t, t.first - 1), 0);
	assert_int_equal(timer_due(&t, t.first), 1);
	assert_int_equal(timer_due(&t, t.first + cpu_pace.period - 1), 1);
	assert_int_equal(timer_due(&t, t.first + 7 * cpu_pace.period), 8);
	cpu_pace.is_uneven = true;
}
