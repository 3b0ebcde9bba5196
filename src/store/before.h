/* before.h - what was before a row of a series: the last profile of each process.
 *
 * Rows are read backwards from where it is told to start, only as far as somebody asks: most series
 * have one process, and its last profile is the first that is met. It ends after BEFORE_MAX_ROWS or
 * DELTA_MAX_GAP; who was not met until then is new. Only profiles whose values may count from a
 * process's start are looked at: those without a duration.
 */
#ifndef STORE_BEFORE_H
#define STORE_BEFORE_H

#include "base/arena.h"
#include "base/vec.h"
#include "store/db.h"

enum { BEFORE_MAX_ROWS = 4000 };

struct before_row {
	int64_t process, time, row, book;
	uint32_t head;
	uint32_t nseen;	   /* profiles of the process */
	struct str totals; /* of the last one */
};

struct before {
	struct db *db;
	int64_t series, since;
	int64_t time, row; /* it has been read down to there */
	size_t nread;
	bool is_at_end;
	vec(struct before_row) rows;
	struct arena arena;
};

/* What was before this row will be asked for. */
void before_start(struct before *b, struct db *db, int64_t series, int64_t time, int64_t row);
void before_release(struct before *b);
/* *found is NULL if there is none: then all of `rows` is there. Good until the next call. */
bool before_find(struct before *b, int64_t process, const struct before_row **found, struct err *e);

#endif
