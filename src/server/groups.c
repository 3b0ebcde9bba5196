#include "server/groups.h"

#include "base/path.h"
#include "report/shorten.h"
#include "store/store.h"

static const struct {
	struct str category, pattern;
} categories[] = {
#define CATEGORY(category, pattern) \
	{ { category, sizeof(category) - 1 }, { pattern, sizeof(pattern) - 1 } },
#include "server/categories.def"
#undef CATEGORY
};

struct str group_package(void *ctx, struct str function, struct str file, struct str module)
{
	struct str package = name_package(function);

	(void)ctx, (void)file, (void)module;
	return package.n ? package : STR("(no package)");
}

struct str group_module(void *ctx, struct str function, struct str file, struct str module)
{
	(void)ctx, (void)function, (void)file;
	return module.n ? path_base(module) : STR("(no module)");
}

/* Most patterns do not fit, which their ends tell, or what stands after the first '*': there may be
 * a million names. */
static bool may_fit(struct str pattern, struct str name)
{
	char first = pattern.p[0], last = pattern.p[pattern.n - 1];
	struct str rest = str_from(pattern, 1), text;

	if (!name.n || (last != '*' && last != name.p[name.n - 1]))
		return false;
	if (first != '*')
		return first == name.p[0];
	text = str_cut(&rest, '*');
	return memmem(name.p, name.n, text.p, text.n);
}

struct str group_category(void *ctx, struct str function, struct str file, struct str module)
{
	(void)ctx, (void)file, (void)module;
	for (size_t i = 0; i < sizeof(categories) / sizeof(*categories); i++)
		if (may_fit(categories[i].pattern, function) &&
		    store_rule_fits(categories[i].pattern, function))
			return categories[i].category;
	return STR("other");
}
