/* debuginfo.c - kiln debuginfo: binaries for a server to name addresses by. */
#include "cmd/debuginfo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cmd/args.h"
#include "cmd/cmd.h"
#include "server/code_child.h"
#include "server/debuginfo.h"
#include "server/names_child.h"

enum {
	MAX_QUESTION = 256 << 20,
	SEND_MS = 30 * 60 * 1000,
};

#define ROW(type, name, field, spelling, help)                                                   \
	{                                                                                        \
		name, OPTION_##type, offsetof(struct debuginfo_options, field), 0, "", spelling, \
			help                                                                     \
	}

static const struct option_def rows[] = {
#define API(type, field, name, key, value, help) \
	{ name, OPTION_##type, offsetof(struct debuginfo_options, api.field), 0, key, value, help },
#define API_SERVER API
#include "cmd/api.def"
#undef API_SERVER
#undef API
	ROW(BOOL, "force", force, "", "Send also what the server would not need"),
	ROW(BOOL, "quiet", quiet, "", "Say only what went wrong"),
	ROW(BOOL, "json", json, "", "list: print what the server answers"),
	ROW(BOOL, "help", help, "", "Print this text"),
};

static const struct debuginfo_options defaults = { .api = API_DEFAULTS };

static const struct option_table table = { .at = rows,
					   .n = sizeof(rows) / sizeof(*rows),
					   .defaults = &defaults };

static const char usage_head[] =
	"usage: kiln debuginfo upload [options] FILE|DIR...\n"
	"       kiln debuginfo list [options]\n"
	"       kiln debuginfo delete [options] BUILD_ID...\n"
	"\n"
	"Programs that were stripped are profiled as addresses. Upload a program that was not\n"
	"stripped, or its debug file, and the server has names for all profiles of that build,\n"
	"also of those that it has already. Of folders, all ELF files in them that have names\n"
	"and a build id. What the server has already is not sent again.\n"
	"\n";

static const char usage_tail[] =
	"\n"
	"The status is 0 if all is well, 1 if something could not be done, 2 if it is called\n"
	"wrongly.\n"
	"\n"
	"After a build:\n"
	"  kiln debuginfo upload --to https://profiles.example.org --token-file token build/\n";

/* ---- requests */

bool debuginfo_ask(const struct debuginfo_client *c, const char *method, const char *path,
		   struct str body, struct http_response *r, struct err *e)
{
	return api_send(c->api,
			&(struct api_request){ .method = method,
					       .path = path,
					       .body = body,
					       .timeout_ms = body.p ? SEND_MS : 0 },
			r, e);
}

static int fail(const struct err *e, int status)
{
	struct buf out = { 0 };

	buf_printf(&out, "kiln debuginfo: %s%s\n", e->text,
		   status == EXIT_ERROR ? "; see kiln debuginfo --help" : "");
	return print_and_exit(&out, STDERR_FILENO, status);
}

/* ---- list */

static void print_file(const struct json *file)
{
	static const char *const columns[] = { "build_id", "bytes", "origin", "since", "name" };
	const struct json *has = json_member(file, "has");

	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
		const struct json *x = json_member(file, columns[i]);
		struct str text = x && x->text.n ? x->text : STR("-");

		printf(i == 1 ? "%s%12.*s" : "%s%.*s", i ? "  " : "", STR_ARG(text));
	}
	for (size_t i = 0; has && i < has->n; i++)
		printf("%s%.*s", i ? "," : "  ", STR_ARG(has->at[i].text));
	putchar('\n');
}

static bool list(const struct debuginfo_client *c, struct err *e)
{
	struct http_response r = { 0 };
	struct arena a = { 0 };
	const struct json *files = NULL;
	struct json json;
	bool ok =
		debuginfo_ask(c, NULL, "/api/1/debuginfo?limit=100000", (struct str){ 0 }, &r, e) &&
		(r.status == 200 || api_fail(&r, e));

	if (ok && c->o->json) {
		fwrite(r.body.p, 1, r.body.n, stdout);
	} else if (ok && json_parse(&a, buf_view(&r.body), &json, e)) {
		files = json_member(&json, "files");
		for (size_t i = 0; files && i < files->n; i++)
			print_file(&files->at[i]);
	}
	arena_release(&a);
	http_response_release(&r);
	return ok;
}

static int run_list(const struct debuginfo_client *c, int argc, char **argv)
{
	struct err e;

	(void)argv;
	if (argc) {
		err_set(&e, ERR_USAGE, "list takes no files");
		return fail(&e, EXIT_ERROR);
	}
	return list(c, &e) ? EXIT_SUCCESS : fail(&e, EXIT_FAILED);
}

