/* store_export.c - a file for each profile and each sum, and an index with a line for each. */
#include "cmd/store_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/escape.h"

struct export
{
	struct store *s;
	const char *folder;
	struct buf index;
	uint64_t nprofiles, nsums, nrules, nannotations, ndamaged;
};

/* Opens FOLDER/NAME to be written. */
static int open_file(const struct export *x, const char *name, struct err *e)
{
	struct buf path = { 0 };
	int fd;

	buf_printf(&path, "%s/%s%c", x->folder, name, '\0');
	fd = open(path.p, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		err_system(e, "open", path.p);
	buf_release(&path);
	return fd;
}

static bool close_file(const struct export *x, int fd, struct buf *out, const char *name,
		       struct err *e)
{
	bool ok = buf_flush(out, e) || err_wrap(e, "%s/%s", x->folder, name);

	if (close(fd) && ok)
		ok = err_system(e, "close", name);
	return ok;
}

static bool write_file(const struct export *x, const char *name, struct str bytes, struct err *e)
{
	struct buf out = { 0 };
	int fd = open_file(x, name, e);
	bool ok;

	if (fd < 0)
		return false;
	buf_to_fd(&out, fd);
	buf_str(&out, bytes);
	ok = close_file(x, fd, &out, name, e);
	buf_release(&out);
	return ok;
}

/* Numbers of 64 bits are texts: not all readers of JSON know them. */
static void put_number(struct buf *out, const char *name, int64_t number)
{
	buf_printf(out, ",\"%s\":\"%lld\"", name, (long long)number);
}

static void put_names(struct buf *out, const char *file, struct str service, struct str type)
{
	buf_puts(out, "{\"file\":");
	json_put(out, str_of(file));
	buf_puts(out, ",\"service\":");
	json_put(out, service);
	buf_puts(out, ",\"type\":");
	json_put(out, type);
}

static void put_labels(struct buf *out, const struct store_label *labels, size_t n)
{
	buf_puts(out, ",\"labels\":[");
	for (size_t i = 0; i < n; i++) {
		buf_puts(out, i ? ",[" : "[");
		json_put(out, labels[i].key);
		buf_char(out, ',');
		json_put(out, labels[i].value);
		buf_char(out, ']');
	}
	buf_char(out, ']');
}

/* ---- profiles */

static void put_profile(struct buf *out, const struct store_meta *m, const char *file)
{
	put_names(out, file, m->service, m->type);
	put_number(out, "created_ns", m->created);
	put_labels(out, m->labels, m->nlabels);
	if (m->process)
		put_number(out, "process", m->process);
	buf_puts(out, "}\n");
}

static bool export_profile(void *ctx, const struct store_id *id, struct err *e)
{
	struct export *x = ctx;
	struct arena a = { 0 };
	struct strings strings;
	struct store_meta meta;
	struct profile p;
	struct str bytes;
	struct buf name = { 0 }, file = { 0 };
	bool ok;

	strings_init(&strings);
	store_id_print(&name, id);
	ok = store_get(x->s, id, &a, &strings, &meta, &p, &bytes, e) ||
	     err_wrap(e, "profile %.*s", STR_ARG(buf_view(&name)));
	if (ok) {
		buf_puts(&name, p.strings ? ".pb.gz" : ".bin");
		buf_char(&name, '\0');
		if (p.strings)
			profile_encode_gzip(&file, &p);
		else
			buf_str(&file, bytes);
		ok = write_file(x, name.p, buf_view(&file), e);
		put_profile(&x->index, &meta, name.p);
		x->nprofiles++;
	}
	buf_release(&name);
	buf_release(&file);
	strings_release(&strings);
	arena_release(&a);
	return ok;
}

/* ---- sums */

static void put_window(struct buf *out, const struct store_window *w, const char *file)
{
	put_names(out, file, w->service, w->type);
	put_labels(out, w->labels, w->nlabels);
	buf_printf(out, ",\"sum\":\"%s\"", w->tier == 1 ? "minute" : w->tier == 2 ? "hour" : "day");
	put_number(out, "start_ns", w->start);
	put_number(out, "first_ns", w->first);
	put_number(out, "last_ns", w->last);
	put_number(out, "duration_ns", w->duration);
	put_number(out, "until_ns", w->until);
	put_number(out, "profiles", (int64_t)w->nprofiles);
	buf_printf(out, ",\"differences\":%s,\"thinned\":%s}\n", w->has_deltas ? "true" : "false",
		   w->is_thinned ? "true" : "false");
}

static bool export_window(void *ctx, const struct store_window *w, struct err *e)
{
	struct export *x = ctx;
	struct buf file = { 0 };
	char name[40];
	bool ok;

	snprintf(name, sizeof(name), "sum-%llu.pb.gz", (unsigned long long)++x->nsums);
	profile_encode_gzip(&file, w->profile);
	ok = write_file(x, name, buf_view(&file), e);
	put_window(&x->index, w, name);
	buf_release(&file);
	return ok;
}

/* ---- rules */

static void export_rules(struct export *x)
{
	struct arena a = { 0 };
	struct store_rule *rules;
	size_t n;

	store_rules(x->s, &a, &rules, &n);
	for (size_t i = 0; i < n; i++) {
		if (!rules[i].is_stored)
			continue;
		buf_puts(&x->index, "{\"rule\":");
		json_put(&x->index, rules[i].service);
		put_number(&x->index, "raw_ns", rules[i].raw_ns);
		put_number(&x->index, "minute_ns", rules[i].minute_ns);
		put_number(&x->index, "hour_ns", rules[i].hour_ns);
		put_number(&x->index, "day_ns", rules[i].day_ns);
		buf_puts(&x->index, "}\n");
		x->nrules++;
	}
	arena_release(&a);
}

/* ---- annotations */

static void put_annotation(struct buf *out, const struct store_annotation *x)
{
	buf_puts(out, "{\"annotation\":");
	json_put(out, x->text);
	put_number(out, "time_ns", x->time);
	put_number(out, "end_ns", x->end);
	buf_puts(out, ",\"service\":");
	json_put(out, x->service);
	buf_puts(out, ",\"tags\":");
	json_put(out, x->tags);
	buf_puts(out, ",\"who\":");
	json_put(out, x->who);
	buf_puts(out, "}\n");
}

static bool export_annotations(struct export *x, struct err *e)
{
	struct store_annotation_query all = { .from = INT64_MIN, .to = INT64_MAX };
	struct store_annotations found;
	struct arena a = { 0 };
	bool ok = store_annotations(x->s, &all, &a, &found, e);

	for (size_t i = 0; ok && i < found.n; i++, x->nannotations++)
		put_annotation(&x->index, &found.at[i]);
	arena_release(&a);
	return ok;
}

/* ---- all */

static bool note_damaged(void *ctx, const struct err *e)
{
	struct export *x = ctx;

	x->ndamaged++;
	fprintf(stderr, "kiln store: %s\n", e->text);
	return true;
}

/* An index that is there is a whole one. */
static bool rename_index(const struct export *x, struct err *e)
{
	struct buf from = { 0 }, to = { 0 };
	bool ok;

	buf_printf(&from, "%s/index.jsonl.part%c", x->folder, '\0');
	buf_printf(&to, "%s/index.jsonl%c", x->folder, '\0');
	ok = rename(from.p, to.p) == 0 || err_system(e, "rename", from.p);
	buf_release(&from);
	buf_release(&to);
	return ok;
}

bool store_export(struct store *s, const struct store_params *params, const char *folder,
		  struct err *e)
{
	struct export x = { .s = s, .folder = folder };
	struct store_carrier carrier = { .profile = export_profile,
					 .window = export_window,
					 .damaged = note_damaged,
					 .ctx = &x };
	bool ok = !mkdir(folder, 0777) || errno == EEXIST || err_system(e, "mkdir", folder);
	int fd = ok ? open_file(&x, "index.jsonl.part", e) : -1;

	(void)params;
	if (fd < 0)
		return false;
	buf_to_fd(&x.index, fd);
	ok = store_carry(s, &carrier, e);
	export_rules(&x);
	ok = ok && export_annotations(&x, e);
	if (!close_file(&x, fd, &x.index, "index.jsonl.part", ok ? e : &(struct err){ 0 }))
		ok = false;
	ok = ok && rename_index(&x, e);
	buf_release(&x.index);
	printf("%llu profiles exported, %llu sums, %llu rules, %llu annotations\n",
	       (unsigned long long)x.nprofiles, (unsigned long long)x.nsums,
	       (unsigned long long)x.nrules, (unsigned long long)x.nannotations);
	return ok && (!x.ndamaged ||
		      err_set(e, ERR_FORMAT, "%llu profiles or sums are damaged and left out",
			      (unsigned long long)x.ndamaged));
}
