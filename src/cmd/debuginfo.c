/* debuginfo.c - kiln debuginfo: binaries for a server to name addresses by. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/amount.h"
#include "base/json.h"
#include "base/path.h"
#include "base/small_file.h"
#include "base/vec.h"
#include "cmd/api.h"
#include "cmd/args.h"
#include "cmd/cmd.h"
#include "http/target.h"
#include "server/names_child.h"
#include "symbol/symbol.h"

enum {
	EXIT_FAILED = 1, /* some could not be sent */
	MAX_DEPTH = 32,
	MAX_QUESTION = 256 << 20,
	SEND_MS = 30 * 60 * 1000,
	LEVEL = 3, /* of zstd */
};

struct debuginfo_options {
	struct api_options api;
	bool force, quiet, json, help;
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
	"\n"
	"Programs that were stripped are profiled as addresses. Upload a program that was not\n"
	"stripped, or its debug file, and the server has names for all profiles of that build,\n"
	"also of those that it has already. Of folders, all ELF files in them that have names\n"
	"and a build id. What the server has already is not sent again.\n"
	"\n";

static const char usage_tail[] =
	"\n"
	"The status is 0 if all is well, 1 if something could not be sent, 2 if it is called\n"
	"wrongly.\n"
	"\n"
	"After a build:\n"
	"  kiln debuginfo upload --to https://profiles.example.org --token-file token build/\n";

struct uploading {
	const struct debuginfo_options *o;
	struct api api;
	bool is_terminal;
	uint64_t nsent, nthere, nskipped, nfailed, bytes;
};

/* ---- requests */

static bool ask(struct uploading *u, const char *path, struct str body, struct http_response *r,
		struct err *e)
{
	return api_send(&u->api,
			&(struct api_request){
				.path = path, .body = body, .timeout_ms = body.p ? SEND_MS : 0 },
			r, e);
}

/* ---- one file */

static void say(const struct uploading *u, const char *path, const char *what)
{
	if (u->is_terminal)
		fputs("\r\33[K", stderr);
	if (!u->o->quiet)
		printf("%s: %s\n", path, what);
	fflush(stdout);
}

static void show_progress(const struct uploading *u, const char *path, const char *what)
{
	if (u->is_terminal && !u->o->quiet)
		fprintf(stderr, "\r\33[K%s: %s ", path, what);
}

/* What the server has of this build: its rank, 0 if it has none. */
static bool ask_rank(struct uploading *u, const char *path, int64_t *rank, struct err *e)
{
	struct http_response r = { 0 };
	struct arena a = { 0 };
	const struct json *number = NULL;
	struct json json;
	bool ok = ask(u, path, (struct str){ 0 }, &r, e);

	*rank = 0;
	if (ok && r.status != 200 && r.status != 404)
		ok = api_fail(&r, e);
	if (ok && r.status == 200 && json_parse(&a, buf_view(&r.body), &json, e))
		number = json_member(&json, "rank");
	if (number && number->type == JSON_NUMBER)
		*rank = strtoll(str_dup(&a, number->text), NULL, 10);
	arena_release(&a);
	http_response_release(&r);
	return ok;
}

static bool pack(struct str bytes, struct buf *out, struct err *e)
{
	size_t bound = ZSTD_compressBound(bytes.n), n;

	n = ZSTD_compress(buf_room(out, bound), bound, bytes.p, bytes.n, LEVEL);
	if (ZSTD_isError(n))
		return err_set(e, ERR_IO, "zstd: %s", ZSTD_getErrorName(n));
	out->n = n;
	return true;
}

static bool send_file(struct uploading *u, const struct object *o, const char *target,
		      struct buf *result, struct err *e)
{
	struct http_response r = { 0 };
	struct buf packed = { 0 };
	struct arena a = { 0 };
	const struct json *said = NULL;
	struct json json;
	bool ok = pack(o->bytes, &packed, e);

