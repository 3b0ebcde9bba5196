/* annotations.c - what people, or their deployments, say of a time. */
#include "base/utf8.h"
#include "store/inside.h"

enum { MAX_TEXT_BYTES = 500, MAX_TAG_BYTES = 40, MAX_TAGS = 8, MAX_NAME_BYTES = 1024 };

/* ---- what may be said */

/* They go into pages, tables and logs as they are. */
static bool is_clean(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return false;
	return utf8_is_valid(s);
}

static bool check_text(struct str s, const char *name, size_t max_bytes, struct err *e)
{
	if (s.n > max_bytes)
		return err_set(e, ERR_USAGE, "%s: %zu bytes, and %zu are the most", name, s.n,
			       max_bytes);
	return is_clean(s) ||
	       err_set(e, ERR_USAGE, "%s: is no UTF-8, or has control characters", name);
}

static bool check_tags(struct str tags, struct err *e)
{
	size_t n = 0;

	while (tags.n) {
		struct str tag = str_cut(&tags, ',');

		if (!check_text(tag, "tags", MAX_TAG_BYTES, e))
			return false;
		if (!tag.n)
			return err_set(e, ERR_USAGE, "tags: one of them is empty");
		if (++n > MAX_TAGS)
			return err_set(e, ERR_USAGE, "tags: %d are the most", MAX_TAGS);
	}
	return true;
}

static bool check(const struct store_annotation *x, struct err *e)
{
	if (!x->text.n)
		return err_set(e, ERR_USAGE, "text is missing");
	if (x->time <= 0 || x->end < x->time)
		return err_set(e, ERR_USAGE, "end: is before time, or that before 1970");
	return check_text(x->text, "text", MAX_TEXT_BYTES, e) && check_tags(x->tags, e) &&
	       check_text(x->service, "service", MAX_NAME_BYTES, e) &&
	       check_text(x->who, "who", MAX_NAME_BYTES, e);
}

/* ---- changes */

struct change {
	struct store_annotation *added; /* or NULL */
	int64_t id;
	bool is_there; /* after it was added; before it was dropped */
	int64_t now;
};

static bool find(struct db *db, struct change *c, struct err *e)
{
	sqlite3_stmt *row = db_bind(db, SQL_ANNOTATION, DB_VALUES(DB_INT(c->id)), e);
	enum db_result got = row ? db_step(db, row, e) : DB_FAILED;

	c->is_there = got == DB_ROW;
	if (got == DB_ROW)
		sqlite3_reset(row);
	return got != DB_FAILED;
}

static bool add(struct store *s, struct db *db, void *ctx, struct err *e)
{
	struct change *c = ctx;
	const struct store_annotation *x = c->added;

	(void)s;
	if (!db_run(db, SQL_NEW_ANNOTATION,
		    DB_VALUES(DB_INT(x->time), DB_INT(x->end), DB_BLOB(x->service),
			      DB_BLOB(x->text), DB_BLOB(x->tags), DB_BLOB(x->who)),
		    e))
		return false;
	c->id = sqlite3_last_insert_rowid(db->sqlite);
	return db_run(db, SQL_CUT_ANNOTATIONS, DB_VALUES(DB_INT(STORE_MAX_ANNOTATIONS)), e) &&
	       find(db, c, e);
}

bool store_annotate(struct store *s, struct store_annotation *x, struct err *e)
{
	struct change c = { .added = x };
	struct writer_task task = { .work = add, .ctx = &c };

	if (!check(x, e) || !writer_do(s, &task, e))
		return false;
	x->id = c.id;
	return c.is_there ||
	       err_set(e, ERR_USAGE, "time: there are %d later ones, and no more are kept",
		       STORE_MAX_ANNOTATIONS);
}

static bool drop(struct store *s, struct db *db, void *ctx, struct err *e)
{
	struct change *c = ctx;

	(void)s;
	return find(db, c, e) && db_run(db, SQL_DROP_ANNOTATION, DB_VALUES(DB_INT(c->id)), e);
}

bool store_drop_annotation(struct store *s, int64_t id, struct err *e)
{
	struct change c = { .id = id };
	struct writer_task task = { .work = drop, .ctx = &c };

	return writer_do(s, &task, e) &&
	       (c.is_there ||
		err_set(e, ERR_NOTFOUND, "there is no annotation %lld", (long long)id));
}

/* ---- reading */

static bool has_tag(struct str tags, struct str wanted)
{
	while (tags.n)
		if (str_eq(str_cut(&tags, ','), wanted))
			return true;
	return !wanted.n;
}

static struct str copy_blob(struct arena *a, sqlite3_stmt *row, int column)
{
	struct str s = db_blob(row, column);

	return (struct str){ arena_copy(a, s.p, s.n), s.n };
}

static struct store_annotation read_row(struct arena *a, sqlite3_stmt *row)
{
	return (struct store_annotation){ .id = db_int(row, 0),
					  .time = db_int(row, 1),
					  .end = db_int(row, 2),
					  .service = copy_blob(a, row, 3),
					  .text = copy_blob(a, row, 4),
					  .tags = copy_blob(a, row, 5),
					  .who = copy_blob(a, row, 6) };
}

static bool read_all(struct db *db, const struct store_annotation_query *q, struct arena *a,
		     struct store_annotations *found, struct err *e)
{
	sqlite3_stmt *row =
		db_bind(db, SQL_ANNOTATIONS,
			DB_VALUES(DB_INT(q->from), DB_INT(q->to), DB_BLOB(q->service)), e);
	vec(struct store_annotation) list = { 0 };
	enum db_result got = row ? DB_ROW : DB_FAILED;

	while (got == DB_ROW && (got = db_step(db, row, e)) == DB_ROW) {
		if (!has_tag(db_blob(row, 5), q->tag))
			continue;
		if (q->limit && list.n == q->limit) {
			found->has_more = true;
			sqlite3_reset(row);
			got = DB_DONE;
			break;
		}
		vec_push(&list, read_row(a, row));
	}
	found->n = list.n;
	found->at = vec_adopt(a, &list);
	return got == DB_DONE;
}

bool store_annotations(struct store *s, const struct store_annotation_query *q, struct arena *a,
		       struct store_annotations *found, struct err *e)
{
	struct db *db = store_reader(s, e);
	bool ok;

	*found = (struct store_annotations){ 0 };
	if (!db)
		return false;
	ok = read_all(db, q, a, found, e);
	store_reader_back(s, db);
	return ok;
}

/* ---- age */

static bool drop_old(struct store *s, struct db *db, void *ctx, struct err *e)
{
	const struct change *c = ctx;
	struct arena a = { 0 };
	struct store_annotation_query all = { .from = INT64_MIN, .to = INT64_MAX };
	struct store_annotations found = { 0 };
	bool ok = read_all(db, &all, &a, &found, e);

	for (size_t i = 0; ok && i < found.n; i++)
		if (found.at[i].end < keep_cut(s, found.at[i].service, c->now))
			ok = db_run(db, SQL_DROP_ANNOTATION, DB_VALUES(DB_INT(found.at[i].id)), e);
	arena_release(&a);
	return ok;
}

bool annotations_age(struct store *s, int64_t now, struct err *e)
{
	struct change c = { .now = now };
	struct writer_task task = { .work = drop_old, .ctx = &c };

	return writer_do(s, &task, e);
}
