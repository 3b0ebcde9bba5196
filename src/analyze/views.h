/* views.h - commands that are more than a report printed: pictures, and programs that show things.
 */
#ifndef ANALYZE_VIEWS_H
#define ANALYZE_VIEWS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

/* What is made of a report, and who shows it. */
struct view {
	const char *name;	  /* of the command */
	const char *report;	  /* what it shows; "": a drawing by Graphviz */
	const char *format;	  /* of the drawing */
	bool is_zoomable;	  /* then picture_make_zoomable */
	const char *extension;	  /* of the file */
	const char *const *shown; /* programs with their arguments, the first that runs is taken;
				     NULL: it goes where reports go */
};

/* NULL if the command is just a report. */
const struct view *view_find(const char *name);

/* Files that viewers look at, and viewers that nobody waits for. */
struct viewed {
	vec(char *) files;
	vec(pid_t) pids;
};

/* Writes the bytes to a file that is gone after viewed_release, and shows it. In the shell the
 * viewer runs on; else this waits for its end. */
bool view_show(struct viewed *all, const struct view *view, struct str bytes, bool is_interactive,
	       struct err *e);
void viewed_release(struct viewed *all);
/* Has a browser show it, and does not wait. Fails if there is none. */
bool view_open_url(const char *url, struct err *e);

/* Opens a new file of the form prefixNNNsuffix for writing; `name` gets its name. -1: failed. */
int create_numbered(const char *prefix, const char *suffix, char *name, size_t size, struct err *e);

#endif
