/* store_import.c - files that store_export.c has written, or somebody else, become a store. */
#include "cmd/store_files.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/number.h"
#include "fetch/file.h"

enum { MAX_FILE = 1 << 30 };

struct import {
	struct store *s;
	const char *folder;
	bool is_empty; /* the store, at first */
	uint64_t nprofiles, nsums, nrules, nannotations;
	struct buf window; /* the one before, if it was put: what tells it from others */
};

/* A line of the index, and the file that it names. */
struct entry {
	struct arena a;
	struct strings strings;
	struct json line;
	struct str service, type;
	struct store_label *labels;
	size_t nlabels;
	struct profile profile;
};

/* ---- members of a line */

static bool text_of(const struct json *object, const char *name, struct str *text, struct err *e)
{
	const struct json *member = json_member(object, name);

	if (!member || member->type != JSON_STRING)
		return err_set(e, ERR_FORMAT, "\"%s\" is not there, or is no text", name);
	*text = member->text;
	return true;
}

static bool number_of(const struct json *object, const char *name, int64_t *number, struct err *e)
{
	struct str text;

	if (!text_of(object, name, &text, e))
		return false;
	return number_parse_int(text, 10, number) == NUMBER_OK ||
	       err_set(e, ERR_FORMAT, "\"%s\" is no number in a text", name);
}

static bool flag_of(const struct json *object, const char *name)
{
	const struct json *member = json_member(object, name);

	return member && member->type == JSON_BOOL && member->is_true;
}

static bool labels_of(struct entry *x, struct err *e)
{
	const struct json *list = json_member(&x->line, "labels");

	if (!list || list->type != JSON_ARRAY)
		return err_set(e, ERR_FORMAT, "\"labels\" is not there, or is no list");
	x->nlabels = list->n;
	x->labels = arena_many(&x->a, list->n + 1, struct store_label);
	for (size_t i = 0; i < list->n; i++) {
		const struct json *pair = &list->at[i];

		if (pair->type != JSON_ARRAY || pair->n != 2 || pair->at[0].type != JSON_STRING ||
		    pair->at[1].type != JSON_STRING)
			return err_set(e, ERR_FORMAT, "a label is no pair of texts");
		x->labels[i] = (struct store_label){ pair->at[0].text, pair->at[1].text };
	}
	return true;
}

static bool read_names(struct entry *x, struct err *e)
{
	return text_of(&x->line, "service", &x->service, e) &&
	       text_of(&x->line, "type", &x->type, e) && labels_of(x, e);
}

static bool read_bytes(struct import *m, struct entry *x, struct str file, struct str *bytes,
		       struct err *e)
{
	struct buf path = { 0 };
	bool ok;

	buf_printf(&path, "%s/%.*s%c", m->folder, STR_ARG(file), '\0');
	ok = file_read(&x->a, path.p, MAX_FILE, bytes, e);
	buf_release(&path);
	return ok;
}

static bool read_profile(struct import *m, struct entry *x, struct str file, struct err *e)
{
	struct str bytes;

	return read_bytes(m, x, file, &bytes, e) &&
	       (profile_read(&x->profile, &x->a, &x->strings, bytes, MAX_FILE, e) ||
		err_wrap(e, "%s/%.*s", m->folder, STR_ARG(file)));
}

/* ---- profiles */

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

static bool import_profile(struct import *m, struct entry *x, struct err *e)
{
	struct store_new new = { 0 };
	struct store_meta meta;
	struct store_id id;
	struct str file = { 0 };
	bool is_profile;

	if (!text_of(&x->line, "file", &file, e) || !read_names(x, e) ||
	    !number_of(&x->line, "created_ns", &new.created, e) ||
	    (json_member(&x->line, "process") &&
	     !number_of(&x->line, "process", &new.process, e)) ||
	    !id_of(file, &id, &is_profile, e))
		return false;
	if (!m->is_empty && has_profile(m->s, &id))
		return true;
	if (is_profile ? !read_profile(m, x, file, e) : !read_bytes(m, x, file, &new.bytes, e))
		return false;
	new.service = x->service;
	new.type = x->type;
	new.labels = x->labels;
	new.nlabels = x->nlabels;
	new.profile = is_profile ? &x->profile : NULL;
	new.id = &id;
	if (!store_put(m->s, &new, &x->a, &meta, e))
		return false;
	m->nprofiles++;
	return true;
}

