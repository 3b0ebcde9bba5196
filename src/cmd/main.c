/* main.c - the program: reads the command line, runs one report, prints what went wrong. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "analyze/usage.h"
#include "base/path.h"

enum { EXIT_ERROR = 2 };

#define VERSION "0.1.0"
/* The analyzer is pprof, whatever it is called: scripts look at its messages too. */
#define ANALYZER "pprof"

/* Lines for stderr, in red on a terminal as pprof's are. */
static void print_warnings(struct buf *warnings)
{
	struct str rest = buf_view(warnings);
	bool is_terminal = rest.n && isatty(STDERR_FILENO);

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		fprintf(stderr, is_terminal ? "\033[0;31m%.*s\n\033[0m" : "%.*s\n", STR_ARG(line));
	}
	warnings->n = 0;
}

/* A file of the form prefixNNNsuffix that is not there yet. */
static int create_numbered(const char *prefix, const char *suffix, char *name, size_t size,
			   struct err *e)
{
	for (int i = 1; i < 10000; i++) {
		int fd;

		snprintf(name, size, "%s%03d%s", prefix, i, suffix);
		fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST) {
			err_system(e, "open", name);
			return -1;
		}
	}
	err_set(e, ERR_IO, "could not create file of the form %s001%s", prefix, suffix);
	return -1;
}

/* Where the report goes: -output, a fresh file for what would garble a terminal, or stdout. */
static int open_output(const struct command_line *c, const struct report *report,
		       struct buf *warnings, struct err *e)
{
	const char *path = c->options.output;
	char name[64], suffix[32];
	int fd = STDOUT_FILENO;

	if (*path) {
		fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
		if (fd < 0)
			err_system(e, "open", path);
	} else if ((report->flags & REPORT_BINARY) && isatty(STDOUT_FILENO)) {
		snprintf(suffix, sizeof(suffix), ".%s", report->extension);
		fd = create_numbered("profile", suffix, name, sizeof(name), e);
		path = name;
	}
	if (fd >= 0 && fd != STDOUT_FILENO)
		buf_printf(warnings, "Generating report in %s\n", path);
	return fd;
}

/* The file is opened when the first bytes are there: a failed report must not truncate it. */
static bool print_report(struct session *s, const struct command_line *c, struct buf *warnings,
			 struct err *e)
{
	const struct report *report = report_find(c->command->name);
	struct analyze_request q = { report, c->argument, &c->options };
	struct buf out = { 0 };
	bool ok;
	int fd;

	if (!report)
		return err_set(e, ERR_USAGE, "-%s is not there yet in this version",
			       c->command->name);
	if (!*c->options.output && !((report->flags & REPORT_BINARY) && isatty(STDOUT_FILENO)))
		buf_to_fd(&out, STDOUT_FILENO);
	ok = analyze_report(s, &q, &out, warnings, e);
	if (ok && !out.has_fd) {
		fd = open_output(c, report, warnings, e);
		ok = fd >= 0;
		if (ok)
			buf_to_fd(&out, fd);
	}
	if (ok)
		ok = buf_flush(&out, e);
	if (ok && out.fd != STDOUT_FILENO && close(out.fd) != 0)
		ok = err_system(e, "close", c->options.output);
	buf_release(&out);
	return ok;
}

/* Greets; commands come with the shell. */
static bool run_shell(struct session *s, const struct command_line *c, struct err *e)
{
	struct buf greeting = { 0 };
	bool ok = analyze_greet(s, &c->options, &greeting, e);
	char first;

	if (ok) {
		buf_to_fd(&greeting, STDERR_FILENO);
		buf_flush(&greeting, e);
		if (read(STDIN_FILENO, &first, 1) > 0)
			ok = err_set(e, ERR_USAGE,
				     "the shell has no commands yet in this version; ask for a "
				     "report instead, e.g. -top");
	}
	buf_release(&greeting);
	return ok;
}

static bool analyze(const struct command_line *c, struct buf *warnings, struct err *e)
{
	struct session s;
	bool ok;

	if (!c->command && *c->options.http)
		return err_set(
			e, ERR_USAGE,
			"-http is not there yet in this version; ask for a report, e.g. -top");
	ok = analyze_load(&s, c, warnings, e);
	print_warnings(warnings);
	ok = ok && (c->command ? print_report(&s, c, warnings, e) : run_shell(&s, c, e));
	print_warnings(warnings);
#ifdef __SANITIZE_ADDRESS__
	session_release(&s); /* else the kernel is faster */
#endif
	return ok;
}

static int print_and_exit(struct buf *out, int fd, int status)
{
	struct err e;

	buf_to_fd(out, fd);
	buf_flush(out, &e);
	buf_release(out);
	return status;
}

/* `kiln help` lists everything; -help is pprof's. A profile of that name is ./help. */
static bool wants_help(int argc, char **argv)
{
	struct str program = path_base(str_of(argc ? argv[0] : "kiln"));

	return argc == 2 && strcmp(argv[1], "help") == 0 && !str_eq(program, STR(ANALYZER));
}

int main(int argc, char **argv)
{
	struct arena arena = { 0 };
	struct buf warnings = { 0 }, out = { 0 };
	struct command_line c;
	struct err e = { 0 };
	bool ok;

	if (wants_help(argc, argv)) {
		usage_write(&out, "kiln");
		return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	}
	ok = flags_parse(&c, &arena, argc, argv, &warnings, &e);
	print_warnings(&warnings);
	if (!ok) {
		flags_explain(&out, &c, ANALYZER, &e);
		return print_and_exit(&out, STDERR_FILENO, EXIT_ERROR);
	}
	switch (c.action) {
	case FLAGS_HELP:
		usage_write(&out, ANALYZER);
		return print_and_exit(&out, STDERR_FILENO, EXIT_SUCCESS);
	case FLAGS_VERSION:
		buf_printf(&out, "kiln %s\n", VERSION);
		return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	case FLAGS_COMPLETE:
		usage_complete(&out);
		return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	case FLAGS_SCDOC:
		usage_scdoc(&out);
		return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	case FLAGS_ANALYZE:
		ok = analyze(&c, &warnings, &e);
	}
	if (!ok)
		fprintf(stderr, ANALYZER ": %s\n", e.text);
	buf_release(&warnings);
	arena_release(&arena);
	return ok ? EXIT_SUCCESS : EXIT_ERROR;
}
