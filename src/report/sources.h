/* sources.h - source files that a report shows lines of, each read once as long as they fit. */
#ifndef REPORT_SOURCES_H
#define REPORT_SOURCES_H

#include "base/strings.h"
#include "report/report.h"
#include "symbol/symbol.h"

struct source {
	struct source_file file;
	struct str error; /* "" if it was read */
	bool is_read;
};

struct sources {
	struct source_params params;
	struct strings paths;
	struct source *all; /* by path */
	size_t nall;
	struct arena arena;
	size_t bytes, max_bytes; /* of text that is kept because it may be asked for again */
	/* May the file be shown? NULL: all may. This and max_bytes may be set after sources_open.
	 */
	bool (*allows)(const void *ctx, struct str path);
	const void *allows_ctx;
};

/* Looks where the report's options say, by default in the current directory. */
bool sources_open(struct sources *s, const struct report_run *r, struct err *e);
void sources_close(struct sources *s);
/* The file, or why it could not be read; valid until the next call. */
const struct source *sources_find(struct sources *s, struct str path);

#endif
