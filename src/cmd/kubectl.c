/* kubectl.c - kubectl kiln: the plugin of kubectl, also as kubectl profefe and kiln kubectl. */
#include "cmd/kubectl.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/args.h"
#include "cmd/cmd.h"

enum {
#define COMMAND(id, name, asks, arguments, help) INDEX_##id,
#include "cmd/kubectl.def"
#undef COMMAND
	NCOMMANDS
};

/* Rows say by these whose they are. */
enum {
#define COMMAND(id, name, asks, arguments, help) id = 1 << INDEX_##id,
#include "cmd/kubectl.def"
#undef COMMAND
	ALL = (1 << NCOMMANDS) - 1,
	QUERIES = GET | TOP | DIFF | FLAME,
};

static const struct command {
	const char *name, *arguments, *help;
	unsigned bit;
	bool asks; /* a server */
	bool (*run)(struct kubectl *k, int *status, struct err *e);
} commands[] = {
#define COMMAND(id, name, asks, arguments, help) \
	{ #name, arguments, help, id, asks, kubectl_##name },
#include "cmd/kubectl.def"
#undef COMMAND
};

static const struct option_def own_rows[] = {
#define OPT(commands, type, field, name, key, initial, value, help)                           \
	{                                                                                     \
		name,  OPTION_##type, offsetof(struct kubectl_options, field), commands, key, \
		value, help                                                                   \
	},
#define AGAIN OPT
#include "cmd/kubectl.def"
#undef AGAIN
#undef OPT
#define ROUND(type, field, name, initial, value, help)                                      \
	{ name,	 OPTION_##type, offsetof(struct kubectl_options, round.field), CAPTURE, "", \
	  value, help },
#include "cmd/round.def"
#undef ROUND
#define API(type, field, name, key, value, help)                                                  \
	{ name,	 OPTION_##type, offsetof(struct kubectl_options, api.field), ALL & ~INSTALL, key, \
	  value, help },
#define API_SERVER(...)
#include "cmd/api.def"
#undef API_SERVER
#undef API
	{ "help", OPTION_BOOL, offsetof(struct kubectl_options, help), ALL, "h", "",
	  "Print this text" },
};

static const struct option_def kube_rows[] = {
#define KUBE(type, field, flags, name, key, value, help)                                        \
	{                                                                                       \
		name,  OPTION_##type, offsetof(struct kubectl_options, kube.field), flags, key, \
		value, help                                                                     \
	},
#include "cmd/kube.def"
#undef KUBE
};
enum {
	NOWN = sizeof(own_rows) / sizeof(*own_rows),
	NKUBE = sizeof(kube_rows) / sizeof(*kube_rows)
};

/* clang-format off */
static const struct kubectl_options defaults = {
#define KUBE(type, field, flags, name, key, value, help) .kube.field = KUBE_NONE_##type,
#include "cmd/kube.def"
#undef KUBE
#define OPT(commands, type, field, name, key, initial, value, help) .field = initial,
#define AGAIN(...)
#include "cmd/kubectl.def"
#undef AGAIN
#undef OPT
#define ROUND(type, field, name, initial, value, help) .round.field = initial,
#include "cmd/round.def"
#undef ROUND
#define API(type, field, name, key, value, help) .api.field = "",
#define API_SERVER(...)
#include "cmd/api.def"
#undef API_SERVER
#undef API
};
/* clang-format on */

/* The options of one command: its own, then kubectl's. Those for connections and for choosing pods
 * are taken by all, but only listed where they mean something. */
static struct option_table table_of(struct arena *a, const struct command *c)
{
	struct option_def *at = arena_many(a, NOWN + NKUBE, struct option_def);
	struct option_table t = { .at = at, .defaults = &defaults };

	for (size_t i = 0; i < NOWN; i++)
		if (own_rows[i].flags & c->bit) {
			at[t.n] = own_rows[i];
			at[t.n++].flags = 0;
		}
	for (size_t i = 0; i < NKUBE; i++) {
		at[t.n] = kube_rows[i];
		if (!(c->bit & (CAPTURE | INSTALL)) &&
		    offsetof(struct kubectl_options, kube.namespace) != kube_rows[i].offset)
			at[t.n].flags |= ARGS_HIDDEN;
		t.n++;
	}
	return t;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < NCOMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* ---- help */

static void put_commands(struct buf *out, const char *program)
{
	buf_printf(out,
		   "usage: %s COMMAND [options]\n"
		   "\n"
		   "Profiles of pods, and what a server of kiln knows about them.\n"
		   "\n",
		   program);
	for (size_t i = 0; i < NCOMMANDS; i++)
		buf_printf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
	buf_printf(out,
		   "\n"
		   "`%s COMMAND --help` lists the options. The status is 0 if all is well, 1 if\n"
		   "something failed, 2 if it is called wrongly.\n",
		   program);
}

static void put_usage(struct buf *out, const char *program, const struct command *c)
{
	struct arena a = { 0 };
	struct option_table t = table_of(&a, c);

	buf_printf(out, "usage: %s %s [options]%s%s\n\n%s.\n\n", program, c->name,
		   *c->arguments ? " " : "", c->arguments, c->help);
	args_usage(out, &t);
	arena_release(&a);
}

static void put_complete(struct buf *out, const struct command *c)
{
	struct arena a = { 0 };
	struct option_table t;

	if (!c) {
		for (size_t i = 0; i < NCOMMANDS; i++)
			buf_printf(out, "%s\n", commands[i].name);
		return;
	}
	if (c->bit == GET)
		buf_puts(out, "profiles\nservices\ntypes\n");
	t = table_of(&a, c);
	args_complete(out, &t);
	arena_release(&a);
}

static void put_scdoc(struct buf *out)
{
	const struct option_table kube = { .at = kube_rows, .n = NKUBE, .defaults = &defaults };

	for (size_t i = 0; i < NCOMMANDS; i++) {
		struct arena a = { 0 };
		struct option_table t = table_of(&a, &commands[i]);

		t.n -= NKUBE;
		buf_printf(out, "\n## %s\n", commands[i].name);
		args_scdoc(out, &t);
		arena_release(&a);
	}
	buf_puts(out, "\n## Which cluster, and which pods\n");
	args_scdoc(out, &kube);
}

/* ---- running */

static int fail(const char *program, const char *command, const struct err *e)
{
	bool is_usage = e->kind == ERR_USAGE;
	struct buf out = { 0 };

	buf_printf(&out, "%s %s: %s", program, command, e->text);
	if (is_usage)
		buf_printf(&out, "; see %s %s --help", program, command);
	buf_char(&out, '\n');
	return print_and_exit(&out, STDERR_FILENO, is_usage ? EXIT_ERROR : KUBECTL_FAILED);
}

static bool check_options(struct kubectl_options *o, const struct command *c, struct err *e)
{
	/* Where --to is a time, a server may still be meant. */
	if (strstr(o->to, "://")) {
		o->api.to = o->to;
		o->to = defaults.to;
	}
	if (c->asks && !*o->api.to)
		o->api.to = API_DEFAULT_SERVER;
	return strcmp(o->output, "table") == 0 || strcmp(o->output, "json") == 0 ||
	       err_set(e, ERR_USAGE, "--output is table or json, not \"%s\"", o->output);
}

static bool run(struct kubectl *k, const struct command *c, int *status, struct err *e)
{
	bool ok;

	if (!check_options(&k->options, c, e))
		return false;
	if (*k->options.api.to && !api_open(&k->api, &k->options.api, e))
		return false;
	k->canceled = stop_on_signals();
	ok = c->run(k, status, e);
	if (*k->options.api.to)
		api_close(&k->api);
	return ok;
}

static int run_command(const char *program, const struct command *c, int argc, char **argv)
{
	struct kubectl k = { .program = program, .options = defaults };
	struct option_table t = table_of(&k.arena, c);
	struct buf out = { 0 };
	int status = EXIT_SUCCESS;
	struct err e;

	k.argc = argc;
	k.argv = argv;
	if (!args_take_all(&t, &k.options, &k.arena, &k.argc, &k.argv, &e)) {
		status = fail(program, c->name, &e);
	} else if (k.options.help) {
		put_usage(&out, program, c);
		status = print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	} else if (!run(&k, c, &status, &e)) {
		status = fail(program, c->name, &e);
	}
	arena_release(&k.arena);
	return status;
}

/* What kubectl asks kubectl_complete-kiln for: lines, and a number that says no more than that. */
static int complete_for_kubectl(int argc, char **argv)
{
	const struct command *c = argc > 2 ? find_command(argv[1]) : NULL;
	struct buf out = { 0 };

	put_complete(&out, c);
	buf_printf(&out, ":%d\n", c && (c->bit & (LOAD | CAPTURE)) ? 0 : 4);
	return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
}

static const char *program_of(const char *name)
{
	return strcmp(name, "kubectl-kiln") == 0      ? "kubectl kiln"
	       : strcmp(name, "kubectl-profefe") == 0 ? "kubectl profefe"
						      : "kiln kubectl";
}

int cmd_kubectl(int argc, char **argv)
{
	const char *program = program_of(argv[0]), *what = argc > 1 ? argv[1] : "";
	const struct command *c = find_command(what);
	struct buf out = { 0 };

	if (strncmp(argv[0], "kubectl_complete", 16) == 0)
		return complete_for_kubectl(argc, argv);
	if (argc == 3 && strcmp(argv[2], "--complete") == 0) {
		put_complete(&out, c);
		return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	}
	if (c)
		return run_command(program, c, argc - 2, argv + 2);
	if (strcmp(what, "--complete") == 0 || strcmp(what, "--scdoc") == 0) {
		if (what[2] == 'c')
			put_complete(&out, NULL);
		else
			put_scdoc(&out);
		return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	}
	if (!*what || what[0] == '-' || strcmp(what, "help") == 0) {
		put_commands(&out, program);
		return print_and_exit(&out, *what ? STDOUT_FILENO : STDERR_FILENO,
				      *what ? EXIT_SUCCESS : EXIT_ERROR);
	}
	buf_printf(&out, "%s: there is no command \"%s\"; see %s --help\n", program, what, program);
	return print_and_exit(&out, STDERR_FILENO, EXIT_ERROR);
}
