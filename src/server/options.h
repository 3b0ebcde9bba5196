/* options.h - the options of `kiln serve` and their table. options.def has the rows.
 *
 * Strings are never NULL; they are literals or lie in the arena that the options were read into.
 */
#ifndef SERVER_OPTIONS_H
#define SERVER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"

#define SERVER_FIELD_BOOL bool
#define SERVER_FIELD_INT int64_t
#define SERVER_FIELD_FLOAT double
#define SERVER_FIELD_STRING const char *
#define SERVER_FIELD_TIME int64_t
#define SERVER_FIELD_BYTES int64_t
#define SERVER_FIELD_LIST const char *

struct server_options {
#define OPT(type, field, flag, profefe, initial, value, help) SERVER_FIELD_##type field;
#include "server/options.def"
#undef OPT
};

extern const struct option_table server_option_table;
extern const struct server_options server_defaults;

/* Sets what a YAML file says. Errors name the file and the line. */
bool config_read_file(struct server_options *o, struct arena *a, const char *path, struct err *e);
/* The same of text in memory, for tests. */
bool config_read(struct server_options *o, struct arena *a, struct str yaml, struct err *e);
/* Sets what the environment says: KILN_SERVE_MAX_MEMORY=2GB. A variable that begins so but is no
 * option is an error. */
bool config_read_environment(struct server_options *o, struct arena *a, char **environment,
			     struct err *e);
/* "KILN_SERVE_MAX_MEMORY" of an option. */
void config_variable(struct buf *out, const struct option_def *d);
/* Is everything set that must be, and within its bounds? */
bool server_options_check(const struct server_options *o, struct err *e);

#endif
