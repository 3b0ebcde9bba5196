#include "store/scan.h"

#include <stdlib.h>

#include "base/stop.h"
#include "store/delta.h"
#include "store/find.h"
#include "store/plan.h"

static int by_service(const void *a, const void *b)
{
	const struct picked *x = a, *y = b;

	if (x->service != y->service)
		return x->service < y->service ? -1 : 1;
	return (x->series > y->series) - (x->series < y->series);
}

void scan_pick(struct scan *scan, struct arena *a)
{
	scan->picked = catalog_pick(&scan->s->catalog, scan->q, a, &scan->npicked);
	if (scan->npicked)
		qsort(scan->picked, scan->npicked, sizeof(*scan->picked), by_service);
}

bool scan_check_type(const struct scan *scan, struct err *e)
{
	for (size_t i = 1; i < scan->npicked && !scan->q->may_mix_types; i++)
		if (!str_eq(scan->picked[0].type, scan->picked[i].type))
			return err_set(e, ERR_USAGE,
				       "profiles of several types are there, as %.*s and %.*s; "
				       "name one type",
				       STR_ARG(scan->picked[0].type),
				       STR_ARG(scan->picked[i].type));
	return true;
}

static struct scan_row read_row(const struct scan *scan, const struct picked *p, sqlite3_stmt *row)
{
	return (struct scan_row){
		.series = p,
		.time = db_int(row, 0),
		.last = db_int(row, 0),
		.row = db_int(row, 1),
		.book = db_int(row, 2),
		.head = (uint32_t)db_int(row, 3),
		.totals = db_blob(row, 4),
		.duration = db_int(row, 5),
		.process = db_int(row, 6),
		.data = scan->has_data ? db_blob(row, 7) : STR(""),
		.nprofiles = 1,
	};
}

static bool give_row(struct scan *scan, const struct picked *p, sqlite3_stmt *row, struct err *e)
{
	struct scan_row r = read_row(scan, p, row);

	if (stop_asked(scan->q->stop))
		return err_set(e, ERR_IO, "nobody waits for it any more");
	return scan->deltas ? deltas_add(scan->deltas, &r, e) : scan->each(scan->ctx, &r, e);
}

/* Of a window. */
static bool give_sum(struct scan *scan, const struct picked *p, sqlite3_stmt *row, struct err *e)
{
	struct scan_row r = {
		.series = p,
		.time = db_int(row, 0),
		.last = db_int(row, 1),
		.book = db_int(row, 2),
		.head = (uint32_t)db_int(row, 3),
		.totals = db_blob(row, 4),
		.duration = db_int(row, 5),
		.nprofiles = (uint64_t)db_int(row, 6),
		.data = scan->has_data ? db_blob(row, 8) : STR(""),
		.is_sum = true,
		.has_deltas = db_int(row, 7) & TIER_HAS_DELTAS,
	};

	if (stop_asked(scan->q->stop))
		return err_set(e, ERR_IO, "nobody waits for it any more");
	return scan->each(scan->ctx, &r, e);
}

static bool give_sums(struct scan *scan, const struct picked *p, const struct piece *piece,
		      struct err *e)
{
	sqlite3_stmt *rows = db_bind(scan->db, scan->has_data ? SQL_TIERS : SQL_TIER_TOTALS,
				     DB_VALUES(DB_INT(p->series), DB_INT(piece->tier),
					       DB_INT(piece->from), DB_INT(piece->to)),
				     e);
	enum db_result r;

	if (!rows)
		return false;
	while ((r = db_step(scan->db, rows, e)) == DB_ROW)
		if (!give_sum(scan, p, rows, e)) {
			sqlite3_reset(rows);
			return false;
		}
	return r == DB_DONE;
}

static bool give_rows(struct scan *scan, const struct picked *p, sqlite3_stmt *rows, struct err *e)
{
	enum db_result r;

	if (!rows)
		return false;
	while ((r = db_step(scan->db, rows, e)) == DB_ROW)
		if (!give_row(scan, p, rows, e)) {
			sqlite3_reset(rows);
			return false;
		}
	return r == DB_DONE;
}

static bool give_at(struct scan *scan, const struct picked *p, int64_t time, int64_t row,
		    struct err *e)
{
	return give_rows(scan, p,
			 db_bind(scan->db, SQL_PROFILE_AT,
				 DB_VALUES(DB_INT(p->series), DB_INT(time), DB_INT(row)), e),
			 e);
}

/* ---- one of each series */

static int64_t total_of(struct store *s, sqlite3_stmt *row)
{
	struct str totals = db_blob(row, 4);
	struct err ignored;
	struct shelf_book *b = shelf_take(s, db_int(row, 2), &ignored);
	uint32_t type = NONE;
	int64_t total = INT64_MIN;

	if (!b)
		return total;
	pthread_rwlock_rdlock(&b->lock);
	type = book_find_type(b->book, (uint32_t)db_int(row, 3), STR(""));
	pthread_rwlock_unlock(&b->lock);
	shelf_put_back(s, b);
	if (type < totals.n / sizeof(total))
		memcpy(&total, totals.p + type * sizeof(total), sizeof(total));
	return total;
}

