#include "server/groups.h"

#include "base/path.h"
#include "report/shorten.h"
#include "store/store.h"

static const struct {
	const char *category, *pattern;
} categories[] = {
#define CATEGORY(category, pattern) { category, pattern },
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

struct str group_category(void *ctx, struct str function, struct str file, struct str module)
{
	(void)ctx, (void)file, (void)module;
	for (size_t i = 0; i < sizeof(categories) / sizeof(*categories); i++)
		if (store_rule_fits(str_of(categories[i].pattern), function))
			return str_of(categories[i].category);
	return STR("other");
}
