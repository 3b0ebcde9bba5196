/* option.h - options that are declared once, in a table, and read, set and printed by loops over
 * it.
 *
 * The options live in a plain struct of the caller's; a row of the table says where. C types of the
 * fields: BOOL bool, INT int64_t, FLOAT double, STRING const char * (never NULL), TIME int64_t in
 * nanoseconds, BYTES int64_t (both as base/amount.h reads them), LIST const char * (each value goes
 * before those that were set earlier, with a comma between them), CHOICE int, which is 0 when
 * nothing was chosen, else 1 + the index of the choice in the table. So a struct of options can be
 * copied, and its copy changed for one report. Strings that are set go to the arena that is given.
 *
 * There are two ways to spell values, both Go's: that of a command line (option_set_flag) and that
 * of pprof's shell and URLs (option_set).
 */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum option_type {
	OPTION_BOOL,
	OPTION_INT,
	OPTION_FLOAT,
	OPTION_STRING,
	OPTION_CHOICE,
	OPTION_TIME,
	OPTION_BYTES,
	OPTION_LIST,
};

struct option_def {
	const char *name;
	enum option_type type;
	size_t offset;	      /* of the field in the caller's struct */
	unsigned flags;	      /* the caller's */
	const char *key;      /* in URLs; "" for none */
	const char *spelling; /* what follows the name in a usage text */
	const char *help;     /* lines; the first one is a summary */
};

struct option_choice {
	const char *option, *name, *help;
};

struct option_table {
	const struct option_def *at;
	size_t n;
	const struct option_choice *choices;
	size_t nchoices;
	const void *defaults; /* a struct of options */
};

/* NULL when there is none of that name. */
const struct option_def *option_find(const struct option_table *t, struct str name);
const struct option_def *option_find_key(const struct option_table *t, struct str key);
const struct option_choice *option_find_choice(const struct option_table *t, struct str name);
/* The option that a choice belongs to. */
const struct option_def *option_of_choice(const struct option_table *t,
					  const struct option_choice *c);

/* Sets a field of `options` from a value as it is given to a flag. The text of the error is only
 * the reason: "parse error" or "value out of range". Not for CHOICE, which has no flag. */
bool option_set_flag(const struct option_def *d, void *options, struct arena *a, struct str value,
		     struct err *e);
/* As it is given in the shell, in a URL or in saved settings. */
bool option_set(const struct option_table *t, const struct option_def *d, void *options,
		struct arena *a, struct str value, struct err *e);
/* name=value of the shell, where a choice's name may stand for the option: "cum=true". */
bool option_assign(const struct option_table *t, void *options, struct arena *a, struct str name,
		   struct str value, struct err *e);

/* The value as text, which option_set understands. Nothing is escaped. */
void option_print(struct buf *out, const struct option_table *t, const struct option_def *d,
		  const void *options);
/* Is it what the table's defaults have? */
bool option_is_default(const struct option_table *t, const struct option_def *d,
		       const void *options);

#endif
