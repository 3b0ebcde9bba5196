#include "cmd/type_of.h"

#include "server/profile_types.h"

enum { MAX_SAMPLE_TYPES = 16 };

/* Of mutexes and blocking the sample types are the same. */
static const char *const told_by_files[] = { "mutex",  "block", "threadcreate", "goroutine",
					     "allocs", "heap",	"cpu" };

struct str type_of_profile(const struct profile *p, struct str file)
{
	struct str names[MAX_SAMPLE_TYPES], found;
	size_t n = p->ntypes < MAX_SAMPLE_TYPES ? p->ntypes : MAX_SAMPLE_TYPES;

	for (size_t i = 0; i < n; i++) {
		names[i] = profile_str(p, p->types[i].type);
		if (str_eq(names[i], STR("threadcreate")))
			return STR("threadcreate");
	}
	found = profile_type_of_samples(names, n);
	for (size_t i = 0; !found.n && i < sizeof(told_by_files) / sizeof(*told_by_files); i++)
		if (str_contains(file, str_of(told_by_files[i])))
			found = str_of(told_by_files[i]);
	return found;
}
