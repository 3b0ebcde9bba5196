#include "store/tiers.h"

#include "base/int.h"
#include "store/delta.h"
#include "store/scan.h"
#include "store/sums.h"

#define SECOND ((int64_t)1000000000)

int64_t tier_length(enum tier tier)
{
	static const int64_t seconds[NTIERS] = { 0, 60, 3600, 24 * 3600 };

	return seconds[tier] * SECOND;
}

int64_t tier_start(enum tier tier, int64_t time)
{
	int64_t length = tier_length(tier), rest = time % length;

	if (rest < 0)
		rest += length;
	/* The first window of all times is not whole. */
	return time < INT64_MIN + rest ? INT64_MIN : time - rest;
}

/* ---- making sums */

struct summing {
	struct tier_window *w;
	struct sums sums;
};

static struct tier_row *row_for(struct tier_window *w, int64_t book, uint32_t head)
{
	for (size_t i = 0; i < w->rows.n; i++)
		if (w->rows.at[i].book == book && w->rows.at[i].head == head)
			return &w->rows.at[i];
	vec_push(&w->rows, (struct tier_row){ .book = book, .head = head });
	return &w->rows.at[w->rows.n - 1];
}

static void add_totals(struct tier_row *to, const struct scan_row *row)
{
	size_t n = row->totals.n / sizeof(int64_t);

	while (to->totals.n < n)
		vec_push(&to->totals, 0);
	for (size_t t = 0; t < n; t++) {
		int64_t total;

		memcpy(&total, row->totals.p + t * sizeof(total), sizeof(total));
		if (row->factors)
			total = int_mul(total, (int64_t)row->factors[t]);
		to->totals.at[t] = int_add(to->totals.at[t], total);
	}
}

static bool add_row(void *ctx, const struct scan_row *row, struct err *e)
{
	struct summing *g = ctx;
	struct tier_row *to;
	bool is_added;

	if (!row->book)
		return true;
	if (!sums_add(&g->sums, row, 0, &is_added, e))
		return false;
	if (!is_added)
		return true;
	to = row_for(g->w, row->book, row->head);
	if (row->nprofiles && (!to->nprofiles || row->time < to->first))
		to->first = row->time;
	if (row->nprofiles && (!to->nprofiles || row->last > to->last))
		to->last = row->last;
	to->nprofiles += row->nprofiles;
	if (row->nprofiles)
		to->duration = int_add(to->duration, row->duration);
	to->has_deltas |= row->factors || row->has_deltas;
	add_totals(to, row);
	return true;
}

/* For want of memory a sum may be handed over in parts. */
static bool take_sum(void *ctx, const struct sum *sum, struct err *e)
{
	struct summing *g = ctx;
	struct tier_row *to = row_for(g->w, sum->book->id, sum->head);
	struct book_sum *both;
	struct buf part = { 0 };
	double *ones;
	bool ok;

	if (!to->data.n) {
		book_sum_pack(sum->sum, &to->data);
		return true;
	}
	ones = xcalloc((size_t)sum->ntypes + 1, sizeof(*ones));
	for (uint32_t t = 0; t < sum->ntypes; t++)
		ones[t] = 1;
	book_sum_pack(sum->sum, &part);
	both = book_sum_new(sum->book->book);
	ok = book_sum_add(both, buf_view(&to->data), ones, e) &&
	     book_sum_add(both, buf_view(&part), ones, e);
	to->data.n = 0;
	if (ok)
		book_sum_pack(both, &to->data);
	book_sum_free(both);
	buf_release(&part);
	free(ones);
	return ok;
}

bool tier_sum(struct tier_window *w, struct err *e)
{
	struct store_query q = { .from = w->time,
				 .to = int_add(w->time, tier_length(w->tier) - 1) };
	struct summing g = { .w = w };
	struct scan scan = { .s = w->s,
			     .q = &q,
			     .has_data = true,
			     .as_type = true,
			     .below = w->below,
			     .each = add_row,
			     .ctx = &g,
			     .picked = w->series,
			     .npicked = 1 };
	bool ok;

	sums_init(&g.sums, w->s, take_sum, &g);
	ok = scan_run(&scan, e) && sums_flush(&g.sums, e);
	sums_release(&g.sums);
	return ok;
}

