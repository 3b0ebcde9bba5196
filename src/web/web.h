/* web.h - profiles as pages in a browser: -http.
 *
 * One server for one person or a few: pages and their data come from here, nothing is fetched from
 * elsewhere. Parameters of a page are pprof's, by the table of options.
 */
#ifndef WEB_WEB_H
#define WEB_WEB_H

#include "analyze/analyze.h"

struct web_params {
	const struct command_line *c;
	const char *version;
	void (*warn)(struct buf *warnings); /* prints whole lines, and empties the buffer */
	void (*tell)(const char *line);	    /* prints it, in no color */
};

/* Loads what the command line asks for, and serves it until SIGINT or SIGTERM. */
bool web_serve(const struct web_params *params, struct err *e);

#endif
