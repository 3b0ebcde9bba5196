#include "agent/live.h"

#include <pthread.h>
#include <stdlib.h>

#include "test.h"

enum { FEW = 200, MANY = 200000, THREADS = 4, ROUNDS = 200000, SLOTS = 4096 };

static void *address_of(uint32_t i)
{
	return (void *)(uintptr_t)(0x7f0012340010u + (uint64_t)i * 48);
}

static void add(uint32_t i)
{
	struct live_sample sample = { (uintptr_t)address_of(i), i + 1, 1, i }, old;

	assert_false(live_add(&sample, &old));
}

static void take(uint32_t i)
{
	struct live_sample sample;

	assert_true(live_may_have(address_of(i)));
	assert_true(live_take(address_of(i), &sample));
	assert_int_equal(sample.size, i + 1);
	assert_int_equal(sample.bucket, i);
}

/* What is added is there until it is taken, and nothing is left. */
static void add_and_take(uint32_t n)
{
	struct live_sample sample;

	for (uint32_t i = 0; i < n; i++)
		add(i);
	assert_int_equal(live_count(), n);
	for (uint32_t i = 0; i < n; i += 2)
		take(i);
	for (uint32_t i = 0; i < n; i += 2)
		assert_false(live_take(address_of(i), &sample));
	for (uint32_t i = 1; i < n; i += 2)
		take(i);
	assert_int_equal(live_count(), 0);
	for (uint32_t i = 0; i < LIVE_FILTER_WORDS; i++)
		assert_int_equal(live_filter[i], 0);
}

/* In this order: shards that have once been large stay so. */
TEST(a_few_samples)
{
	add_and_take(FEW);
	add_and_take(FEW);
}

/* Runs while tables grow and shards become large. */
static void *work(void *ctx)
{
	uint32_t first = 1000000 + *(const uint32_t *)ctx * SLOTS;
	unsigned seed = first;
	bool is_live[SLOTS] = { 0 };

	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t k = (uint32_t)rand_r(&seed) % SLOTS;

		if (is_live[k])
			take(first + k);
		else
			add(first + k);
		is_live[k] = !is_live[k];
	}
	for (uint32_t k = 0; k < SLOTS; k++)
		if (is_live[k])
			take(first + k);
	return NULL;
}

TEST(many_threads)
{
	pthread_t threads[THREADS];
	uint32_t numbers[THREADS];

	for (uint32_t i = 0; i < THREADS; i++) {
		numbers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(live_count(), 0);
}

TEST(many_samples)
{
	add_and_take(MANY);
	add_and_take(FEW);
	assert_int_equal(live_lost(), 0);
}

TEST(an_end_that_was_not_seen)
{
	struct live_sample sample = { (uintptr_t)address_of(7), 10, 1, 1 }, old;

	assert_false(live_add(&sample, &old));
	sample.size = 20;
	assert_true(live_add(&sample, &old));
	assert_int_equal(old.size, 10);
	assert_int_equal(live_count(), 1);
	assert_true(live_take(address_of(7), &old));
	assert_int_equal(old.size, 20);
	assert_int_equal(live_count(), 0);
}
