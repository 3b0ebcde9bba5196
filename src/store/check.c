/* check.c - reads everything back, and says what is wrong where. */
#include <stdio.h>
#include <stdlib.h>

#include "base/int.h"
#include "base/stop.h"
#include "store/delete.h"
#include "store/inside.h"
#include "store/rewrite.h"

#define COMPACT_SHARE 0.75 /* of a book that is in use: then it is not worth it to rewrite it */

struct checking {
	struct store *s;
	struct db *db;
	void (*say)(void *ctx, const char *line);
	void *ctx;
	struct store_checked *out;
	const char *what; /* "profile", "sum" */
	int64_t done, all;
};

static void complain(struct checking *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void complain(struct checking *c, const char *fmt, ...)
{
	char line[1500];
	va_list args;

	c->out->nproblems++;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	c->say(c->ctx, line);
}

static bool check_file(struct checking *c, struct err *e)
{
	sqlite3_stmt *rows = db_bind(c->db, SQL_CHECK_FILE, NULL, 0, e);
	enum db_result r = rows ? DB_ROW : DB_FAILED;

	while (r == DB_ROW && (r = db_step(c->db, rows, e)) == DB_ROW)
		if (!str_eq(db_blob(rows, 0), STR("ok")))
			complain(c, "%s: %.*s", c->s->path, STR_ARG(db_blob(rows, 0)));
	return r == DB_DONE;
}

static bool same_totals(const struct profile *p, struct str totals)
{
	if (totals.n != p->ntypes * sizeof(int64_t))
		return false;
	for (uint32_t t = 0; t < p->ntypes; t++) {
		int64_t total = 0, noted;

		for (uint32_t i = 0; i < p->nsamples; i++)
			total = int_add(total, sample_values(p, &p->samples[i])[t]);
		memcpy(&noted, totals.p + t * sizeof(noted), sizeof(noted));
		if (total != noted)
			return false;
	}
	return true;
}

/* What is wrong with a row; false: nothing. */
static bool find_fault(struct checking *c, sqlite3_stmt *row, struct err *e)
{
	struct shelf_book *b = shelf_take(c->s, db_int(row, 3), e);
	struct arena a = { 0 };
	struct strings strings;
	struct profile p;
	struct book_head head;
	bool ok;

	if (!b)
		return true;
	strings_init(&strings);
	pthread_rwlock_rdlock(&b->lock);
	ok = book_read_head(b->book, db_blob(row, 7), &head, e) &&
	     book_unpack(b->book, db_blob(row, 7), &a, &strings, &p, e);
	pthread_rwlock_unlock(&b->lock);
	shelf_put_back(c->s, b);
	if (ok && head.head != (uint32_t)db_int(row, 4))
		ok = err_set(e, ERR_FORMAT, "its sample types are not those that are noted");
	if (ok && !same_totals(&p, db_blob(row, 6)))
		ok = err_set(e, ERR_FORMAT, "its totals are not those that are noted");
	strings_release(&strings);
	arena_release(&a);
	return !ok;
}

static void check_row(struct checking *c, sqlite3_stmt *row)
{
	struct err e = { .kind = ERR_NONE };
	bool is_bad;

	if (sqlite3_column_type(row, 7) == SQLITE_NULL)
		is_bad = !err_set(&e, ERR_FORMAT, "its samples are not there");
	else
		is_bad = db_int(row, 3) && find_fault(c, row, &e);
	if (is_bad)
		complain(c, "%s: %s %lld of series %lld, of time %lld: %s", c->s->path, c->what,
			 (long long)(db_int(row, 2) & 0xffffffff), (long long)db_int(row, 0),
			 (long long)db_int(row, 1), e.text);
}

static bool check_rows(struct checking *c, enum db_statement which, const char *what, uint64_t *n,
		       struct err *e)
{
	sqlite3_stmt *rows = db_bind(c->db, which, NULL, 0, e);
	enum db_result r = rows ? DB_ROW : DB_FAILED;

	c->what = what;
	while (r == DB_ROW && (r = db_step(c->db, rows, e)) == DB_ROW) {
		check_row(c, rows);
		++*n;
		store_progress(c->s, (uint64_t)++c->done, (uint64_t)c->all);
	}
	return r == DB_DONE;
}

static bool check_count(struct checking *c, enum db_statement which, const char *what,
			struct err *e)
{
	sqlite3_stmt *row = db_bind(c->db, which, NULL, 0, e);

	if (!row || db_step(c->db, row, e) != DB_ROW)
		return false;
	if (db_int(row, 0))
		complain(c, "%s: %lld %s", c->s->path, (long long)db_int(row, 0), what);
	sqlite3_reset(row);
	return true;
}

/* Sums by function, and what those are. */
static bool check_kept(struct checking *c, struct err *e)
{
	sqlite3_stmt *rows = db_bind(c->db, SQL_KEPT_FUNCTIONS, NULL, 0, e);
	enum db_result r = rows ? DB_ROW : DB_FAILED;
	uint32_t nfunctions = 0;
	struct err why;

	while (r == DB_ROW && (r = db_step(c->db, rows, e)) == DB_ROW)
		if (!kept_check_functions(db_blob(rows, 0), &nfunctions, &why))
			complain(c, "%s: functions that sums are of: %s", c->s->path, why.text);
	rows = r == DB_DONE ? db_bind(c->db, SQL_CHECK_KEPT, NULL, 0, e) : NULL;
	r = rows ? DB_ROW : DB_FAILED;
	while (r == DB_ROW && (r = db_step(c->db, rows, e)) == DB_ROW) {
		int64_t series = db_int(rows, 0) >> 32;

		if (!catalog_series(&c->s->catalog, series))
			complain(c, "%s: a sum by function belongs to no series", c->s->path);
		if (!kept_check_sum(db_blob(rows, 1), nfunctions, &why))
			complain(c, "%s: a sum by function of series %lld: %s", c->s->path,
				 (long long)series, why.text);
	}
	return r == DB_DONE;
}

bool store_check_file(const char *dir, void (*say)(void *ctx, const char *line), void *ctx,
		      struct store_checked *out, struct err *e)
{
	struct store s = { 0 };
	struct checking c = { .s = &s, .say = say, .ctx = ctx, .out = out };
	struct buf path = { 0 };
	bool ok;

	*out = (struct store_checked){ 0 };
	buf_printf(&path, "%s/profiles.db%c", dir, '\0');
	s.path = path.p;
	c.db = db_open(s.path, false, NULL, e);
	ok = c.db && check_file(&c, e);
	db_close(c.db);
	buf_release(&path);
	return ok;
}

bool store_check(struct store *s, void (*say)(void *ctx, const char *line), void *ctx,
		 struct store_checked *out, struct err *e)
{
	struct checking c = { .s = s, .say = say, .ctx = ctx, .out = out };
	bool ok;

	*out = (struct store_checked){ 0 };
	c.db = store_reader(s, e);
	ok = c.db && db_number(c.db, SQL_COUNT_ALL, &c.all, e) && check_file(&c, e) &&
	     check_rows(&c, SQL_CHECK_PROFILES, "profile", &out->nprofiles, e) &&
	     check_rows(&c, SQL_CHECK_TIERS, "sum", &out->nsums, e) && check_kept(&c, e) &&
	     check_count(&c, SQL_CHECK_BLOBS, "samples belong to no profile", e) &&
	     check_count(&c, SQL_CHECK_NAMES, "profiles belong to no series", e);
	store_reader_back(s, c.db);
	return ok;
}

/* ---- compact */

struct compaction {
	bool is_ok;
	struct err *e;
};

static bool do_nothing(struct store *s, struct db *db, void *ctx, struct err *e)
{
	(void)s, (void)db, (void)ctx, (void)e;
	return true;
}

/* VACUUM is a commit of its own; and the writer's thread has the connection. */
static void vacuum_all(struct store *s, void *ctx, bool is_ok)
{
	struct compaction *c = ctx;

	c->is_ok = is_ok &&
		   (sqlite3_exec(s->writer.db->sqlite, "VACUUM", NULL, NULL, NULL) == SQLITE_OK ||
		    db_fail(s->writer.db, c->e));
	if (c->is_ok)
		sqlite3_wal_checkpoint_v2(s->writer.db->sqlite, NULL, SQLITE_CHECKPOINT_TRUNCATE,
					  NULL, NULL);
}

bool store_compact(struct store *s, struct err *e)
{
	struct compaction c = { .e = e };
	struct writer_task task = { .work = do_nothing, .after = vacuum_all, .ctx = &c };

	uint64_t nbooks;

	return delete_empty(s, e) && rewrite_books(s, COMPACT_SHARE, false, &nbooks, e) &&
	       delete_empty(s, e) && writer_do(s, &task, e) && c.is_ok;
}
