#include "cmd/args.h"
#include "cmd/table.h"

#include "test.h"

struct options {
	const char *name;
	int64_t count;
	bool is_on;
};

static const struct option_def rows[] = {
	{ "name", OPTION_STRING, offsetof(struct options, name), 0, "n", "NAME", "A name" },
	{ "count", OPTION_INT, offsetof(struct options, count), ARGS_HIDDEN, "", "N", "A count" },
	{ "on", OPTION_BOOL, offsetof(struct options, is_on), 0, "", "", "A switch" },
};
static const struct options defaults = { .name = "" };
static const struct option_table table = { .at = rows, .n = 3, .defaults = &defaults };

/* The options and what is left, as text; or why not. */
static void check(const char *line, const char *want)
{
	struct arena a = { 0 };
	struct options o = defaults;
	struct buf out = { 0 };
	struct str rest = str_of(line);
	char *words[20], **argv = words;
	int argc = 0;
	struct err e;

	while (rest.n)
		words[argc++] = str_dup(&a, str_cut(&rest, ' '));
	if (args_take_all(&table, &o, &a, &argc, &argv, &e)) {
		buf_printf(&out, "%s %d %d:", o.name, (int)o.count, o.is_on);
		for (int i = 0; i < argc; i++)
			buf_printf(&out, " %s", argv[i]);
	} else {
		buf_puts(&out, e.text);
	}
	buf_char(&out, '\0');
	assert_string_equal(out.p, want);
	buf_release(&out);
	arena_release(&a);
}

TEST(flags_stand_anywhere)
{
	check("", " 0 0:");
	check("a b", " 0 0: a b");
	check("--name x a --on b --count=3 c", "x 3 1: a b c");
	check("a -n x", "x 0 0: a");
	check("-n=x -", "x 0 0: -");
	check("a -- --on b", " 0 0: a --on b");
	check("-- --on -- b", " 0 0: --on -- b");
	check("a --none", "there is no option --none");
	check("a --name", "--name needs a value");
	check("a --count x b", "--count x: parse error");
}

TEST(hidden_rows_are_not_listed)
{
	struct buf out = { 0 };

	args_usage(&out, &table);
	args_complete(&out, &table);
	args_scdoc(&out, &table);
	buf_char(&out, '\0');
	assert_null(strstr(out.p, "count"));
	assert_non_null(strstr(out.p, "-n, --name NAME"));
	assert_non_null(strstr(out.p, "*--name* _NAME_, *-n*"));
	buf_release(&out);
}

TEST(columns_are_as_wide_as_what_is_in_them)
{
	struct buf out = { 0 };
	struct table t;

	table_init(&t, "NAME SIZE# MORE");
	table_cell(&t, STR("longer\033"));
	table_cell_printf(&t, "%d", 7);
	table_cell(&t, STR("x"));
	table_cell(&t, STR("ä"));
	table_cell(&t, STR("12345"));
	table_cell(&t, STR(""));
	table_print(&out, &t);
	buf_char(&out, '\0');
	assert_string_equal(out.p, "NAME       SIZE   MORE\n"
				   "longer?       7   x\n"
				   "ä         12345   \n");
	buf_release(&out);
}
