#include "server/profile_types.h"

const struct profile_type profile_types[] = {
#define PROFILE_TYPE(type, name, sample, unit, period, period_unit) \
	{ type, name, sample, unit, period, period_unit },
#define SAMPLE_RULE(how, text, type)
#include "server/profile_types.def"
#undef PROFILE_TYPE
#undef SAMPLE_RULE
};
const size_t nprofile_types = sizeof(profile_types) / sizeof(*profile_types);

enum rule_kind { RULE_EQUAL, RULE_PART };

static const struct rule {
	enum rule_kind how;
	const char *text, *type;
} rules[] = {
#define PROFILE_TYPE(type, name, sample, unit, period, period_unit)
#define SAMPLE_RULE(how, text, type) { RULE_##how, text, type },
#include "server/profile_types.def"
#undef PROFILE_TYPE
#undef SAMPLE_RULE
};

const struct profile_type *profile_type_row(struct str type)
{
	for (size_t i = 0; i < nprofile_types; i++)
		if (str_eq(type, str_of(profile_types[i].type)))
			return &profile_types[i];
	return NULL;
}

struct str profile_type_name(struct str type)
{
	const struct profile_type *found = profile_type_row(type);

	return found ? str_of(found->name) : type;
}

struct str profile_type_of_name(struct str name)
{
	static const struct str delta = { "godeltaprof_", 12 };

	if (str_has_prefix(name, delta) && name.n > delta.n)
		name = str_from(name, delta.n);
	for (size_t i = 0; i < nprofile_types; i++)
		if (str_eq(name, str_of(profile_types[i].name)))
			return str_of(profile_types[i].type);
	return name;
}

static bool fits(const struct rule *r, struct str name)
{
	return r->how == RULE_EQUAL ? str_eq(name, str_of(r->text))
				    : str_contains(name, str_of(r->text));
}

struct str profile_type_of_samples(const struct str *names, size_t n)
{
	for (size_t r = 0; r < sizeof(rules) / sizeof(*rules); r++)
		for (size_t i = 0; i < n; i++)
			if (fits(&rules[r], names[i]))
				return str_of(rules[r].type);
	return STR("");
}

bool profile_type_parse_id(struct str text, struct profile_type_id *out)
{
	struct str parts[5];

	for (size_t i = 0; i < 5; i++) {
		if (!text.p)
			return false;
		parts[i] = str_cut(&text, ':');
	}
	*out = (struct profile_type_id){ parts[0], parts[1], parts[2], parts[3], parts[4] };
	return !text.p && out->name.n;
}

void profile_type_print_id(struct buf *out, const struct profile_type_id *id)
{
	buf_printf(out, "%.*s:%.*s:%.*s:%.*s:%.*s", STR_ARG(id->name), STR_ARG(id->sample),
		   STR_ARG(id->unit), STR_ARG(id->period), STR_ARG(id->period_unit));
}

size_t profile_type_homes(const struct profile_type_id *id, struct str types[PROFILE_TYPE_HOMES])
{
	size_t n = 0;

	for (size_t i = 0; i < nprofile_types && n < PROFILE_TYPE_HOMES; i++) {
		const struct profile_type *t = &profile_types[i];
		bool is_there = false;

		for (size_t k = 0; k < n; k++)
			is_there = is_there || str_eq(types[k], str_of(t->type));
		if (!is_there && str_eq(id->name, str_of(t->name)) &&
		    str_eq(id->sample, str_of(t->sample)))
			types[n++] = str_of(t->type);
	}
	if (!n)
		types[n++] = profile_type_of_name(id->name);
	return n;
}
