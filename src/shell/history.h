/* history.h - lines that were typed in earlier sessions, in a file that only their user
 * reads.
 *
 * $XDG_STATE_HOME/kiln/history, or ~/.local/state/kiln/history. Every line is written when it is
 * entered, so that sessions at the same time do not overwrite each other's. A file that cannot be
 * written is done without.
 */
#ifndef SHELL_HISTORY_H
#define SHELL_HISTORY_H

#include "base/arena.h"
#include "base/str.h"

enum { HISTORY_LINES = 1000 };

/* The file's name, its folder made; NULL if there is no home. */
const char *history_path(struct arena *a);
/* Up to HISTORY_LINES lines, oldest first. A file that has grown far beyond is cut to those. */
size_t history_load(struct arena *a, const char *path, struct str lines[HISTORY_LINES]);
void history_append(const char *path, struct str line);

#endif
