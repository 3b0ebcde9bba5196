#include "server/findings.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/escape.h"
#include "base/map.h"
#include "base/number.h"
#include "base/path.h"
#include "base/small_file.h"
#include "base/vec.h"
#include "base/when.h"
#include "server/api1.h"

#define FILE_NAME "regressions.json"
enum { MAX_FILE_BYTES = 64 << 20, MAX_ASIDE = 100 };

struct entry {
	struct finding at;
	char *text;   /* that its strings lie in */
	size_t bytes; /* in the file */
};

struct findings {
	pthread_mutex_t lock;
	char *path;
	vec(struct entry *) entries; /* in the order in which they were found */
	uint64_t bytes;		     /* of all of them, in the file */
	uint64_t nchanges, nsaved;
	pthread_mutex_t saving;
	char *unreadable; /* why the file could not be read: then it is left as it is */
};

/* ---- fields */

enum field_kind { IS_TEXT, IS_TIME, IS_NUMBER, IS_FLAG };
#define KIND_TEXT IS_TEXT
#define KIND_TIME IS_TIME
#define KIND_NUMBER IS_NUMBER
#define KIND_FLAG IS_FLAG

static const struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
} fields[] = {
#define FIELD(kind, name) { #name, KIND_##kind, offsetof(struct finding, name) },
#include "server/finding.def"
#undef FIELD
};
enum { NFIELDS = sizeof(fields) / sizeof(*fields) };

static void *at(struct finding *x, const struct field *f)
{
	return (char *)x + f->offset;
}

static struct str *text_at(struct finding *x, const struct field *f)
{
	return at(x, f);
}

void finding_json(struct buf *out, const struct finding *x)
{
	struct finding copy = *x;

	for (size_t i = 0; i < NFIELDS; i++) {
		const struct field *f = &fields[i];

		if (f->kind == IS_TIME) {
			if (!i)
				buf_char(out, '{');
			json_time(out, f->name, *(int64_t *)at(&copy, f));
			continue;
		}
		buf_printf(out, "%s\"%s\":", i ? "," : "{", f->name);
		if (f->kind == IS_TEXT)
			json_put(out, *text_at(&copy, f));
		else if (f->kind == IS_NUMBER)
			json_number(out, *(double *)at(&copy, f));
		else
			buf_puts(out, *(bool *)at(&copy, f) ? "true" : "false");
	}
	buf_char(out, '}');
}

static bool read_field(const struct field *f, const struct json *v, struct finding *x,
		       struct err *e)
{
	bool ok = true;

	switch (f->kind) {
	case IS_TEXT:
		ok = v->type == JSON_STRING;
		*text_at(x, f) = v->text;
		break;
	case IS_TIME:
		ok = v->type == JSON_NULL ||
		     (v->type == JSON_STRING && time_parse(v->text, 0, at(x, f), e));
		break;
	case IS_NUMBER:
		ok = v->type == JSON_NULL ||
		     (v->type == JSON_NUMBER && number_parse_float(v->text, at(x, f)) == NUMBER_OK);
		break;
	case IS_FLAG:
		ok = v->type == JSON_BOOL;
		*(bool *)at(x, f) = v->is_true;
		break;
	}
	return ok || err_set(e, ERR_FORMAT, "%s is none", f->name);
}

static bool is_id(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!isxdigit((unsigned char)s.p[i]))
			return false;
	return s.n == 16;
}

bool finding_read(const struct json *object, struct finding *x, struct err *e)
{
	*x = (struct finding){ 0 };
	for (size_t i = 0; i < NFIELDS; i++) {
		const struct json *v = json_member(object, fields[i].name);

		if (v && !read_field(&fields[i], v, x, e))
			return false;
	}
	return (is_id(x->id) && x->service.n && x->function.n) ||
	       err_set(e, ERR_FORMAT, "id, service or function is missing");
}

/* ---- entries */

