/* ahead.h - work done while a person types: what the likely next reports need is computed as soon
 * as the options are known that it depends on, so that the report itself answers at once.
 */
#ifndef SHELL_AHEAD_H
#define SHELL_AHEAD_H

#include "analyze/analyze.h"

enum { SHELL_AHEAD_MAX = 8 };

struct shell_ahead;

/* A report that may come next. The first is finished whatever happens: all others need most of it.
 */
struct shell_ahead_report {
	const char *name, *argument;
	struct analyze_options options;
};

struct shell_ahead *shell_ahead_new(struct session *s);
/* Starts, if the profile is large, or goes on where it was if these are the reports of the last
 * time. Until shell_ahead_wait the session is not the caller's; the strings of the reports must
 * stay as they are. */
void shell_ahead_start(struct shell_ahead *x, const struct shell_ahead_report *reports, size_t n);
/* Until all is there that new options need: a blink of an eye at most, and not when `fd` has input.
 * A prompt that comes then promises that the report does, at once. */
void shell_ahead_settle(struct shell_ahead *x, int fd);
/* Ends, for a line that is to be run: a report that it asks for is made first if that has begun. */
void shell_ahead_wait(struct shell_ahead *x, struct str line);
void shell_ahead_free(struct shell_ahead *x);

#endif
