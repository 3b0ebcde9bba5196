/* complete.h - what the word before the cursor could become.
 *
 * The first word is a command, a setting, a choice or a macro; after "help" the same; after
 * "name=" a value of that setting; after ">" a file; any other word is a regular expression, for
 * which names of functions stand, quoted so that they match themselves.
 */
#ifndef SHELL_COMPLETE_H
#define SHELL_COMPLETE_H

#include "base/vec.h"
#include "profile/profile.h"

/* Zeroed at first; strings lie in the arena that was given. */
struct completion {
	size_t start;		      /* of the text that a candidate replaces, up to the cursor */
	vec(const char *) candidates; /* sorted, each once */
	bool is_unfinished; /* a candidate is not the whole word: nothing is put after it */
};

/* `line` ends at the cursor. */
void shell_complete(struct completion *c, struct arena *a, const struct profile *p,
		    struct str line);
/* What all candidates begin with; "" if they do not begin with what they replace. */
struct str completion_common(const struct completion *c, struct str line);
void completion_release(struct completion *c);

#endif
