#include "store/db.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"

enum {
	APPLICATION = 0x6b696c6e, /* "kiln" */
	FORMAT = 5,		  /* of the schema; a change that old programs cannot read adds 1 */
	CACHE_KB = 4096,
};

static const char *const texts[DB_NSTATEMENTS] = {
#define SQL(name, text) [SQL_##name] = text,
#include "store/sql.def"
#undef SQL
};

/* Rows of blobs: series << 32 | number within the series. So what belongs together lies together,
 * in the order in which it came, and the tables that are searched stay small. */
static const char schema[] =
	"CREATE TABLE services(id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);"
	"CREATE TABLE series(id INTEGER PRIMARY KEY, service INTEGER NOT NULL, type BLOB NOT NULL,"
	" labels BLOB NOT NULL, until INTEGER NOT NULL);" /* tiers have been made up to there */
	"CREATE TABLE books(id INTEGER PRIMARY KEY, service INTEGER NOT NULL,"
	" created INTEGER NOT NULL);"
	/* row: book << 32 | number of the chunk */
	"CREATE TABLE chunks(row INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	/* book 0: what is no profile */
	"CREATE TABLE profiles(series INTEGER NOT NULL, time INTEGER NOT NULL, row INTEGER NOT "
	"NULL,"
	" id BLOB NOT NULL, book INTEGER NOT NULL, head INTEGER NOT NULL,"
	" nsamples INTEGER NOT NULL, bytes INTEGER NOT NULL, totals BLOB NOT NULL,"
	" duration INTEGER NOT NULL, process INTEGER NOT NULL," /* see delta.h */
	" PRIMARY KEY(series, time, row)) WITHOUT ROWID;"
	"CREATE UNIQUE INDEX profiles_by_id ON profiles(id);"
	"CREATE TABLE blobs(row INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	/* see tiers.h; time: where the window begins */
	"CREATE TABLE tiers(series INTEGER NOT NULL, tier INTEGER NOT NULL, time INTEGER NOT NULL,"
	" book INTEGER NOT NULL, head INTEGER NOT NULL, row INTEGER NOT NULL,"
	" kind INTEGER NOT NULL, nprofiles INTEGER NOT NULL, first INTEGER NOT NULL,"
	" last INTEGER NOT NULL, duration INTEGER NOT NULL, totals BLOB NOT NULL,"
	" PRIMARY KEY(series, tier, time, book, head)) WITHOUT ROWID;"
	"CREATE INDEX tiers_by_book ON tiers(book);"
	"CREATE TABLE tier_blobs(row INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	/* times whose windows are to be made again */
	"CREATE TABLE late(series INTEGER NOT NULL, time INTEGER NOT NULL,"
	" PRIMARY KEY(series, time)) WITHOUT ROWID;";

/* From each format to the next. */
enum { SCHEMA_FORMAT = 2 };
static const char *const steps[FORMAT] = {
	/* of which process a profile is */
	[1] = "ALTER TABLE profiles ADD COLUMN process INTEGER NOT NULL DEFAULT 0;",
	/* ages for services and patterns of their names, in nanoseconds; below 0: as for all */
	[2] = "CREATE TABLE rules(service BLOB NOT NULL PRIMARY KEY, raw INTEGER NOT NULL,"
	      " minute INTEGER NOT NULL, hour INTEGER NOT NULL, day INTEGER NOT NULL)"
	      " WITHOUT ROWID;",
	/* see kept.h; who does not know of them would leave what is not right any more. ends: the
	 * last time that belongs to it; first: number of the first function */
	[3] = "CREATE TABLE kept(row INTEGER PRIMARY KEY, ends INTEGER NOT NULL,"
	      " data BLOB NOT NULL);"
	      "CREATE TABLE kept_functions(first INTEGER PRIMARY KEY, data BLOB NOT NULL);",
	/* see annotations.c; an id is never another's again */
	[4] = "CREATE TABLE annotations(id INTEGER PRIMARY KEY AUTOINCREMENT,"
	      " time INTEGER NOT NULL, ends INTEGER NOT NULL, service BLOB NOT NULL,"
	      " text BLOB NOT NULL, tags BLOB NOT NULL, who BLOB NOT NULL);"
	      "CREATE INDEX annotations_by_time ON annotations(time);",
};

bool db_fail(struct db *db, struct err *e)
{
	int code = sqlite3_extended_errcode(db->sqlite);
	const char *hint = "";

	if ((code & 0xff) == SQLITE_CORRUPT)
		hint = "; `kiln store check` tells what is damaged";
	else if ((code & 0xff) == SQLITE_NOTADB)
		hint = "; its beginning is damaged, or it is no store: take a copy, or another "
		       "folder";
	else if ((code & 0xff) == SQLITE_FULL)
		hint = "; free some space, or keep less";
	return err_set(e, ERR_IO, "%s: %s (SQLite %d)%s", db->path, sqlite3_errmsg(db->sqlite),
		       code, hint);
}

bool db_is_full(struct db *db)
{
	return (sqlite3_errcode(db->sqlite) & 0xff) == SQLITE_FULL;
}

static bool run_text(struct db *db, const char *text, struct err *e)
{
	return sqlite3_exec(db->sqlite, text, NULL, NULL, NULL) == SQLITE_OK || db_fail(db, e);
}

static bool read_number(struct db *db, const char *text, int64_t *number, struct err *e)
{
	sqlite3_stmt *statement;
	bool ok;

	if (sqlite3_prepare_v2(db->sqlite, text, -1, &statement, NULL) != SQLITE_OK)
		return db_fail(db, e);
	ok = sqlite3_step(statement) == SQLITE_ROW || db_fail(db, e);
	if (ok)
		*number = db_int(statement, 0);
	sqlite3_finalize(statement);
	return ok;
}

