/* output.h - where a report goes: stdout, a file, a viewer. */
#ifndef ANALYZE_OUTPUT_H
#define ANALYZE_OUTPUT_H

#include <signal.h>

#include "analyze/analyze.h"

struct output_request {
	const struct analyze_command *command;
	const char *argument; /* of -peek and its like, or "" */
	const struct analyze_options *options;
	bool is_interactive; /* in the shell: no pictures on its terminal, no waiting for viewers */
	int pipe; /* what reads the report instead of stdout; 0: none. It may stop reading. */
	const volatile sig_atomic_t *stop; /* as in struct buf */
};

/* Makes the report and puts it where the options say. */
bool output_report(struct session *s, const struct output_request *q, struct buf *warnings,
		   struct err *e);

#endif
