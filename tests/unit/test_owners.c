#include "server/owners.h"

#include "test.h"

#include "store/store.h"

static struct owners *rules(const char *text)
{
	struct err e;
	struct owners *o = owners_new(str_of(text), &e);

	if (!o)
		fail_msg("%s", e.text);
	return o;
}

static struct str owner_of(struct owners *o, const char *service, struct str function)
{
	return group_owner(owners_of_service(o, str_of(service)), function, STR(""), STR(""));
}

static void expect(struct owners *o, const char *service, const char *function, const char *owner)
{
	struct str found = owner_of(o, service, str_of(function));

	if (!str_eq(found, str_of(owner)))
		fail_msg("%s of %s: %.*s, not %s", function, service, STR_ARG(found), owner);
}

TEST(the_first_rule_that_fits_counts)
{
	struct owners *o = rules("storage=^pread|^pwrite\n"
				 " core team = ^runtime\\.\n\n"
				 "db@^db-\n"
				 "shop@^shop$=^main\\.\n"
				 "rest@^shop=.");

	assert_int_equal(owners_nrules(o), 5);
	expect(o, "web", "pread64", "storage");
	expect(o, "db-1", "pread64", "storage");
	expect(o, "db-1", "anything", "db");
	expect(o, "shop", "main.run", "shop");
	expect(o, "shop2", "main.run", "rest");
	expect(o, "web", "main.run", "(no owner)");
	/* Of no service that is known, rules for services do not hold. */
	expect(o, "", "main.run", "(no owner)");
	expect(o, "", "pwrite", "storage");
	owners_free(o);
}

TEST(blanks_belong_to_patterns)
{
	struct owners *o = rules("new= operator new");

	expect(o, "web", "void* operator new(unsigned long)", "new");
	expect(o, "web", "operator new", "(no owner)");
	owners_free(o);
}

TEST(services_with_the_same_rules_are_one)
{
	struct owners *o = rules("a@^a=x\nb@^b=x");
	void *a = owners_of_service(o, STR("a1"));

	assert_ptr_equal(a, owners_of_service(o, STR("a2")));
	assert_ptr_not_equal(a, owners_of_service(o, STR("b1")));
	assert_ptr_equal(owners_of_service(o, STR("c")), owners_of_service(o, STR("")));
	owners_free(o);
}

TEST(of_several_owners_the_heaviest_is_the_first)
{
	struct owners *o = rules("all=^free$\na@^a\nb@^b\na@^x");
	struct store_top_part parts[] = { { owners_of_service(o, STR("a")), 1, 9 },
					  { owners_of_service(o, STR("b")), 2, 0 },
					  { owners_of_service(o, STR("c")), 0, 8 },
					  { owners_of_service(o, STR("x")), 1.5, 1 },
					  { owners_of_service(o, STR("xb")), 0, 7 } };
	struct arena a = { 0 };
	struct str *found;
	size_t n;

	found = owners_of_parts(&a, STR("f"), parts, 5, &n);
	assert_int_equal(n, 3);
	assert_true(str_eq(found[0], STR("a"))); /* those of two kinds of services together */
	assert_true(str_eq(found[1], STR("b")));
	assert_true(str_eq(found[2], NO_OWNER));
	found = owners_of_parts(&a, STR("free"), parts, 5, &n);
	assert_int_equal(n, 1);
	assert_true(str_eq(found[0], STR("all")));
	found = owners_of_parts(&a, STR("f"), parts + 1, 1, &n);
	assert_int_equal(n, 1);
	assert_true(str_eq(found[0], STR("b")));
	owners_of_parts(&a, STR("f"), parts, 0, &n);
	assert_int_equal(n, 0);
	/* What takes nothing itself is told by what it calls. */
	parts[0].flat = parts[1].flat = parts[3].flat = 0;
	parts[2].cum = 100;
	found = owners_of_parts(&a, STR("f"), parts, 5, &n);
	assert_int_equal(n, 3);
	assert_true(str_eq(found[0], NO_OWNER));
	arena_release(&a);
	owners_free(o);
}

static void refuse(struct str text, const char *why)
{
	struct err e;

	assert_null(owners_new(text, &e));
	assert_int_equal(e.kind, ERR_USAGE);
	if (!strstr(e.text, why))
		fail_msg("%s, not %s", e.text, why);
}

TEST(wrong_rules_are_told)
{
	static char x[1100];
	struct buf many = { 0 };

	memset(x, 'x', sizeof(x));
	memcpy(x, "a=", 2);
	refuse(STR("a"), "a: a rule is written as OWNER=FUNCTION");
	refuse(STR("a="), "a rule is written as");
	refuse(STR("=x"), "an owner is a name");
	refuse(STR("ok=x\nteam=("), "team=(: error parsing regexp: missing closing )");
	refuse(STR("team@[=x"), "error parsing regexp");
	refuse((struct str){ x, 1003 }, "a pattern of 1001 bytes");
	for (int i = 0; i < 257; i++)
		buf_puts(&many, "a=x\n");
	refuse(buf_view(&many), "256 rules are the most");
	buf_release(&many);
}

/* Patterns that would backtrack for ever do not. */
TEST(hostile_patterns_end)
{
	struct owners *o = rules("evil=(a*)*b\nother=(x+x+)+y");
	char name[5000];

	memset(name, 'a', sizeof(name));
	assert_true(str_eq(owner_of(o, "web", (struct str){ name, sizeof(name) }), NO_OWNER));
	memset(name, 'x', sizeof(name));
	assert_true(str_eq(owner_of(o, "web", (struct str){ name, sizeof(name) }), NO_OWNER));
	owners_free(o);
}
