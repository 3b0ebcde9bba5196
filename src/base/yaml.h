/* yaml.h - YAML text as a tree whose parts know their lines.
 *
 * JSON is YAML, too. Aliases, which could stand for a great deal, are refused; so is what is nested
 * deeply, and a name that is there twice.
 */
#ifndef BASE_YAML_H
#define BASE_YAML_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

enum tree_kind { TREE_TEXT, TREE_LIST, TREE_MAP };

struct tree {
	enum tree_kind kind;
	size_t line;	   /* from 1 */
	struct str text;   /* of TREE_TEXT; "" of what is null, too */
	struct str *names; /* of the parts of TREE_MAP */
	struct tree *at;   /* parts */
	size_t n;
};

/* All of it lies in `a`; an empty document is an empty text. The error begins with the line. */
bool tree_read(struct arena *a, struct str yaml, struct tree *out, struct err *e);
/* NULL: there is none of that name, or it is no map. */
const struct tree *tree_find(const struct tree *map, const char *name);
bool tree_is_empty(const struct tree *t);
/* "line 7: ..." of something in the tree. Returns false. */
bool tree_fail(const struct tree *at, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
