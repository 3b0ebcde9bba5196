/* usage.h - texts made from the tables of options and commands.
 *
 * `program` is the name that kiln was started under. Under the name of pprof the texts are pprof's,
 * to the byte; otherwise kiln's own options and commands are listed too.
 */
#ifndef ANALYZE_USAGE_H
#define ANALYZE_USAGE_H

#include "base/buf.h"

/* What -help prints. */
void usage_write(struct buf *out, const char *program);
/* What "help" prints in the shell. */
void usage_shell(struct buf *out, const char *program);
/* What "help NAME" prints in the shell; false if there is no command, setting or choice of that
 * name. `sample_types` are the profile's, with blanks between them. */
bool usage_topic(struct buf *out, struct str name, struct str sample_types);
/* All flags, one a line, for completion. */
void usage_complete(struct buf *out);
/* The options' part of the manual page, in scdoc's language. */
void usage_scdoc(struct buf *out);

#endif