	show_progress(u, o->path, "is being sent");
	ok = ok && ask(u, target, buf_view(&packed), &r, e) && (r.status == 200 || api_fail(&r, e));
	if (ok && json_parse(&a, buf_view(&r.body), &json, e))
		said = json_member(&json, "result");
	if (ok) {
		buf_str(result, said ? said->text : STR("stored"));
		buf_puts(result, ", ");
		amount_print_bytes(result, (int64_t)packed.n / 1024 * 1024);
		buf_puts(result, " sent");
		u->bytes += packed.n;
	}
	arena_release(&a);
	buf_release(&packed);
	http_response_release(&r);
	return ok;
}

static void put_target(struct buf *out, const struct object *o)
{
	buf_printf(out, "/api/1/debuginfo/%.*s?name=", STR_ARG(o->build_id));
	http_put_escaped(out, path_base(str_of(o->path)));
	buf_char(out, '\0');
}

static bool upload_object(struct uploading *u, const struct object *o, int rank, struct err *e)
{
	struct buf target = { 0 }, result = { 0 };
	int64_t known;
	bool ok;

	put_target(&target, o);
	show_progress(u, o->path, "does the server have it?");
	ok = ask_rank(u, target.p, &known, e);
	if (ok && known >= rank && !u->o->force) {
		u->nthere++;
		say(u, o->path, "already there");
	} else if (ok) {
		ok = send_file(u, o, target.p, &result, e);
		buf_char(&result, '\0');
		if (ok)
			say(u, o->path, result.p);
		u->nsent += ok;
	}
	buf_release(&target);
	buf_release(&result);
	return ok;
}

/* Is it of any use? Of folders, what is not is passed over. */
static bool check_object(const struct object *o, int rank, struct err *e)
{
	if (o->kind != OBJECT_ELF)
		return err_set(e, ERR_FORMAT, "it is no ELF file");
	if (!o->build_id.n)
		return err_set(e, ERR_FORMAT, "it has no build id; link it with -Wl,--build-id");
	return rank || err_set(e, ERR_FORMAT,
			       "it has no names: it is stripped; upload the file that it was made "
			       "of, or its debug file");
}

static void fail_file(struct uploading *u, const char *path, const struct err *e)
{
	u->nfailed++;
	if (u->is_terminal)
		fputs("\r\33[K", stderr);
	fprintf(stderr, "kiln debuginfo: %s: %s\n", path, e->text);
}

static void upload_file(struct uploading *u, const char *path, bool is_named)
{
	struct object_contents has;
	struct object o;
	struct err e;
	int rank;
	bool ok = object_open(&o, path, &e);

	if (!ok && is_named)
		fail_file(u, path, &e);
	if (!ok) {
		u->nskipped++;
		return;
	}
	has = object_contents(&o);
	rank = object_contents_rank(&has);
	if (!check_object(&o, rank, &e)) {
		u->nskipped++;
		if (is_named)
			fail_file(u, path, &e);
	} else if (!upload_object(u, &o, rank, &e)) {
		fail_file(u, path, &e);
	}
	object_close(&o);
}

/* ---- many */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void upload_path(struct uploading *u, const char *path, bool is_named, int depth);

/* In order of names, so that two runs say the same. */
static void upload_folder(struct uploading *u, const char *path, int depth)
{
	struct arena a = { 0 };
	vec(char *) names = { 0 };
	struct dirent *entry;
	DIR *d = opendir(path);
	struct err e;

	if (!d) {
		err_system(&e, "open", path);
		fail_file(u, path, &e);
		return;
	}
	while ((entry = readdir(d)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			vec_push(&names, str_dup(&a, str_of(entry->d_name)));
	closedir(d);
	if (names.n)
		qsort(names.at, names.n, sizeof(*names.at), by_name);
	for (size_t i = 0; i < names.n; i++) {
		struct buf full = { 0 };

		path_join(&full, str_of(path), str_of(names.at[i]));
		buf_char(&full, '\0');
		upload_path(u, full.p, false, depth + 1);
		buf_release(&full);
	}
	vec_release(&names);
	arena_release(&a);
}

/* Links in folders are not followed: what they lead to is elsewhere. */
static void upload_path(struct uploading *u, const char *path, bool is_named, int depth)
{
	struct stat st;
	struct err e;

	if ((is_named ? stat(path, &st) : lstat(path, &st)) != 0) {
		err_system(&e, "stat", path);
		fail_file(u, path, &e);
	} else if (S_ISDIR(st.st_mode) && depth < MAX_DEPTH) {
		upload_folder(u, path, depth);
	} else if (S_ISREG(st.st_mode)) {
		upload_file(u, path, is_named);
	} else if (is_named) {
		err_set(&e, ERR_USAGE, "it is neither a file nor a folder");
		fail_file(u, path, &e);
	}
}

static int run_upload(struct uploading *u, int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		upload_path(u, argv[i], true, 0);
	if (!u->o->quiet)
		printf("%llu sent, %llu already there, %llu passed over, %llu failed\n",
		       (unsigned long long)u->nsent, (unsigned long long)u->nthere,
		       (unsigned long long)u->nskipped, (unsigned long long)u->nfailed);
	return u->nfailed ? EXIT_FAILED : EXIT_SUCCESS;
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

static bool list(struct uploading *u, struct err *e)
{
	struct http_response r = { 0 };
	struct arena a = { 0 };
	const struct json *files = NULL;
	struct json json;
	bool ok = ask(u, "/api/1/debuginfo?limit=100000", (struct str){ 0 }, &r, e) &&
		  (r.status == 200 || api_fail(&r, e));

	if (ok && u->o->json) {
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

static int fail(const struct err *e, int status)
{
	struct buf out = { 0 };

	buf_printf(&out, "kiln debuginfo: %s%s\n", e->text,
		   status == EXIT_ERROR ? "; see kiln debuginfo --help" : "");
	return print_and_exit(&out, STDERR_FILENO, status);
}

static int run_list(struct uploading *u, int argc, char **argv)
{
	struct err e;

	(void)argv;
	if (argc) {
		err_set(&e, ERR_USAGE, "list takes no files");
		return fail(&e, EXIT_ERROR);
	}
	return list(u, &e) ? EXIT_SUCCESS : fail(&e, EXIT_FAILED);
}

/* ---- names: what the server starts, names_child.h */

static int run_names(const char *path, const char *build_id)
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
	names_child_answer(path, str_of(build_id), buf_view(&question), &out);
	buf_release(&question);
	return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
}

/* ---- */

static int run(const struct debuginfo_options *o, const char *what, int argc, char **argv)
{
	struct uploading u = { .o = o, .is_terminal = isatty(STDERR_FILENO) };
	struct err e;
	int status;

	if (!api_open(&u.api, &o->api, &e))
		return fail(&e, EXIT_ERROR);
	status = strcmp(what, "list") == 0 ? run_list(&u, argc, argv) : run_upload(&u, argc, argv);
	api_close(&u.api);
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

int cmd_debuginfo(int argc, char **argv)
{
	struct debuginfo_options o = defaults;
	struct arena a = { 0 };
	struct buf out = { 0 };
	const char *what = argc > 1 ? argv[1] : "";
	bool is_upload = strcmp(what, "upload") == 0;
	struct err e;
	int status;

	if (strcmp(what, "--complete") == 0 || strcmp(what, "--scdoc") == 0) {
		(what[2] == 'c' ? args_complete : args_scdoc)(&out, &table);
		return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	}
	if (strcmp(what, "names") == 0 && argc == 4)
		return run_names(argv[2], argv[3]);
	if (strcmp(what, "--help") == 0 || strcmp(what, "-help") == 0 || strcmp(what, "-h") == 0)
		return print_usage();
	if (!is_upload && strcmp(what, "list") != 0) {
		err_set(&e, ERR_USAGE, *what ? "there is no \"%s\"" : "upload or list is missing%s",
			what);
		return fail(&e, EXIT_ERROR);
	}
	argc -= 2, argv += 2;
	if (!args_take(&table, &o, &a, &argc, &argv, &e))
		status = fail(&e, EXIT_ERROR);
	else if (o.help)
		status = print_usage();
	else if (is_upload && !argc)
		status = (err_set(&e, ERR_USAGE, "no file is given"), fail(&e, EXIT_ERROR));
	else
		status = run(&o, what, argc, argv);
	arena_release(&a);
	return status;
}
