/* api1_debuginfo.c - debug info: uploaded, listed, dropped, and served as debuginfod does. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "server/api1_params.h"
#include "server/debuginfo.h"
#include "server/gate.h"
#include "server/log.h"
#include "server/names.h"

static void put_contents(struct buf *out, const struct object_contents *c)
{
	const struct {
		bool is_there;
		const char *name;
	} parts[] = {
		{ c->is_loadable, "code" },    { c->has_symbols, "symbols" },
		{ c->has_exports, "exports" }, { c->has_debug_info, "debug_info" },
		{ c->has_lines, "lines" },     { c->has_go_table, "go" },
	};
	bool more = false;

	buf_puts(out, ",\"has\":[");
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (!parts[i].is_there)
			continue;
		buf_printf(out, "%s\"%s\"", more ? "," : "", parts[i].name);
		more = true;
	}
	buf_char(out, ']');
}

static void put_file(struct buf *out, const struct debuginfo_file *f, const char *result)
{
	buf_puts(out, "{\"build_id\":");
	json_put(out, f->build_id);
	buf_puts(out, ",\"name\":");
	json_put(out, f->name);
	buf_printf(out, ",\"origin\":\"%s\",\"bytes\":%llu,\"rank\":%d",
		   f->is_fetched ? "debuginfod" : "upload", (unsigned long long)f->bytes,
		   object_contents_rank(&f->has));
	put_contents(out, &f->has);
	json_time(out, "since", f->since);
	json_time(out, "used", f->used);
	if (f->is_unreadable)
		buf_puts(out, ",\"unreadable\":true");
	if (result)
		buf_printf(out, ",\"result\":\"%s\"", result);
	buf_char(out, '}');
}

static bool run_debuginfo(struct request *q, struct buf *out, struct err *e)
{
	struct debuginfo_file *files;
	size_t limit = (size_t)request_int(q, "limit");
	size_t n = debuginfo_list(q->c->server->debuginfo, q->a, &files);

	(void)e;
	buf_printf(out, "{\"total\":%zu,\"files\":[", n);
	for (size_t i = 0; i < n && i < limit; i++) {
		buf_puts(out, i ? ",\n" : "\n");
		put_file(out, &files[i], NULL);
	}
	buf_puts(out, "]}\n");
	return true;
}

/* ---- one of them */

static const char *who(const struct request *q)
{
	return q->c->who.n ? str_dup(q->a, q->c->who) : "somebody";
}

static bool upload(struct request *q, struct str build_id, const char **result, struct err *e)
{
	static const char *const results[] = { [DEBUGINFO_NEW] = "stored",
					       [DEBUGINFO_BETTER] = "replaced",
					       [DEBUGINFO_THERE] = "already there" };
	struct server *s = q->c->server;
	struct str name = request_text(q, "name");
	enum debuginfo_put how;

	if (!q->c->http->body.n)
		return err_set(e, ERR_USAGE, "the body is to be an ELF file, and there is none");
	if (!debuginfo_put(s->debuginfo,
			   &(struct debuginfo_new){
				   .build_id = build_id, .name = name, .body = q->c->http->body },
			   &how, e))
		return false;
	*result = results[how];
	if (how != DEBUGINFO_THERE) {
		names_changed(s->names, build_id);
		log_info("%s uploaded debug info of %.*s (%.*s)", who(q), STR_ARG(name),
			 STR_ARG(build_id));
	}
	return true;
}

static bool drop(struct request *q, struct str build_id)
{
	struct server *s = q->c->server;
	struct debuginfo_stats stats;
	struct err ignored;

	if (!debuginfo_drop(s->debuginfo, build_id))
		return false;
	names_changed(s->names, build_id);
	debuginfo_stats(s->debuginfo, &stats);
	store_set_others(s->store, stats.bytes + names_disk_bytes(s->names), &ignored);
	log_info("%s dropped debug info of %.*s", who(q), STR_ARG(build_id));
	return true;
}

static bool run_debugfile(struct request *q, struct buf *out, struct err *e)
{
	struct str id = request_text(q, "build_id"), method = q->c->http->method;
	struct debuginfo_file file = { 0 };
	const char *result = NULL;
	bool is_there;

	if (str_eq(method, STR("POST")) && !upload(q, id, &result, e))
		return false;
	is_there = debuginfo_find(q->c->server->debuginfo, id, q->a, &file);
	if (str_eq(method, STR("DELETE")) && is_there) {
		is_there = drop(q, id);
		result = "deleted";
	}
	if (!is_there)
		return err_set(e, ERR_NOTFOUND, "there is no debug info of build id \"%.*s\"",
			       STR_ARG(id));
	put_file(out, &file, result);
	buf_char(out, '\n');
	return true;
}

static const struct param list_params[] = { PARAM_LIMIT(1000, 100000, "files") };
static const struct param file_params[] = {
	{ .name = "build_id",
	  .kind = PARAM_TEXT,
	  .flags = IS_PATH,
	  .help = "The build id, in digits 0-9a-f, as file(1) and readelf -n tell it." },
	{ .name = "name", .kind = PARAM_TEXT, .help = "What the file is called, for people." },
};

const struct endpoint endpoint_debuginfo = {
	.path = "/api/1/debuginfo",
	.details = "Binaries and debug files that the server names addresses by, in order of their "
		   "build ids: what they have, when they came, and when they were last needed.",
	ENDPOINT_PARAMS(list_params),
	.answer = "DebugFiles",
	.run = run_debuginfo,
};
const struct endpoint endpoint_debugfile = {
	.path = "/api/1/debuginfo/*",
	.details =
		"POST sends an ELF file, as it is or packed by zstd or gzip, whose build id must "
		"be the one in the path: a program that was not stripped, or the debug file that "
		"was made of it. It is kept if it tells more than what is there, and then "
		"addresses in stored profiles have names. GET says what is there, and answers "
		"404 if nothing is. DELETE drops it, which takes the role admin; POST takes the "
		"role write. The files themselves are at /buildid/ID/debuginfo and "
		"/buildid/ID/executable, where gdb and others that know debuginfod find them.",
	ENDPOINT_PARAMS(file_params),
	.takes_body = true,
	.answer = "DebugFile",
	.run = run_debugfile,
};

/* ---- as debuginfod */

static bool read_whole(const char *path, uint64_t n, struct buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0;

	while (ok && out->n < n) {
		ssize_t got = read(fd, buf_room(out, n - out->n), n - out->n);

		ok = got > 0;
		out->n += ok ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	return ok;
}

void buildid_file(struct call *c)
{
	struct str rest = c->rest, id = str_cut(&rest, '/');
	bool wants_code = str_eq(rest, STR("executable"));
	struct debuginfo_file file;
	struct buf bytes = { 0 };

	if ((!wants_code && !str_eq(rest, STR("debuginfo"))) ||
	    !debuginfo_find(c->server->debuginfo, id, c->arena, &file) ||
	    (wants_code && !file.has.is_loadable)) {
		reply_text(c, 404, "not found\n");
		return;
	}
	debuginfo_use(c->server->debuginfo, id);
	if (!gate_take(c, file.bytes))
		return;
	if (read_whole(file.path, file.bytes, &bytes))
		reply_file(c, &bytes, str_dup(c->arena, file.name));
	else
		reply_text(c, 404, "not found\n");
	buf_release(&bytes);
}