static size_t text_bytes(struct finding *x)
{
	size_t n = 1;

	for (size_t i = 0; i < NFIELDS; i++)
		if (fields[i].kind == IS_TEXT)
			n += text_at(x, &fields[i])->n;
	return n;
}

/* Its strings, one after the other. */
static void copy_texts(struct finding *x, char *to)
{
	for (size_t i = 0; i < NFIELDS; i++) {
		struct str *s = text_at(x, &fields[i]);

		if (fields[i].kind != IS_TEXT)
			continue;
		if (s->n)
			memcpy(to, s->p, s->n);
		s->p = to;
		to += s->n;
	}
}

static void entry_set(struct findings *f, struct entry *entry, struct finding x)
{
	char *text = xmalloc(text_bytes(&x));
	struct buf json = { 0 };

	copy_texts(&x, text);
	finding_json(&json, &x);
	free(entry->text);
	f->bytes = f->bytes - entry->bytes + json.n + 2;
	*entry = (struct entry){ x, text, json.n + 2 };
	buf_release(&json);
}

static void entry_free(struct entry *entry)
{
	free(entry->text);
	free(entry);
}

static struct entry *find(struct findings *f, struct str id)
{
	for (size_t i = 0; i < f->entries.n; i++)
		if (str_eq(f->entries.at[i]->at.id, id))
			return f->entries.at[i];
	return NULL;
}

static int seen_first(const void *a, const void *b)
{
	const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;

	return (x->at.seen > y->at.seen) - (x->at.seen < y->at.seen);
}

static int found_first(const void *a, const void *b)
{
	const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;

	if (x->at.found != y->at.found)
		return x->at.found < y->at.found ? -1 : 1;
	return str_cmp(x->at.id, y->at.id);
}

static bool has_room(const struct findings *f)
{
	return f->entries.n < FINDINGS_MAX && f->bytes < FINDINGS_MAX_BYTES;
}

/* Room for one more: a tenth goes, or it would be one after the other. */
static void make_room(struct findings *f)
{
	size_t ngone = 0, left;

	if (has_room(f))
		return;
	qsort(f->entries.at, f->entries.n, sizeof(*f->entries.at), seen_first);
	while (ngone < f->entries.n &&
	       (ngone <= f->entries.n / 10 || f->bytes >= FINDINGS_MAX_BYTES)) {
		f->bytes -= f->entries.at[ngone]->bytes;
		entry_free(f->entries.at[ngone++]);
	}
	left = f->entries.n - ngone;
	memmove(f->entries.at, f->entries.at + ngone, left * sizeof(*f->entries.at));
	f->entries.n = left;
	if (left)
		qsort(f->entries.at, left, sizeof(*f->entries.at), found_first);
}

static void add(struct findings *f, const struct finding *x)
{
	struct entry *entry = xcalloc(1, sizeof(*entry));

	make_room(f);
	entry_set(f, entry, *x);
	vec_push(&f->entries, entry);
}

/* ---- the file */

static bool read_file(struct findings *f, struct str text, struct err *e)
{
	struct arena a = { 0 };
	struct json doc;
	const struct json *list;
	bool ok = json_parse(&a, text, &doc, e);

	list = ok ? json_member(&doc, "regressions") : NULL;
	if (ok && (!list || list->type != JSON_ARRAY))
		ok = err_set(e, ERR_FORMAT, "it has no list of regressions");
	for (size_t i = 0; ok && i < list->n; i++) {
		struct finding x;

		ok = finding_read(&list->at[i], &x, e) || err_wrap(e, "entry %zu", i);
		if (ok)
			add(f, &x);
	}
	arena_release(&a);
	return ok;
}

/* A name that nothing has yet. */
static void put_free_name(struct buf *name, const char *path)
{
	for (int i = 0; i < MAX_ASIDE; i++) {
		name->n = 0;
		buf_printf(name, i ? "%s.damaged.%d" : "%s.damaged", path, i);
		buf_char(name, '\0');
		if (!file_version(name->p).inode)
			return;
	}
}

