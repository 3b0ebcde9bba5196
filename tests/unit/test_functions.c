#include "test.h"

#include "base/buf.h"
#include "web/functions.h"

static uint32_t number_of(struct functions *t, unsigned owner, const char *text)
{
	return functions_number(t, functions_add(t, owner, str_of(text)));
}

TEST(numbers_are_ids_unless_they_must_last)
{
	struct functions t;

	functions_init(&t, false);
	assert_int_equal(number_of(&t, 0, "main"), 1);
	assert_int_equal(number_of(&t, 0, "work"), 2);
	assert_int_equal(number_of(&t, 1, "main"), 1);
	assert_int_equal(functions_of_number(&t, 2), 2);
	assert_int_equal(functions_of_number(&t, 3), 0);
	functions_release(&t);
}

/* In whatever order, and whoever had them before. */
TEST(lasting_numbers_are_made_of_the_text)
{
	struct functions a, b;
	uint32_t main_number, work;

	functions_init(&a, true);
	functions_init(&b, true);
	main_number = number_of(&a, 0, "main");
	work = number_of(&a, 0, "work");
	number_of(&b, 3, "other");
	assert_int_equal(number_of(&b, 3, "work"), work);
	functions_forget(&b, 3);
	assert_int_equal(functions_of_number(&b, work), 0);
	assert_int_equal(number_of(&b, 4, "main"), main_number);
	assert_int_equal(number_of(&b, 4, "work"), work);
	assert_int_equal(functions_of_number(&b, work), functions_find(&b, STR("work")));
	assert_true(main_number && work && main_number != work);
	functions_release(&a);
	functions_release(&b);
}

TEST(a_parameter_is_a_number_or_a_text)
{
	struct functions t;
	struct buf text = { 0 };
	struct arena a = { 0 };
	uint32_t id;

	functions_init(&t, true);
	id = functions_add(&t, 0, STR("main"));
	buf_printf(&text, "%u", functions_number(&t, id));
	assert_int_equal(functions_find(&t, buf_view(&text)), id);
	assert_int_equal(functions_find(&t, STR("main")), id);
	assert_int_equal(functions_find(&t, STR("0")), 0);
	assert_int_equal(functions_find(&t, STR("4294967295")), 0);
	assert_true(str_eq(functions_text(&t, &a, buf_view(&text)), STR("main")));
	buf_release(&text);
	arena_release(&a);
	functions_release(&t);
}
