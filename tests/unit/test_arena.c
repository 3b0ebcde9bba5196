#include "test.h"

#include "base/arena.h"

TEST(memory_is_zero_and_aligned)
{
	struct arena a = { 0 };

	for (size_t n = 1; n < 300000; n = n * 3 + 1) {
		unsigned char *p = arena_alloc(&a, n);

		assert_int_equal((uintptr_t)p % 16, 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xff, n);
	}
	arena_release(&a);
}

TEST(memory_is_zero_after_a_rewind_too)
{
	struct arena a = { 0 };

	arena_reserve(&a, 1 << 20);
	for (int round = 0; round < 4; round++) {
		unsigned char *small = arena_alloc(&a, 100);
		unsigned char *own = arena_alloc(&a, 3 << 20); /* does not fit what is reserved */
		unsigned char *raw = arena_raw(&a, 5000);
		unsigned char *large = arena_alloc(&a, (size_t)(200000 * (round + 1)));

		assert_int_equal(small[0] | small[99], 0);
		assert_int_equal(own[0] | own[(3 << 20) - 1], 0);
		for (int i = 0; i < 200000 * (round + 1); i++)
			assert_int_equal(large[i], 0);
		memset(small, 1, 100);
		memset(own, 2, 3 << 20);
		memset(raw, 3, 5000);
		memset(large, 4, (size_t)(200000 * (round + 1)));
		arena_rewind(&a);
	}
	arena_release(&a);
}

/* Small arenas leave their memory to the next. */
TEST(memory_of_an_earlier_arena_is_zero)
{
	struct arena arenas[3] = { 0 };

	for (int round = 0; round < 100; round++) {
		for (int k = 0; k < 3; k++) {
			size_t n = (size_t)(round * 700 % 60000 + 1);
			unsigned char *raw = arena_raw(&arenas[k], (size_t)round + 1),
				      *p = arena_alloc(&arenas[k], n);

			for (size_t i = 0; i < n; i++)
				assert_int_equal(p[i], 0);
			memset(raw, 1, (size_t)round + 1);
			memset(p, 2, n);
		}
		arena_join(&arenas[0], &arenas[1]);
		for (int k = 0; k < 3; k++)
			arena_release(&arenas[k]);
	}
}

TEST(adopted_blocks_are_freed_with_the_arena) /* as the leak checker knows */
{
	struct arena a = { 0 }, b = { 0 };

	assert_null(arena_adopt(&a, NULL));
	assert_non_null(arena_adopt(&a, xmalloc(10)));
	assert_non_null(arena_adopt(&b, xmalloc(10)));
	arena_join(&a, &b);
	arena_rewind(&a);
	arena_release(&a);
}
