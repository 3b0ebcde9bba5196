#include "agent/profiles.h"

#include <errno.h>
#include <string.h>

#include "agent/agent.h"

#define PROFILE(name) extern const struct agent_profile profile_##name;
#include "agent/profiles.def"
#undef PROFILE

static const struct agent_profile *const own[] = {
#define PROFILE(name) &profile_##name,
#include "agent/profiles.def"
#undef PROFILE
};
enum { OWN = sizeof(own) / sizeof(*own) };

/* Those of profiles.def, then the program's; in no order. */
static const struct agent_profile *any_at(unsigned i)
{
	return i < OWN ? own[i] : custom_profile_at(i - OWN);
}

const struct agent_profile *profile_find(const char *name)
{
	const struct agent_profile *p;

	for (unsigned i = 0; (p = any_at(i)); i++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

/* The next name after `last`, or the first of all: there are few. */
static const struct agent_profile *after(const struct agent_profile *last)
{
	const struct agent_profile *p, *next = NULL;

	for (unsigned i = 0; (p = any_at(i)); i++)
		if ((!last || strcmp(p->name, last->name) > 0) &&
		    (!next || strcmp(p->name, next->name) < 0))
			next = p;
	return next;
}

const struct agent_profile *profile_at(unsigned i)
{
	const struct agent_profile *p = after(NULL);

	while (p && i-- > 0)
		p = after(p);
	return p;
}

uint32_t profile_count(const struct agent_profile *p)
{
	return p->count ? p->count() : custom_profile_count(p);
}

bool profile_collect(const struct agent_profile *p, struct record *r)
{
	*r = (struct record){ .profile = p, .time = wall_ns() };
	if (!p->collect(r))
		return false;
	if (r->has_failed)
		errno = ENOMEM;
	return !r->has_failed;
}
