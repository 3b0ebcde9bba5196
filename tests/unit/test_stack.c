/* The agent's tables of stacks, and of sums by them. */
#include "agent/stack.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "agent/memory.h"
#include "test.h"

enum { STACKS = 40000, THREADS = 4, FRAMES = 3, SLOTS = 1 << 17, ROOM = SLOTS / 2 };

static uint32_t add(uint32_t i)
{
	frame_t frames[FRAMES] = { i, i / 7, 12345 };

	return stack_add(frames, FRAMES);
}

/* Each thread meets the same stacks, in an order of its own; a stack has one number. */
static void *add_all(void *ctx)
{
	uint32_t *numbers = ctx, step = numbers[0];

	for (uint32_t i = 0, at = 0; i < STACKS; i++, at = (at + step) % STACKS)
		numbers[at] = add(at);
	return NULL;
}

TEST(many_stacks_of_many_threads)
{
	static const uint32_t steps[THREADS] = { 1, 7, 39999, 11 };
	uint32_t *numbers[THREADS];
	pthread_t threads[THREADS];

	for (uint32_t t = 0; t < THREADS; t++) {
		numbers[t] = calloc(STACKS, sizeof(**numbers));
		numbers[t][0] = steps[t];
		assert_int_equal(pthread_create(&threads[t], NULL, add_all, numbers[t]), 0);
	}
	for (uint32_t t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	for (uint32_t i = 0; i < STACKS; i++) {
		uint32_t n;
		const frame_t *frames = stack_frames(numbers[0][i], &n);

		for (uint32_t t = 1; t < THREADS; t++)
			assert_int_equal(numbers[t][i], numbers[0][i]);
		assert_int_equal(n, FRAMES);
		assert_int_equal(frames[0], i);
		assert_int_equal(frames[1], i / 7);
	}
	assert_int_equal(stacks_count(), STACKS);
	assert_int_equal(stacks_lost(), 0);
	for (uint32_t t = 0; t < THREADS; t++)
		free(numbers[t]);
}

/* What finds no room is counted, and what is there stays. */
TEST(more_stacks_than_there_is_room_for)
{
	uint32_t first = add(0);

	for (uint32_t i = 0; i < SLOTS; i++)
		add(i);
	assert_int_equal(stacks_count(), ROOM);
	assert_int_equal(stacks_lost(), SLOTS - ROOM);
	assert_int_equal(add(0), first);
}

TEST(buckets_by_stack_and_labels)
{
	struct buckets b = { 0 };

	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 1; i <= STACKS; i++)
			bucket_add(bucket_of(&b, i, i % 3), 0, i);
	assert_int_equal(buckets_count(&b), STACKS);
	for (uint32_t i = 0; i < STACKS; i++) {
		struct bucket *at = bucket_at(&b, i);

		assert_int_equal(at->labels, at->stack % 3);
		assert_true(at->values[0] == 2.0 * at->stack);
	}
	assert_ptr_not_equal(bucket_of(&b, 1, 1), bucket_of(&b, 1, 2));
	buckets_reset(&b);
	assert_int_equal(buckets_count(&b), 0);
}

/* Whoever has few touches few pages. */
TEST(few_buckets_are_small)
{
	struct buckets b = { 0 };
	unsigned char is_there[512];
	unsigned pages = 0;

	for (uint32_t i = 1; i <= 50; i++)
		bucket_of(&b, i * 40, 0);
	assert_int_equal(mincore(b.index, SLOTS * sizeof(uint32_t), is_there), 0);
	for (uint32_t i = 0; i < SLOTS * sizeof(uint32_t) / 4096; i++)
		pages += is_there[i] & 1;
	assert_in_range(pages, 1, 2);
	buckets_reset(&b);
}

/* Samples are always new: what a profile has seen goes with it. */
TEST(stacks_of_a_profile_end_with_it)
{
	struct sequences s = STACKS_INIT;
	size_t before = pages_total();
	uint32_t n;

	for (uint32_t profile = 0; profile < 3; profile++) {
		for (uint64_t i = 0; i < ROOM; i++)
			assert_int_not_equal(sequence_add(&s, &i, 1), 0);
		assert_int_equal(sequence_add(&s, &(uint64_t){ ROOM }, 1), 0);
		assert_int_equal(s.lost, 1);
		sequences_reset(&s);
		assert_int_equal(s.lost, 0);
		assert_int_equal(pages_total(), before);
	}
	assert_int_equal(*sequence_words(&s, sequence_add(&s, &(uint64_t){ 7 }, 1), &n), 7);
	assert_int_equal(n, 1);
	sequences_reset(&s);
}
