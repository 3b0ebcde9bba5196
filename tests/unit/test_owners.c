#include "server/owners.h"

#include "test.h"

#include "base/arena.h"

static struct owners *rules(const char *text)
{
	struct err e;
	struct owners *o = owners_new(str_of(text), &e);

	if (!o)
		fail_msg("%s", e.text);
	return o;
}

static void expect(struct owners *o, const char *service, const char *function, const char *owner)
{
	struct str found = owners_find(o, str_of(service), str_of(function));

	if (!str_eq(found, str_of(owner)))
		fail_msg("%s of %s: %.*s, not %s", function, service, STR_ARG(found), owner);
	/* As a group, the same. */
	if (*service) {
		found = group_owner(owners_of_service(o, str_of(service)), str_of(function),
				    STR(""), STR(""));
		assert_true(str_eq(found, str_of(owner)));
	}
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
	assert_true(
		str_eq(owners_find(o, STR("web"), (struct str){ name, sizeof(name) }), NO_OWNER));
	memset(name, 'x', sizeof(name));
	assert_true(
		str_eq(owners_find(o, STR("web"), (struct str){ name, sizeof(name) }), NO_OWNER));
	owners_free(o);
}
