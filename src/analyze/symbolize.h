/* symbolize.h - gives a merged profile its names, as -symbolize says: local files first, then the
 * servers it came from, then demangling. */
#ifndef ANALYZE_SYMBOLIZE_H
#define ANALYZE_SYMBOLIZE_H

#include "analyze/options.h"
#include "base/buf.h"

struct asm_style;
struct fetch_remote;
struct profile;

/* Names that cannot be found are told in `warnings`; only a server's failure is an error. `remote`
 * knows the servers; NULL if there are none. */
bool symbolize(struct arena *a, struct profile *p, const struct analyze_options *o,
	       struct fetch_remote *remote, struct buf *warnings, struct err *e);
/* How instructions are spelled: as by the objdump that pprof would find. */
struct asm_style asm_style(const struct analyze_options *o);

#endif
