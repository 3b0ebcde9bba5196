#include "store/before.h"

#include "store/delta.h"

enum { BLOCK = 64 }; /* rows that are asked for at a time, at first */

void before_start(struct before *b, struct db *db, int64_t series, int64_t time, int64_t row)
{
	b->db = db;
	b->series = series;
	b->time = time;
	b->row = row;
	b->since = time < INT64_MIN + DELTA_MAX_GAP ? INT64_MIN : time - DELTA_MAX_GAP;
	b->nread = 0;
	b->is_at_end = false;
	b->rows.n = 0;
	arena_release(&b->arena);
	b->arena = (struct arena){ 0 };
}

void before_release(struct before *b)
{
	vec_release(&b->rows);
	arena_release(&b->arena);
}

static struct before_row *find(struct before *b, int64_t process)
{
	for (size_t i = 0; i < b->rows.n; i++)
		if (b->rows.at[i].process == process)
			return &b->rows.at[i];
	return NULL;
}

static void add(struct before *b, sqlite3_stmt *row)
{
	struct str totals = db_blob(row, 4);
	struct before_row *old = find(b, db_int(row, 5));

	if (old)
		old->nseen++;
	else
		vec_push(&b->rows,
			 (struct before_row){
				 .process = db_int(row, 5),
				 .time = db_int(row, 0),
				 .row = db_int(row, 1),
				 .book = db_int(row, 2),
				 .head = (uint32_t)db_int(row, 3),
				 .nseen = 1,
				 .totals = { arena_copy(&b->arena, totals.p, totals.n), totals.n },
			 });
}

/* More rows, until the process is met. */
static bool read_block(struct before *b, int64_t process, struct err *e)
{
	size_t wanted = b->nread + BLOCK > BEFORE_MAX_ROWS ? BEFORE_MAX_ROWS - b->nread
			: b->nread			   ? BEFORE_MAX_ROWS
							   : BLOCK;
	sqlite3_stmt *rows = db_bind(b->db, SQL_PAST,
				     DB_VALUES(DB_INT(b->series), DB_INT(b->time), DB_INT(b->row),
					       DB_INT(b->since), DB_INT(wanted)),
				     e);
	enum db_result r = rows ? DB_ROW : DB_FAILED;

	while (r == DB_ROW && (r = db_step(b->db, rows, e)) == DB_ROW) {
		b->time = db_int(rows, 0);
		b->row = db_int(rows, 1);
		wanted--;
		b->nread++;
		add(b, rows);
		if (db_int(rows, 5) == process) {
			sqlite3_reset(rows);
			return true;
		}
	}
	b->is_at_end = wanted || b->nread >= BEFORE_MAX_ROWS;
	return r == DB_DONE;
}

bool before_find(struct before *b, int64_t process, const struct before_row **found, struct err *e)
{
	while (!(*found = find(b, process)) && !b->is_at_end)
		if (!read_block(b, process, e))
			return false;
	return true;
}
