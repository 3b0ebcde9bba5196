/* flags.h - the analyzer's command line, in the syntax of Go's flag package.
 *
 *	struct command_line c;
 *	if (!flags_parse(&c, &arena, argc, argv, &warnings, &e)) {
 *		flags_explain(&errors, &c, program, &e);	print to stderr
 *		return 2;
 *	}
 *	switch (c.action) ...
 *
 * Nothing is printed here.
 */
#ifndef ANALYZE_FLAGS_H
#define ANALYZE_FLAGS_H

#include "analyze/options.h"

struct progress;

enum flags_action {
	FLAGS_ANALYZE,
	FLAGS_HELP, /* usage_write to stderr, as pprof does; exit 0 */
	FLAGS_VERSION,
	FLAGS_COMPLETE, /* usage_complete to stdout */
	FLAGS_SCDOC,	/* usage_scdoc to stdout */
};

enum flags_failure {
	FLAGS_PLAIN,	  /* "program: text" */
	FLAGS_THEN_USAGE, /* the text, then the usage */
	FLAGS_AFTER_USAGE /* the usage, then "program: text" */
};

struct command_line {
	enum flags_action action;
	enum flags_failure failure; /* set when flags_parse fails */
	struct analyze_options options;
	/* NULL: web pages if options.http is not empty, else the shell. */
	const struct analyze_command *command;
	const char *argument; /* the command's regular expression, or "" */
	char **sources;	      /* part of argv; the first of several may be the binary */
	size_t nsources;
	size_t max_profile_bytes; /* options.max_profile_size as a number */
	/* Not flags, but for who loads several side by side: */
	int threads;		   /* 0: one per core */
	struct progress *progress; /* shown by the caller; NULL: by analyze_load */
};

/* Fills in `c`, whose strings go to `a`. With FLAGS_ANALYZE, legacy flags have been translated into
 * options.sample_index and options.mean, there is a source, and what was asked for fits together.
 * `warnings` gets whole lines. */
bool flags_parse(struct command_line *c, struct arena *a, int argc, char **argv,
		 struct buf *warnings, struct err *e);
/* Writes what a failed flags_parse has to tell. */
void flags_explain(struct buf *out, const struct command_line *c, const char *program,
		   const struct err *e);

#endif