/* The row to give: the last one, or that of the highest total. */
static bool choose(struct scan *scan, const struct picked *p, int64_t *time, int64_t *row,
		   bool *is_there, struct err *e)
{
	bool is_max = scan->which == SCAN_MAX;
	sqlite3_stmt *rows = db_bind(
		scan->db, is_max ? SQL_TOTALS : SQL_LAST,
		DB_VALUES(DB_INT(p->series), DB_INT(scan->q->from), DB_INT(scan->q->to)), e);
	int64_t highest = INT64_MIN;
	enum db_result r;

	*is_there = false;
	if (!rows)
		return false;
	while ((r = db_step(scan->db, rows, e)) == DB_ROW) {
		int64_t total = is_max ? total_of(scan->s, rows) : 0;

		if (*is_there && total <= highest)
			continue;
		*is_there = true;
		highest = total;
		*time = db_int(rows, 0);
		*row = db_int(rows, 1);
	}
	return r == DB_DONE;
}

/* What was before the first row of a piece must be looked up. Among what came after the rest was
 * thinned each row is the first: so it counts no difference. */
static bool give_piece(struct scan *scan, const struct picked *p, const struct piece *piece,
		       struct err *e)
{
	if (scan->deltas && !deltas_end(scan->deltas, e))
		return false;
	if (piece->tier != TIER_RAW)
		return give_sums(scan, p, piece, e);
	if (scan->deltas)
		scan->deltas->is_extra = piece->is_extra;
	return give_rows(
		scan, p,
		db_bind(scan->db, scan->has_data ? SQL_PROFILES : SQL_TOTALS,
			DB_VALUES(DB_INT(p->series), DB_INT(piece->from), DB_INT(piece->to)), e),
		e);
}

static bool scan_times(struct scan *scan, const struct picked *p, struct err *e)
{
	struct plan plan = { .db = scan->db,
			     .series = p->series,
			     .below = scan->below ? (enum tier)scan->below : NTIERS,
			     .step = scan->step,
			     .as_type = scan->as_type };
	bool ok = plan_make(&plan, scan->q->from, scan->q->to, e);

	for (size_t i = 0; ok && i < plan.pieces.n; i++)
		ok = give_piece(scan, p, &plan.pieces.at[i], e);
	vec_release(&plan.pieces);
	return ok;
}

static bool scan_series(struct scan *scan, const struct picked *p, struct err *e)
{
	int64_t time, row;
	bool is_there;

	if (scan->which == SCAN_ALL)
		return scan_times(scan, p, e);
	return choose(scan, p, &time, &row, &is_there, e) &&
	       (!is_there || give_at(scan, p, time, row, e));
}

/* ---- all */

/* Is `i` the last series of its service? */
static bool ends_service(const struct scan *scan, size_t i)
{
	return i + 1 == scan->npicked || scan->picked[i].service != scan->picked[i + 1].service;
}

static bool after(struct scan *scan, size_t i, struct err *e)
{
	if (scan->deltas && !deltas_end(scan->deltas, e))
		return false;
	return !scan->after_service || !ends_service(scan, i) || scan->after_service(scan->ctx, e);
}

static bool scan_all(struct scan *scan, struct err *e)
{
	for (size_t i = 0; i < scan->npicked; i++)
		if (!scan_series(scan, &scan->picked[i], e) || !after(scan, i, e))
			return false;
	return true;
}

static int by_picked(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->picked != y->picked)
		return x->picked < y->picked ? -1 : 1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

/* The newest of all series together. */
static bool scan_newest(struct scan *scan, struct err *e)
{
	struct search f = { .s = scan->s,
			    .db = scan->db,
			    .q = scan->q,
			    .picked = scan->picked,
			    .npicked = scan->npicked };
	bool ok = search_run(&f, e);
	size_t at = 0;

	if (ok && f.found.n)
		qsort(f.found.at, f.found.n, sizeof(*f.found.at), by_picked);
	for (size_t i = 0; ok && i < scan->npicked; i++) {
		for (; ok && at < f.found.n && f.found.at[at].picked == i; at++)
			ok = give_at(scan, &scan->picked[i], f.found.at[at].time,
				     f.found.at[at].row, e);
		ok = ok && after(scan, i, e);
	}
	vec_release(&f.found);
	return ok;
}

/* Those between two of them are not there: so what was before each is looked up. */
static bool scan_places(struct scan *scan, struct err *e)
{
	size_t at = 0;

	for (size_t i = 0; i < scan->npicked; i++) {
		for (; at < scan->nplaces && scan->places[at].picked == i; at++)
			if (!give_at(scan, &scan->picked[i], scan->places[at].time,
				     scan->places[at].row, e) ||
			    (scan->deltas && !deltas_end(scan->deltas, e)))
				return false;
		if (!after(scan, i, e))
			return false;
	}
	return true;
}

static bool give_all(struct scan *scan, struct err *e)
{
	if (scan->places)
		return scan_places(scan, e);
	return scan->which == SCAN_ALL && scan->q->limit ? scan_newest(scan, e) : scan_all(scan, e);
}

bool scan_run(struct scan *scan, struct err *e)
{
	struct deltas deltas = { .s = scan->s,
				 .each = scan->each,
				 .ctx = scan->ctx,
				 .step = scan->step,
				 .has_data = scan->has_data };
	struct err ignored;
	bool ok;

	scan->deltas = scan->as_type && scan->which == SCAN_ALL ? &deltas : NULL;
	scan->db = store_reader(scan->s, e);
	if (!scan->db)
		return false;
	deltas.db = scan->db;
	ok = db_do(scan->db, SQL_BEGIN_READ, e) &&
	     (!scan->begin || scan->begin(scan->ctx, scan->db, e)) && give_all(scan, e);
	db_do(scan->db, SQL_COMMIT, &ignored);
	store_reader_back(scan->s, scan->db);
	deltas_release(&deltas);
	return ok;
}
