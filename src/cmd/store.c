/* store.c - kiln store: a folder of kiln serve, while no server has it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/json.h"
#include "base/number.h"
#include "cmd/cmd.h"
#include "fetch/file.h"
#include "store/store.h"

enum { EXIT_FAILED = 1, MAX_FILE = 1 << 30 };

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
	"  export   writes each profile to FOLDER/ID.pb.gz, and what is known of it as a line\n"
	"           of JSON to FOLDER/index.jsonl\n"
	"  import   puts such files into the store; those that it has already are left alone\n";

static int fail(const struct err *e, int status)
{
	struct buf out = { 0 };

	buf_printf(&out, "kiln store: %s\n", e->text);
	return print_and_exit(&out, STDERR_FILENO, status);
}

static void say(void *ctx, const char *line)
{
	(void)ctx;
	puts(line);
}

/* ---- check, compact */

static bool run_check(struct store *s, const char *folder, struct err *e)
{
	struct store_checked found;

	(void)folder;
	if (!store_check(s, say, NULL, &found, e))
		return false;
	printf("%llu profiles and %llu sums read, %llu problems\n",
	       (unsigned long long)found.nprofiles, (unsigned long long)found.nsums,
	       (unsigned long long)found.nproblems);
	return !found.nproblems || err_set(e, ERR_FORMAT, "the store is damaged");
}

static bool run_compact(struct store *s, const char *folder, struct err *e)
{
	struct store_stats before, after;

	(void)folder;
	store_stats(s, &before);
	if (!store_compact(s, e))
		return false;
	store_stats(s, &after);
	printf("%llu bytes are %llu bytes now\n", (unsigned long long)before.bytes_on_disk,
	       (unsigned long long)after.bytes_on_disk);
	return true;
}

/* ---- export */

