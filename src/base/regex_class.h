/* regex_class.h - named sets of characters; private to regex*.c. */
#ifndef BASE_REGEX_CLASS_H
#define BASE_REGEX_CLASS_H

#include <stdbool.h>

#include "base/regex_tree.h"
#include "base/str.h"
#include "base/vec.h"

struct regex_items {
	struct regex_item *at;
	size_t n, cap;
};

/* \d \s \w and their opposites, by letter. Returns false when the letter names none. */
bool regex_add_perl(struct regex_items *items, char letter, bool fold);
/* "[:alpha:]", "[:^alpha:]" ... Returns false when the name is unknown. */
bool regex_add_posix(struct regex_items *items, struct str name, bool fold);
/* A Unicode category or script as Go spells it, or "Any". Returns false when unknown. */
bool regex_add_unicode(struct regex_items *items, struct str name, bool negated, bool fold);
void regex_add_range(struct regex_items *items, uint32_t low, uint32_t high);

#endif
