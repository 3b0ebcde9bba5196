#include "base/option.h"

#include <math.h>

#include "test.h"

struct settings {
	bool trim;
	int64_t count;
	double fraction;
	const char *focus;
	int sort, level;
};

static const struct option_def rows[] = {
	{ "trim", OPTION_BOOL, offsetof(struct settings, trim), 0, "trim", "", "" },
	{ "count", OPTION_INT, offsetof(struct settings, count), 0, "n", "", "" },
	{ "fraction", OPTION_FLOAT, offsetof(struct settings, fraction), 0, "nf", "", "" },
	{ "focus", OPTION_STRING, offsetof(struct settings, focus), 0, "", "", "" },
	{ "sort", OPTION_CHOICE, offsetof(struct settings, sort), 0, "sort", "", "" },
	{ "level", OPTION_CHOICE, offsetof(struct settings, level), 0, "g", "", "" },
};

static const struct option_choice choices[] = {
	{ "sort", "cum", "" },
	{ "sort", "flat", "" },
	{ "level", "lines", "" },
};

static const struct settings defaults = { true, -1, 0.005, "", 2, 0 };
static const struct option_table table = { rows, 6, choices, 3, &defaults };

/* Assigns as in the shell; "" when that worked, else the error. */
static const char *assign(struct settings *s, struct arena *a, const char *name, const char *value)
{
	static struct err e;

	e.text[0] = '\0';
	return option_assign(&table, s, a, str_of(name), str_of(value), &e) ? "" : e.text;
}

static void assert_prints(const struct settings *s, const char *name, const char *want)
{
	struct buf out = { 0 };

	option_print(&out, &table, option_find(&table, str_of(name)), s);
	buf_char(&out, '\0');
	assert_string_equal(out.p, want);
	buf_release(&out);
}

TEST(names_keys_and_choices_are_found)
{
	assert_ptr_equal(option_find(&table, STR("count")), &rows[1]);
	assert_null(option_find(&table, STR("coun")));
	assert_null(option_find(&table, STR("")));
	assert_ptr_equal(option_find_key(&table, STR("n")), &rows[1]);
	assert_null(option_find_key(&table, STR("")));
	assert_ptr_equal(option_find_choice(&table, STR("lines")), &choices[2]);
	assert_ptr_equal(option_of_choice(&table, &choices[2]), &rows[5]);
}

TEST(shell_sets_every_type)
{
	struct settings s = defaults;
	struct arena a = { 0 };

	assert_string_equal(assign(&s, &a, "trim", "No"), "");
	assert_false(s.trim);
	assert_string_equal(assign(&s, &a, "trim", ""), "");
	assert_true(s.trim);
	assert_string_equal(assign(&s, &a, "count", "+10"), "");
	assert_int_equal(s.count, 10);
	assert_string_equal(assign(&s, &a, "fraction", "1e-3"), "");
	assert_true(s.fraction == 0.001);
	assert_string_equal(assign(&s, &a, "focus", "main"), "");
	assert_string_equal(s.focus, "main");
	assert_string_equal(assign(&s, &a, "sort", "cum"), "");
	assert_int_equal(s.sort, 1);
	arena_release(&a);
}

TEST(a_choice_is_set_by_its_own_name)
{
	struct settings s = defaults;
	struct arena a = { 0 };

	assert_string_equal(assign(&s, &a, "cum", "true"), "");
	assert_int_equal(s.sort, 1);
	assert_string_equal(assign(&s, &a, "flat", "0"), "unknown config field \"flat\"");
	assert_string_equal(assign(&s, &a, "flat", ""), "unknown config field \"flat\"");
	assert_int_equal(s.sort, 1);
	arena_release(&a);
}

TEST(what_the_shell_refuses_changes_nothing)
{
	struct settings s = defaults;
	struct arena a = { 0 };

	assert_string_equal(assign(&s, &a, "trim", "maybe"),
			    "illegal value \"maybe\" for bool variable");
	assert_string_equal(assign(&s, &a, "count", "0x10"),
			    "strconv.Atoi: parsing \"0x10\": invalid syntax");
	assert_string_equal(assign(&s, &a, "fraction", "abc"),
			    "strconv.ParseFloat: parsing \"abc\": invalid syntax");
	assert_string_equal(assign(&s, &a, "sort", "lines"), "invalid \"sort\" value \"lines\"");
	assert_string_equal(assign(&s, &a, "sort", ""), "invalid \"sort\" value \"\"");
	assert_string_equal(assign(&s, &a, "x", "1"), "unknown config field \"x\"");
	for (size_t i = 0; i < table.n; i++)
		assert_true(option_is_default(&table, &rows[i], &s));
	arena_release(&a);
}

TEST(flags_are_stricter_about_switches_and_freer_about_numbers)
{
	struct settings s = defaults;
	struct arena a = { 0 };
	struct err e;

	assert_true(option_set_flag(&rows[1], &s, &a, STR("0x1_0"), &e));
	assert_int_equal(s.count, 16);
	assert_true(option_set_flag(&rows[0], &s, &a, STR("F"), &e));
	assert_false(s.trim);
	assert_false(option_set_flag(&rows[0], &s, &a, STR("yes"), &e));
	assert_string_equal(e.text, "parse error");
	assert_false(option_set_flag(&rows[1], &s, &a, STR("9223372036854775808"), &e));
	assert_string_equal(e.text, "value out of range");
	assert_false(option_set_flag(&rows[4], &s, &a, STR("cum"), &e));
	arena_release(&a);
}

TEST(values_print_as_go_prints_them)
{
	static const struct {
		double value;
		const char *text;
	} floats[] = {
		{ 0.005, "0.005" },
		{ 1, "1" },
		{ -0.0, "-0" },
		{ 0.1 + 0.2, "0.30000000000000004" },
		{ 1e-5, "1e-05" },
		{ 1.5e300, "1.5e+300" },
		{ 1e20, "100000000000000000000" },
		{ 1e21, "1e+21" },
		{ 123456.75, "123456.75" },
		{ 0.0001, "0.0001" },
		{ INFINITY, "+Inf" },
		{ -INFINITY, "-Inf" },
		{ NAN, "NaN" },
		{ 5e-324, "5e-324" },
	};
	struct settings s = defaults;

	for (size_t i = 0; i < sizeof(floats) / sizeof(*floats); i++) {
		s.fraction = floats[i].value;
		assert_prints(&s, "fraction", floats[i].text);
	}
	assert_prints(&s, "trim", "true");
	assert_prints(&s, "count", "-1");
	assert_prints(&s, "focus", "");
	assert_prints(&s, "sort", "flat");
	assert_prints(&s, "level", "");
}

TEST(defaults_are_recognized)
{
	struct settings s = defaults;

	for (size_t i = 0; i < table.n; i++)
		assert_true(option_is_default(&table, &rows[i], &s));
	s.sort = 1;
	s.fraction = NAN;
	assert_false(option_is_default(&table, &rows[4], &s));
	assert_false(option_is_default(&table, &rows[2], &s));
}
