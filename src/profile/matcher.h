/* matcher.h - a regexp over a profile's strings, each of which is matched once. */
#ifndef PROFILE_MATCHER_H
#define PROFILE_MATCHER_H

#include "base/regex.h"
#include "profile/profile.h"

struct matcher {
	const struct profile *p;
	const struct regex *re; /* NULL: matches nothing */
	char *known;		/* by string: 0, 'y' or 'n' */
};

static inline struct matcher matcher_of(struct arena *a, const struct profile *p,
					const struct regex *re)
{
	return (struct matcher){ p, re, re ? arena_many(a, p->strings->n, char) : NULL };
}

static inline bool matches_string(const struct matcher *m, uint32_t string)
{
	char *known = &m->known[string];

	if (!*known)
		*known = regex_match(m->re, profile_str(m->p, string)) ? 'y' : 'n';
	return *known == 'y';
}

static inline bool matches_function(const struct matcher *m, const struct line *l)
{
	const struct function *f;

	if (l->function == NONE)
		return false;
	f = &m->p->functions[l->function];
	return matches_string(m, f->name) || matches_string(m, f->filename);
}

static inline bool matches_mapping(const struct matcher *m, const struct location *loc)
{
	return loc->mapping != NONE && matches_string(m, m->p->mappings[loc->mapping].file);
}

#endif
