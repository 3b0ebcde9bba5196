/* ahead.h - work done while a person types: what reports have in common is computed as soon as the
 * options are known that it depends on, so that the report itself answers at once.
 */
#ifndef SHELL_AHEAD_H
#define SHELL_AHEAD_H

#include "analyze/analyze.h"

struct shell_ahead;

struct shell_ahead *shell_ahead_new(struct session *s);
/* Starts, if the profile is large and these are not the options of the last time. Until
 * shell_ahead_wait the session is not the caller's; the options' strings must stay as they are. */
void shell_ahead_start(struct shell_ahead *x, const struct analyze_options *options);
void shell_ahead_wait(struct shell_ahead *x);
void shell_ahead_free(struct shell_ahead *x);

#endif