static bool write_file(const char *folder, const char *name, struct str bytes, struct err *e)
{
	struct buf path = { 0 }, out = { 0 };
	bool ok;
	int fd;

	buf_printf(&path, "%s/%s%c", folder, name, '\0');
	fd = open(path.p, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ok = fd >= 0 || err_system(e, "open", path.p);
	if (ok) {
		buf_to_fd(&out, fd);
		buf_str(&out, bytes);
		ok = buf_flush(&out, e) || err_wrap(e, "%s", path.p);
		if (close(fd) && ok)
			ok = err_system(e, "close", path.p);
	}
	buf_release(&out);
	buf_release(&path);
	return ok;
}

static void put_line(struct buf *out, const struct store_meta *m, const char *file)
{
	buf_puts(out, "{\"file\":");
	json_put(out, str_of(file));
	buf_puts(out, ",\"service\":");
	json_put(out, m->service);
	buf_puts(out, ",\"type\":");
	json_put(out, m->type);
	/* As text: not all readers of JSON know 64 bits. */
	buf_printf(out, ",\"created_ns\":\"%lld\",\"labels\":[", (long long)m->created);
	for (size_t i = 0; i < m->nlabels; i++) {
		buf_puts(out, i ? ",[" : "[");
		json_put(out, m->labels[i].key);
		buf_char(out, ',');
		json_put(out, m->labels[i].value);
		buf_char(out, ']');
	}
	buf_puts(out, "]}\n");
}

static bool export_one(struct store *s, const struct store_id *id, const char *folder,
		       struct buf *index, struct err *e)
{
	struct arena a = { 0 };
	struct strings strings;
	struct store_meta meta;
	struct profile p;
	struct str bytes;
	struct buf name = { 0 }, file = { 0 };
	bool ok;

	strings_init(&strings);
	store_id_print(&name, id);
	ok = store_get(s, id, &a, &strings, &meta, &p, &bytes, e) ||
	     err_wrap(e, "profile %.*s", STR_ARG(buf_view(&name)));
	if (ok) {
		buf_puts(&name, p.strings ? ".pb.gz" : ".bin");
		buf_char(&name, '\0');
		if (p.strings)
			profile_encode_gzip(&file, &p);
		else
			buf_str(&file, bytes);
		ok = write_file(folder, name.p, buf_view(&file), e);
		put_line(index, &meta, name.p);
	}
	buf_release(&name);
	buf_release(&file);
	strings_release(&strings);
	arena_release(&a);
	return ok;
}

static bool run_export(struct store *s, const char *folder, struct err *e)
{
	struct store_query all = { .from = INT64_MIN, .to = INT64_MAX };
	struct arena a = { 0 };
	struct buf index = { 0 };
	struct store_meta *metas;
	struct store_stats stats;
	size_t n = 0;
	bool ok = !mkdir(folder, 0777) || errno == EEXIST || err_system(e, "mkdir", folder);

	ok = ok && store_find(s, &all, &a, &metas, &n, e);
	for (size_t i = 0; ok && i < n; i++)
		ok = export_one(s, &metas[i].id, folder, &index, e);
	ok = ok && write_file(folder, "index.jsonl", buf_view(&index), e);
	store_stats(s, &stats);
	if (ok)
		printf("%zu profiles exported\n", n);
	if (ok && stats.nprofiles > n)
		printf("%llu profiles are only in sums of minutes, hours or days: those are not "
		       "exported\n",
		       (unsigned long long)(stats.nprofiles - n));
	buf_release(&index);
	arena_release(&a);
	return ok;
}

/* ---- import */

static bool text_of(const struct json *object, const char *name, struct str *text, struct err *e)
{
	const struct json *member = json_member(object, name);

	if (!member || member->type != JSON_STRING)
		return err_set(e, ERR_FORMAT, "\"%s\" is not there, or is no text", name);
	*text = member->text;
	return true;
}

static bool labels_of(struct arena *a, const struct json *object, struct store_new *new,
		      struct err *e)
{
	const struct json *list = json_member(object, "labels");
	struct store_label *labels;

	if (!list || list->type != JSON_ARRAY)
		return err_set(e, ERR_FORMAT, "\"labels\" is not there, or is no list");
	labels = arena_many(a, list->n + 1, struct store_label);
	for (size_t i = 0; i < list->n; i++) {
		const struct json *pair = &list->at[i];

		if (pair->type != JSON_ARRAY || pair->n != 2 || pair->at[0].type != JSON_STRING ||
		    pair->at[1].type != JSON_STRING)
			return err_set(e, ERR_FORMAT, "a label is no pair of texts");
		labels[i] = (struct store_label){ pair->at[0].text, pair->at[1].text };
	}
	new->labels = labels;
	new->nlabels = list->n;
	return true;
}

/* The name is the id; it may not lead out of the folder. */
static bool id_of(struct str file, struct store_id *id, bool *is_profile, struct err *e)
{
	*is_profile = str_has_suffix(file, STR(".pb.gz"));
	if ((*is_profile || str_has_suffix(file, STR(".bin"))) &&
	    file.n == STORE_ID_CHARS + (*is_profile ? strlen(".pb.gz") : strlen(".bin")) &&
	    store_id_parse((struct str){ file.p, STORE_ID_CHARS }, id))
		return true;
	return err_set(e, ERR_FORMAT, "\"file\" is not an id with .pb.gz or .bin");
}

static bool has_profile(struct store *s, const struct store_id *id)
{
	struct store_meta meta;
	struct profile p;
	struct str bytes;
	struct arena a = { 0 };
	struct strings strings;
	struct err ignored;
	bool has;

	strings_init(&strings);
	has = store_get(s, id, &a, &strings, &meta, &p, &bytes, &ignored);
	strings_release(&strings);
	arena_release(&a);
	return has;
}

static bool read_new(struct arena *a, struct strings *strings, const char *folder, struct str line,
		     struct store_new *new, struct store_id *id, struct profile *p, struct err *e)
{
	struct json object;
	struct str file = { 0 }, created = { 0 }, bytes = { 0 };
	struct buf path = { 0 };
	bool is_profile, ok;

	if (!json_parse(a, line, &object, e) || !text_of(&object, "file", &file, e) ||
	    !text_of(&object, "service", &new->service, e) ||
	    !text_of(&object, "type", &new->type, e) ||
	    !text_of(&object, "created_ns", &created, e) || !labels_of(a, &object, new, e) ||
	    !id_of(file, id, &is_profile, e))
		return false;
	if (number_parse_int(created, 10, &new->created) != NUMBER_OK)
		return err_set(e, ERR_FORMAT, "\"created_ns\" is no number");
	buf_printf(&path, "%s/%.*s%c", folder, STR_ARG(file), '\0');
	ok = file_read(a, path.p, MAX_FILE, &bytes, e);
	if (ok && is_profile)
		ok = profile_read(p, a, strings, bytes, MAX_FILE, e) || err_wrap(e, "%s", path.p);
	buf_release(&path);
	if (is_profile)
		new->profile = p;
	else
		new->bytes = bytes;
	new->id = id;
	return ok;
}

static bool import_one(struct store *s, const char *folder, struct str line, uint64_t *n,
		       struct err *e)
{
	struct arena a = { 0 };
	struct strings strings;
	struct store_new new = { 0 };
	struct store_meta meta;
	struct store_id id;
	struct profile p;
	bool ok;

	strings_init(&strings);
	ok = read_new(&a, &strings, folder, line, &new, &id, &p, e);
	if (ok && !has_profile(s, &id)) {
		ok = store_put(s, &new, &a, &meta, e);
		*n += ok;
	}
	strings_release(&strings);
	arena_release(&a);
	return ok;
}

static bool run_import(struct store *s, const char *folder, struct err *e)
{
	struct arena a = { 0 };
	struct buf path = { 0 };
	struct str rest;
	uint64_t n = 0, number = 0;
	bool ok;

	buf_printf(&path, "%s/index.jsonl%c", folder, '\0');
	ok = file_read(&a, path.p, MAX_FILE, &rest, e);
	while (ok && rest.n) {
		struct str line = str_cut(&rest, '\n');

		number++;
		if (line.n)
			ok = import_one(s, folder, line, &n, e) ||
			     err_wrap(e, "%s:%llu", path.p, (unsigned long long)number);
	}
	printf("%llu profiles imported\n", (unsigned long long)n);
	buf_release(&path);
	arena_release(&a);
	return ok;
}

/* ---- */

static const struct tool {
	const char *name;
	int nargs;
	bool makes_folder;
	bool (*run)(struct store *s, const char *folder, struct err *e);
} tools[] = {
	{ "check", 1, false, run_check },
	{ "compact", 1, false, run_compact },
	{ "export", 2, false, run_export },
	{ "import", 2, true, run_import },
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

int cmd_store(int argc, char **argv)
{
	const struct tool *tool = argc > 1 ? find_tool(argv[1]) : NULL;
	struct store_params params = { .dir = argc > 2 ? argv[2] : "", .is_passive = true };
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
	ok = (tool->makes_folder || is_store(params.dir, &e)) && (s = store_open(&params, &e));
	ok = ok && tool->run(s, argc > 3 ? argv[3] : "", &e);
	store_close(s);
	fflush(stdout);
	return ok ? EXIT_SUCCESS : fail(&e, EXIT_FAILED);
}
