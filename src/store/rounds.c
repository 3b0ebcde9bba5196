#include "store/rounds.h"

/* Processes that tell less often are not told apart; those that follow one another within it are
 * taken for ones that run side by side. */
#define PIECE (INT64_C(300) * 1000000000)

static bool count(struct db *db, const struct rounds *r, double *rounds, struct err *e)
{
	sqlite3_stmt *rows = db_bind(
		db, SQL_ROUNDS,
		DB_VALUES(DB_INT(r->series), DB_INT(r->from), DB_INT(r->to), DB_INT(PIECE)), e);
	enum db_result result = rows ? DB_ROW : DB_FAILED;
	double sum = 0, n = 0, all = (double)r->nprofiles;

	while (result == DB_ROW && (result = db_step(db, rows, e)) == DB_ROW) {
		double told = (double)db_int(rows, 0), nprocesses = (double)db_int(rows, 1);

		n += told;
		sum += nprocesses > 1 ? told / nprocesses : told;
	}
	/* Some may have come since, or gone. */
	*rounds = n > all ? sum * all / n : sum + (all - n);
	return result == DB_DONE;
}

bool rounds_count(struct store *s, const struct rounds *r, double *rounds, struct err *e)
{
	struct db *db = store_reader(s, e);
	bool ok = db && count(db, r, rounds, e);

	store_reader_back(s, db);
	return ok;
}
