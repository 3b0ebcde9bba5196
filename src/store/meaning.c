#include "store/meaning.h"

enum meaning meaning_of(struct str profile_type, struct str sample_type)
{
	static const char *const gauges[] = { "goroutine", "threadcreate", "threads" };

	if (str_has_prefix(sample_type, STR("inuse_")))
		return MEANING_GAUGE;
	for (size_t i = 0; i < sizeof(gauges) / sizeof(*gauges); i++)
		if (str_eq(sample_type, str_of(gauges[i])) ||
		    str_eq(profile_type, str_of(gauges[i])))
			return MEANING_GAUGE;
	return MEANING_COUNTER;
}
