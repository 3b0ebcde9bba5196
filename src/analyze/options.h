/* options.h - the analyzer's options, reports' names and their table. options.def has the rows.
 *
 * Strings are never NULL; they live in the arena that flags_parse or option_set was given, or are
 * literals. A struct analyze_options may be copied, and the copy changed.
 */
#ifndef ANALYZE_OPTIONS_H
#define ANALYZE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"

/* SORT_CUM, GRANULARITY_LINES and so on: the values of all CHOICE options. */
enum analyze_choice {
	CHOICE_DEFAULT,
#define CHOICE(field, constant, name, help) constant,
#include "analyze/options.def"
};

#define OPTION_FIELD_BOOL bool
#define OPTION_FIELD_INT int64_t
#define OPTION_FIELD_FLOAT double
#define OPTION_FIELD_STRING const char *
#define OPTION_FIELD_CHOICE int /* enum analyze_choice */

struct analyze_options {
#define OPT(type, field, initial, key, flags, help) OPTION_FIELD_##type field;
#define INPUT(section, type, field, initial, spelling, help) OPTION_FIELD_##type field;
#include "analyze/options.def"
};

/* Flags of a row. All but those of OPT rows are a section of the usage text. */
enum analyze_option_flag {
	ANALYZE_SAVED = 1,  /* part of the web page's saved settings */
	ANALYZE_SOURCE = 2, /* what to fetch, and how */
	ANALYZE_MISC = 4,
	ANALYZE_LEGACY = 8,  /* another spelling of sample_index */
	ANALYZE_KILN = 16,   /* pprof does not have it */
	ANALYZE_HIDDEN = 32, /* for our own scripts */

	/* Any of these: a flag of the command line only, not a setting of a report. */
	ANALYZE_INPUT =
		ANALYZE_SOURCE | ANALYZE_MISC | ANALYZE_LEGACY | ANALYZE_KILN | ANALYZE_HIDDEN,
};

/* Rows of options.def, in its order; `defaults` is a struct analyze_options. */
const struct option_table *analyze_option_table(void);
extern const struct analyze_options analyze_defaults;

enum analyze_command_flag {
	COMMAND_REGEXP = 1,   /* needs a regular expression, as in -peek=main */
	COMMAND_GRAPH = 2,    /* in the shell: CMD [n] [focus_regex]* [-ignore_regex]* */
	COMMAND_CUM = 4,      /* in the shell: takes -cum */
	COMMAND_REDIRECT = 8, /* in the shell: takes >file */
	COMMAND_KILN = 16,    /* pprof does not have it */
};

struct analyze_command {
	const char *name, *help;
	unsigned flags;
};

extern const struct analyze_command analyze_commands[];
extern const size_t analyze_ncommands;

/* NULL when there is none of that name. */
const struct analyze_command *analyze_command_find(struct str name);

#endif
