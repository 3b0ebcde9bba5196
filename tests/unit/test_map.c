#include "test.h"

#include "base/map.h"
#include "base/strings.h"

static bool same_number(const void *ctx, uint32_t index)
{
	return *(const uint32_t *)ctx == index * 7;
}

TEST(finds_what_was_put_in_and_nothing_else)
{
	struct map m = { 0 };
	uint64_t seed = map_seed();

	for (uint32_t i = 0; i < 10000; i++) {
		uint32_t key = i * 7;

		assert_int_equal(map_put(&m, hash_mix(seed, key), i, same_number, &key), i);
	}
	for (uint32_t key = 0; key < 70000; key++) {
		uint32_t want = key % 7 ? MAP_NONE : key / 7;

		assert_int_equal(map_get(&m, hash_mix(seed, key), same_number, &key), want);
	}
	map_release(&m);
}

TEST(equal_hashes_are_told_apart)
{
	struct map m = { 0 };

	for (uint32_t i = 0; i < 100; i++) {
		uint32_t key = i * 7;

		assert_int_equal(map_put(&m, 42, i, same_number, &key), i);
		assert_int_equal(map_put(&m, 42, 1000, same_number, &key), i);
	}
	map_release(&m);
}

TEST(hash_depends_on_every_byte)
{
	unsigned char bytes[40] = { 0 };

	for (size_t n = 1; n <= sizeof(bytes); n++) {
		uint64_t zero = hash_bytes(1, bytes, n);

		assert_true(zero != hash_bytes(1, bytes, n - 1));
		for (size_t i = 0; i < n; i++) {
			bytes[i] = 1;
			assert_true(hash_bytes(1, bytes, n) != zero);
			bytes[i] = 0;
		}
	}
}

TEST(strings_are_kept_once)
{
	struct strings t;

	strings_init(&t);
	assert_int_equal(strings_add(&t, STR("")), 0);
	assert_int_equal(strings_add(&t, STR("a")), 1);
	assert_int_equal(strings_add(&t, STR("a\0b")), 2);
	assert_int_equal(strings_add(&t, STR("a")), 1);
	assert_int_equal(t.at[2].n, 3);
	strings_release(&t);
}