static void put_aside(struct findings *f, const struct err *e, struct buf *why)
{
	struct buf name = { 0 };

	put_free_name(&name, f->path);
	rename(f->path, name.p);
	buf_printf(why, "%s cannot be read: %s; it is %s now, and the list begins anew", f->path,
		   e->text, name.p);
	buf_release(&name);
}

/* One that is damaged is put aside. Of one that is only out of reach nothing is known: it stays. */
static void cannot_read(struct findings *f, const struct err *e, struct buf *why)
{
	for (size_t i = 0; i < f->entries.n; i++)
		entry_free(f->entries.at[i]);
	f->entries.n = f->bytes = 0;
	if (e->kind != ERR_IO) {
		put_aside(f, e, why);
		return;
	}
	f->unreadable = strdup(e->text);
	buf_printf(why, "%s; nothing is saved there until the next start", e->text);
}

struct findings *findings_open(const char *dir, struct buf *why)
{
	struct findings *f = xcalloc(1, sizeof(*f));
	struct buf path = { 0 }, text = { 0 };
	struct err e;

	pthread_mutex_init(&f->lock, NULL);
	pthread_mutex_init(&f->saving, NULL);
	path_join(&path, str_of(dir), STR(FILE_NAME));
	buf_char(&path, '\0');
	f->path = path.p;
	if (small_file_read(&text, f->path, MAX_FILE_BYTES, &e) ? !read_file(f, buf_view(&text), &e)
								: e.kind != ERR_NOTFOUND)
		cannot_read(f, &e, why);
	buf_release(&text);
	return f;
}

void findings_free(struct findings *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->entries.n; i++)
		entry_free(f->entries.at[i]);
	vec_release(&f->entries);
	pthread_mutex_destroy(&f->lock);
	pthread_mutex_destroy(&f->saving);
	free(f->path);
	free(f->unreadable);
	free(f);
}

bool findings_save(struct findings *f, struct err *e)
{
	struct buf text = { 0 };
	uint64_t nchanges;
	bool ok = true;

	if (f->unreadable)
		return err_set(e, ERR_IO, "it could not be read: %s", f->unreadable);
	pthread_mutex_lock(&f->saving);
	pthread_mutex_lock(&f->lock);
	if (f->bytes >= FINDINGS_MAX_BYTES) /* by what people said */
		make_room(f);
	nchanges = f->nchanges;
	buf_puts(&text, "{\"regressions\":[");
	for (size_t i = 0; i < f->entries.n && nchanges != f->nsaved; i++) {
		buf_puts(&text, i ? ",\n" : "\n");
		finding_json(&text, &f->entries.at[i]->at);
	}
	buf_puts(&text, "\n]}\n");
	pthread_mutex_unlock(&f->lock);
	if (nchanges != f->nsaved)
		ok = small_file_write(f->path, buf_view(&text), e);
	if (ok)
		f->nsaved = nchanges;
	pthread_mutex_unlock(&f->saving);
	buf_release(&text);
	return ok;
}

/* ---- what is found */

static bool is_same(const struct finding *x, const struct finding *y)
{
	return str_eq(x->function, y->function) && str_eq(x->service, y->service) &&
	       str_eq(x->type, y->type) && str_eq(x->kind, y->kind) &&
	       str_eq(x->old_version, y->old_version) && str_eq(x->new_version, y->new_version);
}

/* The same whenever it is found, so that nothing but its content tells two apart. */
static void make_id(const struct finding *x, int64_t now, char id[17])
{
	const struct str parts[] = { x->service,  x->type,	  x->kind,
				     x->function, x->old_version, x->new_version };
	uint64_t hash = hash_mix(1, (uint64_t)now);

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		hash = hash_bytes(hash, parts[i].p, parts[i].n);
	snprintf(id, 17, "%016llx", (unsigned long long)hash);
}

