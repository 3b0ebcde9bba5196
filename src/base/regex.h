/* regex.h - regular expressions with the syntax, the meaning and the error texts of Go's regexp.
 *
 * That is RE2's syntax: no look-around, no back-references, repeat counts up to 1000. A pattern is
 * parsed and checked here, then rewritten for PCRE2, which matches with its JIT compiler. Matching
 * is leftmost-first, over UTF-8.
 *
 * Time is bounded: a match that makes PCRE2 backtrack too often is started again with a matcher
 * that follows all alternatives at once and never goes back, so the answer is still right.
 *
 * A byte of the subject that is no valid UTF-8 counts as the character U+FFFD, as in Go.
 *
 * One compiled regex may be used by any number of threads at a time.
 */
#ifndef BASE_REGEX_H
#define BASE_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct regex;

/* Byte offsets into the subject; both STR_NONE for a group that took no part in the match. */
struct regex_span {
	size_t start, end;
};

/* NULL and ERR_USAGE with Go's text (error parsing regexp: missing closing ]: `[abc`) when the
 * pattern is wrong. Free with regex_free. */
struct regex *regex_compile(struct str pattern, struct err *e);
void regex_free(struct regex *re);
/* Does it match anywhere in the subject? */
bool regex_match(const struct regex *re, struct str subject);
/* Finds the leftmost match. groups[0] is the whole match, groups[i] the i-th parenthesis; groups
 * that the pattern does not have are set to STR_NONE. Nothing is written when there is no match. */
bool regex_find(const struct regex *re, struct str subject, struct regex_span *groups,
		size_t ngroups);

#endif
