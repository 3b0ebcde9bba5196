/* db.h - SQLite: a connection and its statements.
 *
 * The file is in WAL mode: one connection writes, any number read what was committed when they
 * began. A connection is for one thread at a time.
 */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <sqlite3.h>

#include "base/err.h"
#include "base/str.h"

enum db_statement {
#define SQL(name, text) SQL_##name,
#include "store/sql.def"
#undef SQL
	DB_NSTATEMENTS
};

enum {
	DB_PAGE_BYTES = 8192,
	DB_BUSY_MS = 10000, /* that a connection waits for others */
};

struct db {
	sqlite3 *sqlite;
	const char *path; /* the opener's */
	sqlite3_stmt *statements[DB_NSTATEMENTS];
	struct db *next; /* in a pool */
	int wal_pages;	 /* of a writer: length of the log after the last commit */
};

/* The one that writes makes the file if it is not there, and checks that it is one of ours. `vfs`:
 * by which files are used, or NULL. */
struct db *db_open(const char *path, bool is_writer, const char *vfs, struct err *e);
void db_close(struct db *db);

struct db_value {
	bool is_blob;
	int64_t number;
	struct str blob; /* must stay until the statement is reset */
};
#define DB_INT(n) ((struct db_value){ .number = (int64_t)(n) })
#define DB_BLOB(s) ((struct db_value){ .is_blob = true, .blob = (s) })
#define DB_VALUES(...)                              \
	((const struct db_value[]){ __VA_ARGS__ }), \
		sizeof((const struct db_value[]){ __VA_ARGS__ }) / sizeof(struct db_value)

/* The statement, ready for db_step. NULL: failed. */
sqlite3_stmt *db_bind(struct db *db, enum db_statement which, const struct db_value *values,
		      size_t n, struct err *e);
enum db_result { DB_ROW, DB_DONE, DB_FAILED };
/* After anything but DB_ROW the statement has been reset. */
enum db_result db_step(struct db *db, sqlite3_stmt *statement, struct err *e);
/* One that gives no rows. */
bool db_run(struct db *db, enum db_statement which, const struct db_value *values, size_t n,
	    struct err *e);
/* Without parameters. */
bool db_do(struct db *db, enum db_statement which, struct err *e);
/* What was asked last has failed; says why. Returns false. */
bool db_fail(struct db *db, struct err *e);
/* One row of one number. */
bool db_number(struct db *db, enum db_statement which, int64_t *number, struct err *e);
/* Is it that there is no room? */
bool db_is_full(struct db *db);

static inline int64_t db_int(sqlite3_stmt *statement, int column)
{
	return sqlite3_column_int64(statement, column);
}

/* Good until the next step. */
static inline struct str db_blob(sqlite3_stmt *statement, int column)
{
	const void *p = sqlite3_column_blob(statement, column);

	return (struct str){ p, (size_t)sqlite3_column_bytes(statement, column) };
}

#endif