void tier_window_release(struct tier_window *w)
{
	for (size_t i = 0; i < w->rows.n; i++) {
		buf_release(&w->rows.at[i].data);
		vec_release(&w->rows.at[i].totals);
	}
	vec_release(&w->rows);
}

/* ---- saving */

static bool save_row(struct db *db, const struct tier_window *w, const struct tier_row *r,
		     bool is_thinned, struct err *e)
{
	struct str totals = { (const char *)r->totals.at, r->totals.n * sizeof(int64_t) };
	int kind = (r->has_deltas ? TIER_HAS_DELTAS : 0) | (is_thinned ? TIER_IS_THINNED : 0);

	return db_run(db, SQL_NEW_TIER_BLOB, DB_VALUES(DB_BLOB(buf_view(&r->data))), e) &&
	       db_run(db, SQL_NEW_TIER,
		      DB_VALUES(DB_INT(w->series->series), DB_INT(w->tier), DB_INT(w->time),
				DB_INT(r->book), DB_INT(r->head),
				DB_INT(sqlite3_last_insert_rowid(db->sqlite)), DB_INT(kind),
				DB_INT(r->nprofiles), DB_INT(r->first), DB_INT(r->last),
				DB_INT(r->duration), DB_BLOB(totals)),
		      e);
}

bool tier_save(struct db *db, const struct tier_window *w, bool is_thinned, struct err *e)
{
	bool ok = tier_drop(db, w->series->series, w->tier, w->time, w->time, true, e);

	for (size_t i = 0; ok && i < w->rows.n; i++)
		if (w->rows.at[i].nprofiles || w->rows.at[i].data.n)
			ok = save_row(db, w, &w->rows.at[i], is_thinned, e);
	return ok;
}

/* The sum of a row and of what the statement has, which is as in SQL_TIER_AT. */
static bool add_to_row(const struct book *book, sqlite3_stmt *old, const struct tier_row *row,
		       struct tier_row *both, struct err *e)
{
	struct book_sum *sum = book_sum_new(book);
	double *ones = xcalloc(row->totals.n + 1, sizeof(*ones));
	struct scan_row before = { .totals = db_blob(old, 6) };
	bool ok;

	for (size_t t = 0; t < row->totals.n; t++) {
		ones[t] = 1;
		vec_push(&both->totals, row->totals.at[t]);
	}
	add_totals(both, &before);
	both->has_deltas |= db_int(old, 1) & TIER_HAS_DELTAS;
	both->nprofiles += (uint64_t)db_int(old, 2);
	both->first = both->first < db_int(old, 3) ? both->first : db_int(old, 3);
	both->last = both->last > db_int(old, 4) ? both->last : db_int(old, 4);
	both->duration = int_add(both->duration, db_int(old, 5));
	ok = book_ntypes(book, row->head) == row->totals.n ||
	     err_set(e, ERR_FORMAT, "totals of a sum are damaged");
	ok = ok && book_sum_add(sum, db_blob(old, 7), ones, e) &&
	     book_sum_add(sum, buf_view(&row->data), ones, e);
	if (ok)
		book_sum_pack(sum, &both->data);
	book_sum_free(sum);
	free(ones);
	return ok;
}

bool tier_add(struct db *db, const struct book *book, const struct tier_window *w,
	      const struct tier_row *row, bool is_thinned, struct err *e)
{
	struct db_value at[5] = { DB_INT(w->series->series), DB_INT(w->tier), DB_INT(w->time),
				  DB_INT(row->book), DB_INT(row->head) };
	sqlite3_stmt *old = db_bind(db, SQL_TIER_AT, at, 5, e);
	enum db_result r = old ? db_step(db, old, e) : DB_FAILED;
	struct tier_row both = *row;
	int64_t blob;
	bool ok;

	if (r != DB_ROW)
		return r == DB_DONE && save_row(db, w, row, is_thinned, e);
	both.data = (struct buf){ 0 };
	both.totals.at = NULL;
	both.totals.n = both.totals.cap = 0;
	blob = db_int(old, 0);
	is_thinned |= (db_int(old, 1) & TIER_IS_THINNED) != 0;
	ok = add_to_row(book, old, row, &both, e);
	sqlite3_reset(old);
	ok = ok &&
	     db_run(db, SQL_DROP_TIER, DB_VALUES(at[0], at[1], at[2], at[3], at[4], DB_INT(blob)),
		    e) &&
	     db_run(db, SQL_DROP_TIER_BLOB, DB_VALUES(DB_INT(blob)), e) &&
	     save_row(db, w, &both, is_thinned, e);
	buf_release(&both.data);
	vec_release(&both.totals);
	return ok;
}

