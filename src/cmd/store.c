/* store.c - kiln store: a folder of kiln serve, while no server has it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/store_files.h"

enum { EXIT_FAILED = 1 };

static const char usage[] =
	"usage: kiln store check DIR\n"
	"       kiln store compact DIR\n"
	"       kiln store export DIR FOLDER\n"
	"       kiln store import DIR FOLDER\n"
	"\n"
	"Works on the folder of a server (kiln serve --data DIR) that does not run.\n"
	"\n"
	"  check    reads everything back and tells what is damaged; status 1 if anything is\n"
	"  compact  drops what nothing needs any more, and makes the files as small as can be\n"
	"  export   writes each profile to FOLDER/ID.pb.gz, each sum of a minute, hour or day\n"
	"           to FOLDER/sum-N.pb.gz, and what is known of them to FOLDER/index.jsonl\n"
	"  import   puts such files into the store; those that it has already are left alone\n"
	"\n"
	"On a terminal, how far it is. The status is 0 if all is well, 1 if not, 2 if it is\n"
	"called wrongly. See kiln-store(1).\n";

static int fail(const struct err *e, int status)
{
	struct buf out = { 0 };

	buf_printf(&out, "kiln store: %s\n", e->text);
	return print_and_exit(&out, STDERR_FILENO, status);
}

/* ---- how far it is */

struct progress {
	bool is_shown;
	struct timespec last;
};

static void show_progress(void *ctx, uint64_t done, uint64_t all)
{
	struct progress *p = ctx;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec == p->last.tv_sec && now.tv_nsec / 250000000 == p->last.tv_nsec / 250000000)
		return;
	p->last = now;
	p->is_shown = true;
	fprintf(stderr, "\r%llu of %llu (%.0f%%) ", (unsigned long long)done,
		(unsigned long long)all, all ? 100.0 * (double)done / (double)all : 0);
}

static void clear_progress(const struct progress *p)
{
	if (p->is_shown)
		fputs("\r\33[K", stderr);
}

static void say(void *ctx, const char *line)
{
	(void)ctx;
	puts(line);
}

/* ---- check, compact */

static bool run_check(struct store *s, const struct store_params *params, const char *folder,
		      struct err *e)
{
	struct store_checked found;

	(void)params, (void)folder;
	if (!store_check(s, say, NULL, &found, e))
		return false;
	printf("%llu profiles and %llu sums read, %llu problems\n",
	       (unsigned long long)found.nprofiles, (unsigned long long)found.nsums,
	       (unsigned long long)found.nproblems);
	return !found.nproblems || err_set(e, ERR_FORMAT, "the store is damaged");
}

static bool run_compact(struct store *s, const struct store_params *params, const char *folder,
			struct err *e)
{
	struct store_stats before, after;

	(void)params, (void)folder;
	store_stats(s, &before);
	if (!store_compact(s, e))
		return false;
	store_stats(s, &after);
	printf("%llu bytes are %llu bytes now\n", (unsigned long long)before.bytes_on_disk,
	       (unsigned long long)after.bytes_on_disk);
	return true;
}

/* ---- */

static const struct tool {
	const char *name;
	int nargs;
	bool makes_folder;
	bool (*run)(struct store *s, const struct store_params *params, const char *folder,
		    struct err *e);
} tools[] = {
	{ "check", 1, false, run_check },
	{ "compact", 1, false, run_compact },
	{ "export", 2, false, store_export },
	{ "import", 2, true, store_import },
};

static const struct tool *find_tool(const char *name)
{
	for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++)
		if (strcmp(tools[i].name, name) == 0)
			return &tools[i];
	return NULL;
}

/* A folder that is not there must not be made by looking into it. */
static bool is_store(const char *dir, struct err *e)
{
	struct buf path = { 0 };
	bool is_there;

	buf_printf(&path, "%s/profiles.db%c", dir, '\0');
	is_there = access(path.p, F_OK) == 0;
	buf_release(&path);
	return is_there || err_set(e, ERR_NOTFOUND, "%s: is no folder of a store", dir);
}

/* What SQLite finds in the file of a store that cannot be opened. Why not is told in any case. */
static void check_unopened(const char *dir)
{
	struct store_checked found;
	struct err ignored;

	store_check_file(dir, say, NULL, &found, &ignored);
}

int cmd_store(int argc, char **argv)
{
	const struct tool *tool = argc > 1 ? find_tool(argv[1]) : NULL;
	struct progress progress = { 0 };
	struct store_params params = { .dir = argc > 2 ? argv[2] : "",
				       .is_passive = true,
				       .is_lazy = true,
				       .progress = isatty(STDERR_FILENO) ? show_progress : NULL,
				       .progress_ctx = &progress };
	struct buf out = { 0 };
	struct store *s = NULL;
	struct err e;
	bool ok;

	if (argc == 2 && strcmp(argv[1], "--complete") == 0) {
		for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++)
			buf_printf(&out, "%s\n", tools[i].name);
		return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	}
	if (!tool || argc != tool->nargs + 2) {
		bool is_help =
			argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);

		buf_puts(&out, usage);
		return print_and_exit(&out, is_help ? STDOUT_FILENO : STDERR_FILENO,
				      is_help ? EXIT_SUCCESS : EXIT_ERROR);
	}
	ok = tool->makes_folder || is_store(params.dir, &e);
	s = ok ? store_open(&params, &e) : NULL;
	if (ok && !s && tool->run == run_check)
		check_unopened(params.dir);
	ok = s;
	ok = ok && tool->run(s, &params, argc > 3 ? argv[3] : "", &e);
	clear_progress(&progress);
	store_close(s);
	fflush(stdout);
	return ok ? EXIT_SUCCESS : fail(&e, EXIT_FAILED);
}
