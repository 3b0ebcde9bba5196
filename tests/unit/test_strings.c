/* A table of strings, and one that is used again. */
#include "test.h"

#include <stdio.h>

#include "base/strings.h"

static void fill(struct strings *t, const char *prefix, uint32_t n)
{
	for (uint32_t i = 1; i <= n; i++) {
		char text[40];

		snprintf(text, sizeof(text), "%s%u", prefix, i);
		assert_int_equal(strings_add(t, str_of(text)), i);
		assert_int_equal(strings_add(t, str_of(text)), i);
	}
}

static void check(const struct strings *t, const char *prefix, uint32_t n)
{
	assert_int_equal(t->n, n + 1);
	for (uint32_t i = 1; i <= n; i++) {
		char text[40];

		snprintf(text, sizeof(text), "%s%u", prefix, i);
		assert_int_equal(strings_find(t, str_of(text)), i);
		assert_true(str_eq(t->at[i], str_of(text)));
	}
}

/* Small ones keep their memory, large ones do not; nothing of before is found in either. */
TEST(a_cleared_table_is_as_new)
{
	struct strings t;

	strings_init(&t);
	for (uint32_t round = 0; round < 6; round++) {
		uint32_t n = round % 2 ? 50000 : 100;

		fill(&t, round % 3 ? "a" : "b", n);
		check(&t, round % 3 ? "a" : "b", n);
		strings_clear(&t, 64 << 10);
		assert_int_equal(t.n, 1);
		assert_int_equal(t.at[0].n, 0);
		assert_int_equal(strings_find(&t, STR("a1")), 0);
		assert_int_equal(strings_find(&t, STR("b1")), 0);
		assert_true(arena_bytes(&t.bytes) <= 256 << 10);
	}
	strings_release(&t);
}
