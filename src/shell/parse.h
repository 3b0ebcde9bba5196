/* parse.h - what a line of the shell asks for. Nothing is run or printed here.
 *
 *	focus=main		an assignment, carried out on the settings
 *	top 5 -runtime -cum	a report, with settings of its own
 *	traces main | less	... and a command that reads it
 *	o, help top, q
 */
#ifndef SHELL_PARSE_H
#define SHELL_PARSE_H

#include "analyze/options.h"
#include "base/arena.h"
#include "base/err.h"
#include "profile/profile.h"

enum shell_action { SHELL_NOTHING, SHELL_REPORT, SHELL_OPTIONS, SHELL_HELP, SHELL_QUIT };

struct shell_request {
	enum shell_action action;
	const char *topic; /* of SHELL_HELP; "": everything */
	/* of SHELL_REPORT: */
	const struct analyze_command *command;
	const char *argument;		/* the command's regular expression, or "" */
	const char *pipe;		/* the shell command that reads the report, or "" */
	struct analyze_options options; /* of this report only */
};

struct shell_parser {
	const struct profile *profile;	 /* whose sample types are names */
	struct analyze_options settings; /* what assignments change */
	struct arena arena;		 /* of the settings' strings */
	bool has_pipes;			 /* "|" is a pipe; to pprof it is a regular expression */
};

/* Reads one line; strings of the request go to `a`. */
bool shell_parse(struct shell_parser *p, struct arena *a, struct str line,
		 struct shell_request *request, struct err *e);

/* Takes the next word, up to white space, off *rest; its n is 0 at the end. */
struct str shell_word(struct str *rest);

#endif
