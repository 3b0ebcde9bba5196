/* test.h - a unit test registers itself; one program per test file. Include it in one file only.
 *
 *	TEST(empty_names_are_equal)
 *	{
 *		assert_true(str_eq(STR(""), STR("")));
 *	}
 *
 * prints TAP. Every program runs in the project's root, so files are named as "tests/data/...".
 */
#ifndef UNIT_TEST_H
#define UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define TEST_MAX 200

static struct CMUnitTest test_table[TEST_MAX];
static size_t test_count;

static void test_register(const char *name, CMUnitTestFunction run)
{
	if (test_count == TEST_MAX)
		abort();
	test_table[test_count++] = (struct CMUnitTest){ name, run, NULL, NULL, NULL };
}

#define TEST(name)                                                     \
	static void test_##name(void **state);                         \
	__attribute__((constructor)) static void register_##name(void) \
	{                                                              \
		test_register(#name, test_##name);                     \
	}                                                              \
	static void test_##name(__attribute__((unused)) void **state)

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return _cmocka_run_group_tests("unit", test_table, test_count, NULL, NULL) ? 1 : 0;
}

#endif
