#include "server/keep_rules.h"

#include "base/amount.h"
#include "base/vec.h"

int64_t *keep_rule_age(struct store_rule *rule, struct str tier)
{
	const struct {
		struct str name;
		int64_t *age;
	} ages[] = {
		{ STR("raw"), &rule->raw_ns },
		{ STR("minute"), &rule->minute_ns },
		{ STR("hour"), &rule->hour_ns },
		{ STR("day"), &rule->day_ns },
	};

	for (size_t i = 0; i < sizeof(ages) / sizeof(*ages); i++)
		if (str_eq(ages[i].name, tier))
			return ages[i].age;
	return NULL;
}

struct store_rule keep_rule_new(struct str service)
{
	return (struct store_rule){
		.service = service, .raw_ns = -1, .minute_ns = -1, .hour_ns = -1, .day_ns = -1
	};
}

/* "raw=2d" */
static bool read_age(struct store_rule *rule, struct str text, struct err *e)
{
	struct str value = text, tier = str_cut(&value, '=');
	int64_t *age = keep_rule_age(rule, tier);

	if (!age || !value.p)
		return err_set(e, ERR_USAGE,
			       "\"%.*s\" is none of raw=AGE, minute=AGE, hour=AGE and day=AGE",
			       STR_ARG(text));
	if (*age >= 0)
		return err_set(e, ERR_USAGE, "%.*s of %.*s is given twice", STR_ARG(tier),
			       STR_ARG(rule->service));
	return amount_parse_time(value, age, e) || err_wrap(e, "%.*s", STR_ARG(text));
}

/* Where the name ends, or SIZE_MAX: the part goes on with the rule before it. */
static size_t name_end(struct str part)
{
	size_t end = SIZE_MAX;

	for (size_t i = 0; i < part.n; i++)
		if (part.p[i] == ':')
			end = i;
	return end;
}

/* The name is that of the rule before, which has no such age yet. */
static bool goes_on(struct store_rule *last, struct str name, struct str age)
{
	int64_t *set = keep_rule_age(last, str_cut(&age, '='));

	return str_eq(last->service, name) && set && *set < 0;
}

bool keep_rules_parse(struct arena *a, struct str text, struct store_rule **rules, size_t *n,
		      struct err *e)
{
	vec(struct store_rule) list = { 0 };
	bool ok = true;

	while (ok && text.n) {
		struct str part = str_trim(str_cut(&text, ','));
		size_t end = name_end(part);

		if (end != SIZE_MAX) {
			struct str name = { part.p, end };

			part = str_from(part, end + 1);
			if (!list.n || !goes_on(&list.at[list.n - 1], name, part))
				vec_push(&list, keep_rule_new(name));
		}
		if (!list.n || !list.at[list.n - 1].service.n)
			ok = err_set(
				e, ERR_USAGE,
				"a rule is written as SERVICE:raw=2d,day=365d, and in \"%.*s\" "
				"there is no service",
				STR_ARG(part));
		else
			ok = read_age(&list.at[list.n - 1], part, e);
	}
	*n = list.n;
	*rules = vec_adopt(a, &list);
	return ok;
}