bool tier_drop(struct db *db, int64_t series, enum tier tier, int64_t from, int64_t to, bool is_all,
	       struct err *e)
{
	int below = is_all ? 2 * TIER_IS_THINNED : TIER_IS_THINNED;

	return db_run(db, SQL_DROP_TIER_BLOBS,
		      DB_VALUES(DB_INT(series), DB_INT(tier), DB_INT(from), DB_INT(to),
				DB_INT(below)),
		      e) &&
	       db_run(db, SQL_DROP_TIERS,
		      DB_VALUES(DB_INT(series), DB_INT(tier), DB_INT(from), DB_INT(to),
				DB_INT(below)),
		      e);
}

/* ---- changes */

static bool drop_windows_of(struct db *db, int64_t series, int64_t time, struct err *e)
{
	for (enum tier t = TIER_MINUTE; t < NTIERS; t++) {
		int64_t start = tier_start(t, time);

		if (!tier_drop(db, series, t, start, start, false, e))
			return false;
	}
	return db_run(db, SQL_NEW_LATE, DB_VALUES(DB_INT(series), DB_INT(time)), e);
}

/* What the statement gives are times of profiles that differ from another one now. */
static bool drop_next(struct db *db, int64_t series, int64_t until, sqlite3_stmt *rows,
		      struct err *e)
{
	enum db_result r = rows ? DB_ROW : DB_FAILED;

	while (r == DB_ROW && (r = db_step(db, rows, e)) == DB_ROW)
		if (db_int(rows, 0) < until && !drop_windows_of(db, series, db_int(rows, 0), e)) {
			sqlite3_reset(rows);
			return false;
		}
	return r == DB_DONE;
}

bool tier_change(struct db *db, int64_t series, int64_t process, int64_t time, int64_t until,
		 struct err *e)
{
	return drop_windows_of(db, series, time, e) &&
	       drop_next(db, series, until,
			 db_bind(db, SQL_NEXT_OF_PROCESS,
				 DB_VALUES(DB_INT(series), DB_INT(int_add(time, 1)),
					   DB_INT(int_add(time, DELTA_MAX_GAP)), DB_INT(process)),
				 e),
			 e);
}

static bool count_thinned(struct db *db, int64_t series, enum tier tier, int64_t from, int64_t to,
			  uint64_t *n, struct err *e)
{
	sqlite3_stmt *row =
		db_bind(db, SQL_COUNT_THINNED,
			DB_VALUES(DB_INT(series), DB_INT(tier), DB_INT(from), DB_INT(to)), e);

	if (!row || db_step(db, row, e) != DB_ROW)
		return false;
	*n += (uint64_t)db_int(row, 0);
	sqlite3_reset(row);
	return true;
}

bool tier_delete(struct db *db, int64_t series, int64_t from, int64_t to, uint64_t *n,
		 struct err *e)
{
	/* Of those that are cut in two, what is not thinned can be made again. */
	for (enum tier t = TIER_MINUTE; t < NTIERS; t++) {
		int64_t last = int_add(to, 1 - tier_length(t));

		if (!tier_drop(db, series, t, tier_start(t, from), to, false, e) ||
		    !count_thinned(db, series, t, from, last, n, e) ||
		    !tier_drop(db, series, t, from, last, true, e))
			return false;
	}
	return drop_windows_of(db, series, from, e) && drop_windows_of(db, series, to, e) &&
	       drop_next(db, series, INT64_MAX,
			 db_bind(db, SQL_NEXT_OF_EACH,
				 DB_VALUES(DB_INT(series), DB_INT(int_add(to, 1)),
					   DB_INT(int_add(to, DELTA_MAX_GAP))),
				 e),
			 e);
}