bool findings_note(struct findings *f, const struct finding *x, int64_t now, int64_t stale,
		   char id[17])
{
	struct finding new = *x;
	struct entry *known = NULL;

	pthread_mutex_lock(&f->lock);
	for (size_t i = f->entries.n; i > 0 && !known; i--) {
		const struct finding *y = &f->entries.at[i - 1]->at;

		if (is_same(x, y) && (x->new_version.n || y->seen >= stale))
			known = f->entries.at[i - 1];
	}
	new.seen = now;
	new.current = true;
	if (known) {
		const struct finding *old = &known->at;

		new.id = old->id;
		new.found = old->found;
		new.changed = old->changed; /* it does not move as the window does */
		new.status = old->status;
		new.status_by = old->status_by;
		new.status_at = old->status_at;
		new.note = old->note;
		new.webhook = old->webhook;
		memcpy(id, old->id.p, 16);
		id[16] = '\0';
		entry_set(f, known, new);
	} else {
		make_id(x, now, id);
		new.id = str_of(id);
		new.found = now;
		new.status = STR("new");
		add(f, &new);
	}
	f->nchanges++;
	pthread_mutex_unlock(&f->lock);
	return !known;
}

static bool is_among(struct str id, char (*ids)[17], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(id, str_of(ids[i])))
			return true;
	return false;
}

void findings_settle(struct findings *f, struct str service, struct str type, struct str kind,
		     char (*found)[17], size_t n)
{
	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->entries.n; i++) {
		struct finding *x = &f->entries.at[i]->at;

		if (x->current && str_eq(x->service, service) && str_eq(x->type, type) &&
		    str_eq(x->kind, kind) && !is_among(x->id, found, n)) {
			x->current = false;
			f->nchanges++;
		}
	}
	pthread_mutex_unlock(&f->lock);
}

bool findings_has_version(struct findings *f, struct str service, struct str type,
			  struct str function, int64_t since)
{
	bool found = false;

	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->entries.n && !found; i++) {
		const struct finding *x = &f->entries.at[i]->at;

		found = x->new_version.n && x->changed >= since && str_eq(x->function, function) &&
			str_eq(x->service, service) && str_eq(x->type, type);
	}
	pthread_mutex_unlock(&f->lock);
	return found;
}

bool findings_say(struct findings *f, struct str id, struct str status, struct str who,
		  const struct str *note, int64_t now, struct err *e)
{
	struct entry *entry;

	pthread_mutex_lock(&f->lock);
	entry = find(f, id);
	if (entry) {
		struct finding x = entry->at;

		x.status = status;
		x.status_by = who;
		x.status_at = now;
		if (note)
			x.note = *note;
		entry_set(f, entry, x);
		f->nchanges++;
	}
	pthread_mutex_unlock(&f->lock);
	return entry || err_set(e, ERR_NOTFOUND, "there is no regression \"%.*s\"", STR_ARG(id));
}

void findings_set_webhook(struct findings *f, struct str id, struct str state)
{
	struct entry *entry;

	pthread_mutex_lock(&f->lock);
	entry = find(f, id);
	if (entry) {
		struct finding x = entry->at;

		x.webhook = state;
		entry_set(f, entry, x);
		f->nchanges++;
	}
	pthread_mutex_unlock(&f->lock);
}

/* ---- what there is */

static struct finding copied(struct arena *a, struct finding x)
{
	copy_texts(&x, arena_raw(a, text_bytes(&x)));
	return x;
}

void findings_list(struct findings *f, struct arena *a, struct finding **list, size_t *n)
{
	pthread_mutex_lock(&f->lock);
	*n = f->entries.n;
	*list = arena_many(a, *n + 1, struct finding);
	for (size_t i = 0; i < *n; i++)
		(*list)[i] = copied(a, f->entries.at[*n - 1 - i]->at);
	pthread_mutex_unlock(&f->lock);
}

bool findings_get(struct findings *f, struct str id, struct arena *a, struct finding *out)
{
	const struct entry *entry;

	pthread_mutex_lock(&f->lock);
	entry = find(f, id);
	if (entry)
		*out = copied(a, entry->at);
	pthread_mutex_unlock(&f->lock);
	return entry;
}
