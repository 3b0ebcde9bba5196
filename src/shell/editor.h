/* editor.h - lines from a person or from a script.
 *
 * At a terminal that can do it: editing, history that outlives the session, completion by Tab, and
 * a list of candidates by another Tab. Elsewhere: plain lines.
 */
#ifndef SHELL_EDITOR_H
#define SHELL_EDITOR_H

#include <signal.h>

#include "shell/complete.h"

struct shell_editor;

struct shell_editor_params {
	bool is_terminal; /* standard input: show a prompt */
	const char *prompt;
	const struct profile *profile;	/* for completion */
	void (*own_profile)(void *ctx); /* called before that is looked at; or NULL */
	void *ctx;
	/* Set by a signal handler which lets read(2) fail: NULL, or when to stop. */
	const volatile sig_atomic_t *interrupted;
};

enum shell_input {
	SHELL_INPUT_LINE,
	SHELL_INPUT_END,
	SHELL_INPUT_INTERRUPTED,
	SHELL_INPUT_TOO_LONG, /* the line was skipped */
};

/* The longest line of a script. */
enum { SHELL_LINE_MAX = 1 << 20 };

struct shell_editor *shell_editor_new(const struct shell_editor_params *params);
void shell_editor_free(struct shell_editor *x);
/* Would the next line come without waiting for it? */
bool shell_editor_has_input(const struct shell_editor *x);
/* The next line, without its end; it is good until the next call. */
enum shell_input shell_editor_read(struct shell_editor *x, struct str *line);

#endif
