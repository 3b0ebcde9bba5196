/* serve.c - kiln serve: the server of a fleet's profiles. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/args.h"
#include "cmd/cmd.h"
#include "collect/scrape_config.h"
#include "server/self.h"
#include "server/server.h"

enum { EXIT_FAILED = 1 };

static const char usage_head[] =
	"usage: kiln serve --data DIR [options]\n"
	"\n"
	"Takes in profiles over HTTP, keeps them in a folder, and answers questions about\n"
	"them: profefe's API (/api/0), its own (/api/1), and go tool pprof. Takes profiles of\n"
	"programs by itself, if the file of --config has scrape: jobs (kiln-serve(5)).\n"
	"\n"
	"Every option may also be set in a YAML file (--config FILE, \"max-memory: 2GB\") or\n"
	"by an environment variable (KILN_SERVE_MAX_MEMORY=2GB). A flag goes before the\n"
	"environment, the environment before the file. Times are written 90s, 1h30m, 14d;\n"
	"sizes 64MB, 2GB, in powers of 1024.\n"
	"\n";

static const char usage_example[] =
	"\n"
	"  kiln serve --data /var/lib/kiln\n"
	"  curl --data-binary @cpu.pb.gz 'localhost:10100/api/0/profiles?service=shop&type=cpu'\n";

/* Flags, with --help beside the server's own options. */
static bool take_flags(struct server_options *o, struct arena *a, int argc, char **argv, bool *help,
		       struct err *e)
{
	for (int i = 0; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-help") == 0 ||
		    strcmp(argv[i], "-h") == 0) {
			*help = true;
			return true;
		}
	if (!args_take(&server_option_table, o, a, &argc, &argv, e))
		return false;
	return !argc || err_set(e, ERR_USAGE, "what is \"%s\"? Options begin with --", argv[0]);
}

/* The file goes first, so that the environment and flags change what it says. */
static bool read_options(struct server_options *o, struct arena *a, int argc, char **argv,
			 bool *help, struct err *e)
{
	struct server_options first = server_defaults;

	*o = server_defaults;
	if (!config_read_environment(&first, a, environ, e) ||
	    !take_flags(&first, a, argc, argv, help, e))
		return false;
	if (*help)
		return true;
	return (!*first.config || config_read_file(o, a, first.config, e)) &&
	       config_read_environment(o, a, environ, e) && take_flags(o, a, argc, argv, help, e) &&
	       server_options_check(o, e);
}

static int fail(const struct err *e, int status)
{
	struct buf out = { 0 };

	buf_printf(&out, "kiln serve: %s%s\n", e->text,
		   status == EXIT_ERROR ? "; see kiln serve --help" : "");
	return print_and_exit(&out, STDERR_FILENO, status);
}

static void write_keys(struct buf *out)
{
	args_scdoc_keys(out, &server_option_table);
	buf_puts(out, "\n# KEYS OF A JOB\n\nOf each in the list *scrape*.\n");
	args_scdoc_keys(out, &scrape_job_table);
}

/* For completion and for the manual. */
static bool write_list(struct buf *out, const char *which)
{
	if (strcmp(which, "--complete") == 0)
		args_complete(out, &server_option_table);
	else if (strcmp(which, "--scdoc") == 0)
		args_scdoc(out, &server_option_table);
	else if (strcmp(which, "--scdoc-keys") == 0)
		write_keys(out);
	else if (strcmp(which, "--scdoc-api") == 0)
		server_scdoc_api(out);
	return out->n;
}

int cmd_serve(int argc, char **argv)
{
	struct server_options o;
	struct arena a = { 0 };
	struct buf out = { 0 };
	struct err e;
	char **program_argv = argv - 1; /* with the program's name */
	bool help = false, ok;

	argc--, argv++;
	if (argc == 1 && write_list(&out, argv[0]))
		return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	if (!read_options(&o, &a, argc, argv, &help, &e)) {
		arena_release(&a);
		return fail(&e, EXIT_ERROR);
	}
	if (help) {
		buf_puts(&out, usage_head);
		args_usage(&out, &server_option_table);
		buf_puts(&out, usage_example);
		arena_release(&a);
		return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	}
	if (o.self_profile)
		self_reload(program_argv);
	ok = server_run(&o, &e);
	arena_release(&a);
	return ok ? EXIT_SUCCESS : fail(&e, EXIT_FAILED);
}
