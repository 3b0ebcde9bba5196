/* settings.h - named sets of options, in pprof's file, which pprof itself reads as well. */
#ifndef WEB_SETTINGS_H
#define WEB_SETTINGS_H

#include "analyze/options.h"
#include "base/vec.h"

struct setting {
	const char *name;
	struct analyze_options options; /* those that are not saved are 0 */
};

struct settings {
	struct arena arena;
	vec(struct setting) all;
};

/* A file that is not there has none. Errors are pprof's. Release it in any case. */
bool settings_read(struct settings *s, const char *path, struct err *e);
/* All at once: who reads the file meanwhile finds the old or the new one. */
bool settings_write(const struct settings *s, const char *path, struct err *e);
void settings_release(struct settings *s);

/* Replaces the one of that name, or adds it. */
void settings_put(struct settings *s, struct str name, const struct analyze_options *options);
/* False: there is none. */
bool settings_remove(struct settings *s, struct str name);

/* The text of the file. */
void settings_print(struct buf *out, const struct settings *s);
bool settings_parse(struct settings *s, struct str text, struct err *e);

#endif
