/* main.c - the program: reads the command line, runs one report, prints what went wrong. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/output.h"
#include "shell/shell.h"
#include "analyze/usage.h"
#include "base/path.h"
#include "base/version.h"
#include "cmd/cmd.h"
#include "web/web.h"

/* The analyzer is pprof, whatever it is called: scripts look at its messages too. */
#define ANALYZER "pprof"

void print_warnings(struct buf *warnings)
{
	struct str rest = buf_view(warnings);
	bool is_terminal = rest.n && isatty(STDERR_FILENO);

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		fprintf(stderr, is_terminal ? "\033[0;31m%.*s\n\033[0m" : "%.*s\n", STR_ARG(line));
	}
	warnings->n = 0;
}

static void print_line(const char *line)
{
	fprintf(stderr, "%s\n", line);
}

/* Set by Ctrl-C while a person is at the shell. */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

static bool run_shell(struct session *s, const struct command_line *c, struct err *e)
{
	bool is_terminal = isatty(STDIN_FILENO);
	struct sigaction action = { .sa_handler = on_interrupt };

	if (is_terminal)
		sigaction(SIGINT, &action, NULL);
	return shell_run(s,
			 &(struct shell_params){ .options = &c->options,
						 .warn = print_warnings,
						 .interrupted = is_terminal ? &interrupted : NULL },
			 e);
}

static bool analyze(const struct command_line *c, struct buf *warnings, struct err *e)
{
	struct session s;
	bool ok;

	if (!c->command && *c->options.http)
		return web_serve(
			&(struct web_params){ c, KILN_VERSION, print_warnings, print_line }, e);
	ok = analyze_load(&s, c, warnings, e);
	print_warnings(warnings);
	if (ok && c->command)
		ok = output_report(&s,
				   &(struct output_request){ .command = c->command,
							     .argument = c->argument,
							     .options = &c->options },
				   warnings, e);
	else if (ok)
		ok = run_shell(&s, c, e);
	print_warnings(warnings);
	viewed_release(&s.viewed);
#ifdef __SANITIZE_ADDRESS__
	session_release(&s); /* else the kernel is faster */
#endif
	return ok;
}

int print_and_exit(struct buf *out, int fd, int status)
{
	struct err e;

	buf_to_fd(out, fd);
	buf_flush(out, &e);
	buf_release(out);
	return status;
}

static void list_subcommands(struct buf *out);

static int cmd_help(int argc, char **argv)
{
	struct buf out = { 0 };

	(void)argc;
	(void)argv;
	usage_write(&out, "kiln");
	list_subcommands(&out);
	return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
}

static const struct subcommand {
	const char *name, *help;
	int (*run)(int argc, char **argv);
} subcommands[] = {
	{ "help", "Print this text", cmd_help },
	{ "diff", "Tell what changed between two profiles, and what is noise", cmd_diff },
	{ "record", "Run a program and record profiles of it", cmd_record },
	{ "fetch", "Save profiles of running servers in dated folders", cmd_fetch },
	{ "collect", "Take profiles of pods or servers once, and store them", cmd_collect },
	{ "kubectl", "Profiles of pods, as the kubectl plugin: kubectl kiln", cmd_kubectl },
	{ "serve", "Collect profiles of a fleet, and answer questions about them", cmd_serve },
	{ "debuginfo", "Upload binaries, for a server to name addresses by", cmd_debuginfo },
	{ "store", "Check, compact, export or import what a server has kept", cmd_store },
};

/* Whoever is called so is another program. */
static const struct program {
	const char *name;
	int (*run)(int argc, char **argv);
} programs[] = {
	{ "kubectl-kiln", cmd_kubectl },
	{ "kubectl-profefe", cmd_kubectl },
	{ "kubectl_complete-kiln", cmd_kubectl },
	{ "kubectl_complete-profefe", cmd_kubectl },
	{ "kprofefe", cmd_collect },
};

static const struct program *find_program(struct str name)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		if (str_eq(name, str_of(programs[i].name)))
			return &programs[i];
	return NULL;
}

static void list_subcommands(struct buf *out)
{
	buf_puts(out, "\n  Other commands, `kiln COMMAND --help` says more:\n");
	for (size_t i = 0; i < sizeof(subcommands) / sizeof(*subcommands); i++)
		buf_printf(out, "    %-16s %s\n", subcommands[i].name, subcommands[i].help);
}

/* `kiln help` and so on; pprof has none. A profile of such a name is ./help. */
static const struct subcommand *find_subcommand(int argc, char **argv)
{
	struct str program = path_base(str_of(argc ? argv[0] : "kiln"));

	if (argc < 2 || str_eq(program, STR(ANALYZER)))
		return NULL;
	for (size_t i = 0; i < sizeof(subcommands) / sizeof(*subcommands); i++)
		if (strcmp(argv[1], subcommands[i].name) == 0)
			return &subcommands[i];
	return NULL;
}

int main(int argc, char **argv)
{
	struct arena arena = { 0 };
	struct buf warnings = { 0 }, out = { 0 };
	struct command_line c;
	struct err e = { 0 };
	const struct subcommand *sub = find_subcommand(argc, argv);
	const struct program *program = find_program(path_base(str_of(argc ? argv[0] : "")));
	bool ok;

	if (program) {
		argv[0] = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
		return program->run(argc, argv);
	}
	if (sub)
		return sub->run(argc - 1, argv + 1);
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
		buf_printf(&out, "kiln %s\n", KILN_VERSION);
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
