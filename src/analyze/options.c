#include "analyze/options.h"

#include <stddef.h>

enum { SAVED = ANALYZE_SAVED };

enum {
	REGEXP = COMMAND_REGEXP,
	GRAPH = COMMAND_GRAPH,
	CUM = COMMAND_CUM,
	REDIRECT = COMMAND_REDIRECT,
	KILN = COMMAND_KILN,
};

#define FIELD(field) offsetof(struct analyze_options, field)

static const struct option_def rows[] = {
#define OPT(type, field, initial, key, flags, help) \
	{ #field, OPTION_##type, FIELD(field), flags, key, "", help },
#define INPUT(section, type, field, initial, spelling, help) \
	{ #field, OPTION_##type, FIELD(field), ANALYZE_##section, "", spelling, help },
#include "analyze/options.def"
};

static const struct option_choice choices[] = {
#define CHOICE(field, constant, name, help) { #field, #name, help },
#include "analyze/options.def"
};

const struct analyze_options analyze_defaults = {
#define OPT(type, field, initial, key, flags, help) .field = initial,
#define INPUT(section, type, field, initial, spelling, help) .field = initial,
#include "analyze/options.def"
};

static const struct option_table table = {
	.at = rows,
	.n = sizeof(rows) / sizeof(*rows),
	.choices = choices,
	.nchoices = sizeof(choices) / sizeof(*choices),
	.defaults = &analyze_defaults,
};

const struct option_table *analyze_option_table(void)
{
	return &table;
}

const struct analyze_command analyze_commands[] = {
#define REPORT(name, flags, help) { #name, help, flags },
#define VIEWER(name, flags, help) { #name, help, flags },
#include "report/reports.def"
};

const size_t analyze_ncommands = sizeof(analyze_commands) / sizeof(*analyze_commands);

const struct analyze_command *analyze_command_find(struct str name)
{
	for (size_t i = 0; i < analyze_ncommands; i++)
		if (str_eq(name, str_of(analyze_commands[i].name)))
			return &analyze_commands[i];
	return NULL;
}
