/* args.h - the command line of a subcommand: --name value, --name=value, --switch, then the rest.
 */
#ifndef CMD_ARGS_H
#define CMD_ARGS_H

#include "base/option.h"

/* Sets fields of `options` by the table, up to the first argument that is no flag; *argc and *argv
 * become what is left. A name may have one dash or two; a row's key is another name of it. */
bool args_take(const struct option_table *t, void *options, struct arena *a, int *argc,
	       char ***argv, struct err *e);
/* The same, with flags also after arguments and between them, up to a "--". What is left is in `a`.
 */
bool args_take_all(const struct option_table *t, void *options, struct arena *a, int *argc,
		   char ***argv, struct err *e);
/* A flag of a row: it is taken, but not listed. */
enum { ARGS_HIDDEN = 1 };
/* Appends a line per option: its name, the value it takes, its help, its default. */
void args_usage(struct buf *out, const struct option_table *t);
/* Appends the names, one a line, for completion. */
void args_complete(struct buf *out, const struct option_table *t);
/* Appends the options' part of a manual page, in scdoc's language. */
void args_scdoc(struct buf *out, const struct option_table *t);
/* The same for the keys of a file. */
void args_scdoc_keys(struct buf *out, const struct option_table *t);

#endif
