#include "test.h"

#include "http/target.h"

static struct http_target parsed(struct arena *a, const char *text)
{
	struct http_target t;
	struct err e;

	if (!http_target_parse(a, str_of(text), &t, &e))
		fail_msg("%s: %s", text, e.text);
	return t;
}

static bool is(struct str s, const char *want)
{
	return str_eq(s, str_of(want));
}

TEST(path_and_parameters_are_decoded)
{
	struct arena a = { 0 };
	struct http_target t = parsed(&a, "/ui/a%20b?f=x%2By+z&n=&f=second&flag");

	assert_true(is(t.path, "/ui/a b"));
	assert_true(is(t.raw_query, "f=x%2By+z&n=&f=second&flag"));
	assert_int_equal(t.nparams, 4);
	assert_true(is(http_target_param(&t, "f"), "x+y z"));
	assert_true(is(http_target_param(&t, "n"), ""));
	assert_true(is(http_target_param(&t, "flag"), ""));
	assert_true(is(http_target_param(&t, "nosuch"), ""));
	arena_release(&a);
}

TEST(no_query_and_an_empty_one)
{
	struct arena a = { 0 };

	assert_null(parsed(&a, "/").raw_query.p);
	assert_int_equal(parsed(&a, "/?").nparams, 0);
	assert_int_equal(parsed(&a, "/?&&=&").nparams, 0);
	arena_release(&a);
}

TEST(what_is_not_well_formed)
{
	struct arena a = { 0 };
	struct http_target t = parsed(&a, "/?a=%zz&b=%4&c=1;d=2&e=%41");
	struct err e;

	assert_int_equal(t.nparams, 1);
	assert_true(is(http_target_param(&t, "e"), "A"));
	assert_false(http_target_parse(&a, STR("/%"), &t, &e));
	assert_false(http_target_parse(&a, STR("ui"), &t, &e));
	assert_false(http_target_parse(&a, STR(""), &t, &e));
	arena_release(&a);
}

TEST(number_of_parameters_is_limited)
{
	struct arena a = { 0 };
	struct buf text = { 0 };

	buf_puts(&text, "/?");
	for (int i = 0; i < 5000; i++)
		buf_puts(&text, "a=1&");
	buf_char(&text, '\0');
	assert_int_equal(parsed(&a, text.p).nparams, 1000);
	buf_release(&text);
	arena_release(&a);
}

TEST(escaped_text_reads_as_the_same)
{
	struct arena a = { 0 };
	struct buf text = { 0 };
	const char *all = "a b+c&d=e%f/g?h#i\xc3\xa4~";
	struct http_target t;

	buf_puts(&text, "/?x=");
	http_put_escaped(&text, str_of(all));
	buf_char(&text, '\0');
	t = parsed(&a, text.p);
	assert_true(is(http_target_param(&t, "x"), all));
	buf_release(&text);
	arena_release(&a);
}