/* ---- sums */

static bool check_sum_file(struct str file, struct err *e)
{
	bool ok = str_has_prefix(file, STR("sum-")) && str_has_suffix(file, STR(".pb.gz")) &&
		  file.n > strlen("sum-.pb.gz");

	for (size_t i = strlen("sum-"); ok && i < file.n - strlen(".pb.gz"); i++)
		ok = isdigit((unsigned char)file.p[i]);
	return ok || err_set(e, ERR_FORMAT, "\"file\" is not sum-NUMBER.pb.gz");
}

static bool tier_of(struct str name, int *tier, struct err *e)
{
	static const char *const names[] = { "minute", "hour", "day" };

	for (*tier = 1; *tier <= 3; ++*tier)
		if (str_eq(name, str_of(names[*tier - 1])))
			return true;
	return err_set(e, ERR_FORMAT, "\"sum\" is none of minute, hour and day");
}

static bool read_window(struct entry *x, struct store_window *w, struct err *e)
{
	int64_t nprofiles = 0;
	struct str tier = { 0 };
	bool ok = read_names(x, e) && text_of(&x->line, "sum", &tier, e) &&
		  tier_of(tier, &w->tier, e) && number_of(&x->line, "start_ns", &w->start, e) &&
		  number_of(&x->line, "first_ns", &w->first, e) &&
		  number_of(&x->line, "last_ns", &w->last, e) &&
		  number_of(&x->line, "duration_ns", &w->duration, e) &&
		  number_of(&x->line, "until_ns", &w->until, e) &&
		  number_of(&x->line, "profiles", &nprofiles, e);

	if (ok && nprofiles < 0)
		return err_set(e, ERR_FORMAT, "\"profiles\" is below 0");
	w->nprofiles = (uint64_t)nprofiles;
	w->has_deltas = flag_of(&x->line, "differences");
	w->is_thinned = flag_of(&x->line, "thinned");
	w->service = x->service;
	w->type = x->type;
	w->labels = x->labels;
	w->nlabels = x->nlabels;
	return ok;
}

/* Is it another part of the window before? That is the next one then. */
static bool is_more(struct import *m, const struct store_window *w)
{
	struct buf key = { 0 };
	bool is_same;

	buf_printf(&key, "%d %lld %zu:%.*s %zu:%.*s", w->tier, (long long)w->start, w->service.n,
		   STR_ARG(w->service), w->type.n, STR_ARG(w->type));
	for (size_t i = 0; i < w->nlabels; i++)
		buf_printf(&key, " %zu:%.*s %zu:%.*s", w->labels[i].key.n,
			   STR_ARG(w->labels[i].key), w->labels[i].value.n,
			   STR_ARG(w->labels[i].value));
	is_same = str_eq(buf_view(&key), buf_view(&m->window));
	buf_release(&m->window);
	m->window = key;
	return is_same;
}

/* Into a store that has something go only sums whose profiles are no more: of the others it may
 * have more profiles, and makes its own. */
static bool import_window(struct import *m, struct entry *x, struct err *e)
{
	struct store_window w = { .profile = &x->profile };
	struct str file = { 0 };
	bool is_put, is_part;

	if (!text_of(&x->line, "file", &file, e) || !check_sum_file(file, e) ||
	    !read_window(x, &w, e))
		return false;
	if (!m->is_empty && !w.is_thinned)
		return true;
	if (!m->is_empty)
		w.until = 0;
	is_part = is_more(m, &w);
	if (!read_profile(m, x, file, e) || !store_put_window(m->s, &w, is_part, &is_put, e))
		return false;
	if (!is_put)
		m->window.n = 0;
	m->nsums += is_put;
	return true;
}

/* ---- rules */