/* ---- delete */

static bool delete_one(const struct debuginfo_client *c, const char *build_id, struct err *e)
{
	struct http_response r = { 0 };
	struct buf path = { 0 };
	bool ok;

	if (!debuginfo_is_id(str_of(build_id)))
		return err_set(e, ERR_USAGE, "it is no build id");
	buf_printf(&path, "/api/1/debuginfo/%s%c", build_id, '\0');
	ok = debuginfo_ask(c, "DELETE", path.p, (struct str){ 0 }, &r, e) &&
	     (r.status == 200 || api_fail(&r, e));
	buf_release(&path);
	http_response_release(&r);
	return ok;
}

/* All of them, whatever is wrong with some. */
static int run_delete(const struct debuginfo_client *c, int argc, char **argv)
{
	int status = EXIT_SUCCESS;

	for (int i = 0; i < argc; i++) {
		struct err e;

		if (delete_one(c, argv[i], &e)) {
			if (!c->o->quiet)
				printf("%s: deleted\n", argv[i]);
			continue;
		}
		fprintf(stderr, "kiln debuginfo: %s: %s\n", argv[i], e.text);
		status = EXIT_FAILED;
	}
	return status;
}

/* ---- what the server starts, debug_child.h */

typedef void child_answer(const char *path, struct str build_id, struct str question,
			  struct buf *out);

static int run_child(child_answer *answer, const char *path, const char *build_id)
{
	struct buf question = { 0 }, out = { 0 };
	ssize_t n;

	while (question.n < MAX_QUESTION &&
	       (n = read(STDIN_FILENO, buf_room(&question, 1 << 16), 1 << 16)) != 0) {
		if (n > 0)
			question.n += (size_t)n;
		else if (errno != EINTR)
			break;
	}
	answer(path, str_of(build_id), buf_view(&question), &out);
	buf_release(&question);
	return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
}

/* ---- */

static const struct {
	const char *name, *missing; /* what is, if nothing follows; NULL: nothing need */
	int (*run)(const struct debuginfo_client *c, int argc, char **argv);
} commands[] = {
	{ "upload", "no file is given", debuginfo_upload },
	{ "list", NULL, run_list },
	{ "delete", "no build id is given", run_delete },
};

static int run(const struct debuginfo_options *o, size_t command, int argc, char **argv)
{
	struct api api;
	struct debuginfo_client c = { o, &api };
	struct err e;
	int status;

	if (!api_open(&api, &o->api, &e))
		return fail(&e, EXIT_ERROR);
	status = commands[command].run(&c, argc, argv);
	api_close(&api);
	return status;
}

static int print_usage(void)
{
	struct buf out = { 0 };

	buf_puts(&out, usage_head);
	args_usage(&out, &table);
	buf_puts(&out, usage_tail);
	return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
}

static int run_command(size_t command, int argc, char **argv)
{
	struct debuginfo_options o = defaults;
	struct arena a = { 0 };
	struct err e;
	int status;

	if (!args_take(&table, &o, &a, &argc, &argv, &e))
		status = fail(&e, EXIT_ERROR);
	else if (o.help)
		status = print_usage();
	else if (commands[command].missing && !argc)
		status = (err_set(&e, ERR_USAGE, "%s", commands[command].missing),
			  fail(&e, EXIT_ERROR));
	else
		status = run(&o, command, argc, argv);
	arena_release(&a);
	return status;
}

int cmd_debuginfo(int argc, char **argv)
{
	struct buf out = { 0 };
	const char *what = argc > 1 ? argv[1] : "";
	struct err e;

	if (strcmp(what, "--complete") == 0 || strcmp(what, "--scdoc") == 0) {
		(what[2] == 'c' ? args_complete : args_scdoc)(&out, &table);
		return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	}
	if (strcmp(what, "names") == 0 && argc == 4)
		return run_child(names_child_answer, argv[2], argv[3]);
	if (strcmp(what, "code") == 0 && argc == 4)
		return run_child(code_child_answer, argv[2], argv[3]);
	if (strcmp(what, "--help") == 0 || strcmp(what, "-help") == 0 || strcmp(what, "-h") == 0)
		return print_usage();
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(what, commands[i].name) == 0)
			return run_command(i, argc - 2, argv + 2);
	err_set(&e, ERR_USAGE, *what ? "there is no \"%s\"" : "upload, list or delete is missing%s",
		what);
	return fail(&e, EXIT_ERROR);
}
