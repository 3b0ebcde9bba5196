/* debuginfo_upload.c - kiln debuginfo upload: files, and those in folders, to the server. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/amount.h"
#include "base/json.h"
#include "base/path.h"
#include "base/vec.h"
#include "cmd/debuginfo.h"
#include "http/target.h"
#include "symbol/symbol.h"

enum {
	MAX_DEPTH = 32,
	LEVEL = 3, /* of zstd */
};

struct uploading {
	const struct debuginfo_client *client;
	bool is_quiet, is_terminal;
	uint64_t nsent, nthere, nskipped, nfailed, bytes;
};

/* ---- one file */

static void say(const struct uploading *u, const char *path, const char *what)
{
	if (u->is_terminal)
		fputs("\r\33[K", stderr);
	if (!u->is_quiet)
		printf("%s: %s\n", path, what);
	fflush(stdout);
}

static void show_progress(const struct uploading *u, const char *path, const char *what)
{
	if (u->is_terminal && !u->is_quiet)
		fprintf(stderr, "\r\33[K%s: %s ", path, what);
}

/* What the server has of this build: its rank, 0 if it has none that is of use. */
static bool ask_rank(struct uploading *u, const char *path, int64_t *rank, struct err *e)
{
	struct http_response r = { 0 };
	struct arena a = { 0 };
	const struct json *number = NULL;
	struct json json = { 0 };
	bool ok = debuginfo_ask(u->client, NULL, path, (struct str){ 0 }, &r, e);

	*rank = 0;
	if (ok && r.status != 200 && r.status != 404)
		ok = api_fail(&r, e);
	if (ok && r.status == 200 && json_parse(&a, buf_view(&r.body), &json, e))
		number = json_member(&json, "unreadable") ? NULL : json_member(&json, "rank");
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
	ok = ok && debuginfo_ask(u->client, NULL, target, buf_view(&packed), &r, e) &&
	     (r.status == 200 || api_fail(&r, e));
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
	if (ok && known >= rank && !u->client->o->force) {
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

int debuginfo_upload(const struct debuginfo_client *c, int argc, char **argv)
{
	struct uploading u = { .client = c,
			       .is_quiet = c->o->quiet,
			       .is_terminal = isatty(STDERR_FILENO) };

	for (int i = 0; i < argc; i++)
		upload_path(&u, argv[i], true, 0);
	if (!u.is_quiet)
		printf("%llu sent, %llu already there, %llu passed over, %llu failed\n",
		       (unsigned long long)u.nsent, (unsigned long long)u.nthere,
		       (unsigned long long)u.nskipped, (unsigned long long)u.nfailed);
	return u.nfailed ? EXIT_FAILED : EXIT_SUCCESS;
}