/* From a format, 0 for an empty file, to ours. All of it is done or nothing. */
static bool make_schema(struct db *db, int64_t format, struct err *e)
{
	char text[100];
	bool ok = run_text(db, "BEGIN IMMEDIATE", e) && (format || run_text(db, schema, e));

	if (!format)
		format = SCHEMA_FORMAT;
	for (; ok && format < FORMAT; format++)
		ok = run_text(db, steps[format], e);
	snprintf(text, sizeof(text), "PRAGMA application_id=%d; PRAGMA user_version=%d;",
		 APPLICATION, FORMAT);
	return ok && run_text(db, text, e) && run_text(db, "COMMIT", e);
}

/* Is it a file of ours that we understand? An empty one becomes it. */
static bool check_format(struct db *db, struct err *e)
{
	int64_t application, format, nobjects;

	if (!read_number(db, "PRAGMA application_id", &application, e) ||
	    !read_number(db, "PRAGMA user_version", &format, e) ||
	    !read_number(db, "SELECT count(*) FROM sqlite_schema", &nobjects, e))
		return false;
	if (!application && !format && !nobjects)
		return make_schema(db, 0, e);
	if (application != APPLICATION)
		return err_set(e, ERR_FORMAT, "%s: is a database of another program", db->path);
	if (format > FORMAT || format < 1)
		return err_set(e, ERR_FORMAT,
			       "%s: is of a newer kiln: it has format %lld, and this one knows "
			       "formats up to %d; use the kiln that made it, or another folder",
			       db->path, (long long)format, FORMAT);
	return format == FORMAT || make_schema(db, format, e);
}

static int on_commit(void *ctx, sqlite3 *sqlite, const char *name, int wal_pages)
{
	struct db *db = ctx;

	(void)sqlite, (void)name;
	db->wal_pages = wal_pages;
	return SQLITE_OK;
}

static bool set_up(struct db *db, bool is_writer, struct err *e)
{
	char text[200];

	sqlite3_extended_result_codes(db->sqlite, 1);
	sqlite3_busy_timeout(db->sqlite, DB_BUSY_MS);
	snprintf(text, sizeof(text), "PRAGMA cache_size=-%d;", CACHE_KB);
	if (!run_text(db, text, e))
		return false;
	if (!is_writer)
		return true;
	/* For a new file. */
	snprintf(text, sizeof(text), "PRAGMA page_size=%d; PRAGMA auto_vacuum=INCREMENTAL;",
		 DB_PAGE_BYTES);
	if (!run_text(db, text, e))
		return false;
	if (!run_text(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;", e) ||
	    !check_format(db, e))
		return false;
	sqlite3_wal_hook(db->sqlite, on_commit, db);
	return true;
}

struct db *db_open(const char *path, bool is_writer, const char *vfs, struct err *e)
{
	struct db *db = xcalloc(1, sizeof(*db));
	int flags = SQLITE_OPEN_NOMUTEX |
		    (is_writer ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);

	db->path = path;
	if (sqlite3_open_v2(path, &db->sqlite, flags, vfs) == SQLITE_OK ? set_up(db, is_writer, e)
									: db_fail(db, e))
		return db;
	db_close(db);
	return NULL;
}

void db_close(struct db *db)
{
	if (!db)
		return;
	for (size_t i = 0; i < DB_NSTATEMENTS; i++)
		sqlite3_finalize(db->statements[i]);
	sqlite3_close(db->sqlite);
	free(db);
}

static int bind_one(sqlite3_stmt *statement, int at, const struct db_value *v)
{
	if (!v->is_blob)
		return sqlite3_bind_int64(statement, at, v->number);
	/* A NULL pointer would be bound as NULL. */
	return sqlite3_bind_blob64(statement, at, v->blob.n ? v->blob.p : "", v->blob.n,
				   SQLITE_STATIC);
}

sqlite3_stmt *db_bind(struct db *db, enum db_statement which, const struct db_value *values,
		      size_t n, struct err *e)
{
	sqlite3_stmt **statement = &db->statements[which];

	if (!*statement && sqlite3_prepare_v3(db->sqlite, texts[which], -1,
					      SQLITE_PREPARE_PERSISTENT, statement, NULL)) {
		db_fail(db, e);
		return NULL;
	}
	sqlite3_reset(*statement);
	for (size_t i = 0; i < n; i++)
		if (bind_one(*statement, (int)i + 1, &values[i]) != SQLITE_OK) {
			db_fail(db, e);
			return NULL;
		}
	return *statement;
}

enum db_result db_step(struct db *db, sqlite3_stmt *statement, struct err *e)
{
	int code = sqlite3_step(statement);

	if (code == SQLITE_ROW)
		return DB_ROW;
	if (code != SQLITE_DONE)
		db_fail(db, e);
	sqlite3_reset(statement);
	return code == SQLITE_DONE ? DB_DONE : DB_FAILED;
}

bool db_run(struct db *db, enum db_statement which, const struct db_value *values, size_t n,
	    struct err *e)
{
	sqlite3_stmt *statement = db_bind(db, which, values, n, e);

	return statement && db_step(db, statement, e) == DB_DONE;
}

bool db_do(struct db *db, enum db_statement which, struct err *e)
{
	return db_run(db, which, NULL, 0, e);
}

bool db_number(struct db *db, enum db_statement which, int64_t *number, struct err *e)
{
	sqlite3_stmt *row = db_bind(db, which, NULL, 0, e);

	if (!row || db_step(db, row, e) != DB_ROW)
		return false;
	*number = db_int(row, 0);
	sqlite3_reset(row);
	return true;
}