static bool import_rule(struct import *m, struct entry *x, struct err *e)
{
	struct store_rule rule;

	if (!text_of(&x->line, "rule", &rule.service, e) ||
	    !number_of(&x->line, "raw_ns", &rule.raw_ns, e) ||
	    !number_of(&x->line, "minute_ns", &rule.minute_ns, e) ||
	    !number_of(&x->line, "hour_ns", &rule.hour_ns, e) ||
	    !number_of(&x->line, "day_ns", &rule.day_ns, e) || !store_set_rule(m->s, &rule, e))
		return false;
	m->nrules++;
	return true;
}

/* ---- annotations */

/* It may have been imported before. */
static bool is_said(struct import *m, struct entry *x, const struct store_annotation *new,
		    bool *is_there, struct err *e)
{
	struct store_annotation_query at = { .from = new->time, .to = new->time };
	struct store_annotations found;

	*is_there = false;
	if (!store_annotations(m->s, &at, &x->a, &found, e))
		return false;
	for (size_t i = 0; i < found.n; i++)
		*is_there |= found.at[i].time == new->time &&str_eq(found.at[i].text, new->text) &&
			     str_eq(found.at[i].service, new->service);
	return true;
}

static bool import_annotation(struct import *m, struct entry *x, struct err *e)
{
	struct store_annotation new = { 0 };
	bool is_there;

	if (!text_of(&x->line, "annotation", &new.text, e) ||
	    !number_of(&x->line, "time_ns", &new.time, e) ||
	    !number_of(&x->line, "end_ns", &new.end, e) ||
	    !text_of(&x->line, "service", &new.service, e) ||
	    !text_of(&x->line, "tags", &new.tags, e) || !text_of(&x->line, "who", &new.who, e) ||
	    !is_said(m, x, &new, &is_there, e))
		return false;
	if (is_there)
		return true;
	m->nannotations++;
	return store_annotate(m->s, &new, e);
}

/* ---- all */

static bool import_line(struct import *m, struct str line, struct err *e)
{
	struct entry x = { 0 };
	bool ok;

	strings_init(&x.strings);
	ok = json_parse(&x.a, line, &x.line, e);
	if (ok && json_member(&x.line, "rule"))
		ok = import_rule(m, &x, e);
	else if (ok && json_member(&x.line, "annotation"))
		ok = import_annotation(m, &x, e);
	else if (ok && json_member(&x.line, "sum"))
		ok = import_window(m, &x, e);
	else if (ok)
		ok = import_profile(m, &x, e);
	strings_release(&x.strings);
	arena_release(&x.a);
	return ok;
}

static bool import_lines(struct import *m, const struct store_params *params, FILE *f,
			 const char *path, struct err *e)
{
	uint64_t number = 0, done = 0;
	struct stat st = { 0 };
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	bool ok = true;

	(void)fstat(fileno(f), &st);
	while (ok && (n = getline(&line, &room, f)) >= 0) {
		struct str text = str_trim((struct str){ line, (size_t)n });

		number++;
		done += (uint64_t)n;
		if (params->progress)
			params->progress(params->progress_ctx, done, (uint64_t)st.st_size);
		if (text.n)
			ok = import_line(m, text, e) ||
			     err_wrap(e, "%s:%llu", path, (unsigned long long)number);
	}
	if (ok && ferror(f))
		ok = err_system(e, "read", path);
	free(line);
	return ok;
}

bool store_import(struct store *s, const struct store_params *params, const char *folder,
		  struct err *e)
{
	struct import m = { .s = s, .folder = folder };
	struct store_stats stats;
	struct buf path = { 0 };
	FILE *f;
	bool ok;

	store_stats(s, &stats);
	m.is_empty = !stats.nprofiles;
	buf_printf(&path, "%s/index.jsonl%c", folder, '\0');
	f = fopen(path.p, "re");
	ok = f || err_system(e, "open", path.p);
	ok = ok && import_lines(&m, params, f, path.p, e);
	if (f)
		fclose(f);
	printf("%llu profiles imported, %llu sums, %llu rules, %llu annotations\n",
	       (unsigned long long)m.nprofiles, (unsigned long long)m.nsums,
	       (unsigned long long)m.nrules, (unsigned long long)m.nannotations);
	buf_release(&path);
	buf_release(&m.window);
	return ok;
}
