/* regex_tree.h - the parsed form of a regular expression; private to regex*.c.
 *
 * Nodes live in the arena given to regex_parse. Flags such as (?i) are gone: each node says for
 * itself what they meant to it.
 */
#ifndef BASE_REGEX_TREE_H
#define BASE_REGEX_TREE_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define REGEX_NO_MAX UINT32_MAX

enum regex_op {
	REGEX_EMPTY,
	REGEX_LITERAL, /* one code point */
	REGEX_CLASS,
	REGEX_ANY,
	REGEX_ANY_NOT_NEWLINE,
	REGEX_BEGIN_TEXT,
	REGEX_END_TEXT,
	REGEX_BEGIN_LINE,
	REGEX_END_LINE,
	REGEX_WORD_BOUNDARY,
	REGEX_NO_WORD_BOUNDARY,
	REGEX_CAPTURE,
	REGEX_CONCAT,
	REGEX_ALTERNATE,
	REGEX_REPEAT,
};

/* A part of a character class: a range, or a Unicode property when `property` is set. */
struct regex_item {
	uint32_t low, high;
	const char *property; /* as PCRE2 spells it */
	bool negated;	      /* of a property */
	bool exact;	      /* ignoring case adds nothing to it */
};

struct regex_node {
	enum regex_op op;
	bool fold;		 /* literal, class: ignore case */
	bool lazy;		 /* repeat: as few as possible */
	bool negated;		 /* class */
	bool can_be_empty;	 /* may match the empty string */
	uint32_t rune;		 /* literal */
	uint32_t predicate;	 /* class, literal with fold: its number, from 0 */
	uint32_t min, max;	 /* repeat */
	uint32_t group;		 /* capture: 1 and up */
	uint32_t height;	 /* of the tree under it */
	uint32_t repeat_product; /* largest product of counts nested under it, 1 without any */
	uint64_t size;		 /* instructions it takes with all repeats written out */
	struct regex_node *child, *next;
	const struct regex_item *items; /* class */
	size_t nitems;
};

struct regex_tree {
	struct regex_node *root;
	uint32_t ngroups, npredicates;
};

/* Fails with ERR_USAGE and Go's text. */
bool regex_parse(struct arena *a, struct str pattern, struct regex_tree *out, struct err *e);
/* Sets "error parsing regexp: CODE: `FRAGMENT`" and returns false. */
bool regex_error(struct err *e, const char *code, struct str fragment);

/* Appends the node as a pattern for regex_pcre_compile, which knows the options it relies on. */
void regex_emit(struct buf *out, const struct regex_node *node);
/* NULL when it is more than PCRE2 can take. */
pcre2_code *regex_pcre_compile(struct str pattern);

/* A matcher that never goes back in the subject: it follows all alternatives at once. Slow, but its
 * time is at most the product of the sizes of subject and pattern. One may serve many threads. */
struct regex_nfa;
struct regex_span;
struct regex_nfa *regex_nfa_new(const struct regex_tree *tree);
void regex_nfa_free(struct regex_nfa *nfa);
/* `valid_utf8` must be that. With ngroups 0 it only tells whether there is a match. */
bool regex_nfa_find(const struct regex_nfa *nfa, struct str valid_utf8, struct regex_span *groups,
		    size_t ngroups);

#endif
