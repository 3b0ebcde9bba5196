#include "store/meaning.h"

#include <stdbool.h>
#include <stddef.h>

static bool is_one_of(struct str name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(name, str_of(names[i])))
			return true;
	return false;
}

#define IS_ONE_OF(name, names) is_one_of(name, names, sizeof(names) / sizeof(*(names)))

enum meaning meaning_of(struct str profile_type, struct str sample_type)
{
	static const char *const gauges[] = { "goroutine", "goroutines", "threadcreate", "threads",
					      "thread" };
	static const char *const cumulative[] = { "contentions", "delay" };

	if (str_has_prefix(sample_type, STR("inuse_")) || IS_ONE_OF(sample_type, gauges) ||
	    IS_ONE_OF(profile_type, gauges))
		return MEANING_GAUGE;
	if (str_has_prefix(sample_type, STR("alloc_")) || IS_ONE_OF(sample_type, cumulative))
		return MEANING_CUMULATIVE;
	return MEANING_COUNTER;
}
