/* merge.c - one profile of many.
 *
 * Within a book profiles are added as numbers (sums.h). What comes out of each book is a profile,
 * and those are merged as profiles.
 */
#include <stdlib.h>

#include "store/meaning.h"
#include "store/naming.h"
#include "store/piles.h"
#include "store/sums.h"

struct merging {
	struct store *s;
	struct arena *a;
	struct strings *strings;
	struct sums sums;
	struct piles piles;
	struct store_merged *out;
	const struct picked *last_series;
	/* the first of them, as it is: if it is the only one it is returned so */
	struct buf first;
	int64_t first_book;
	bool has_corrections;
};

/* ---- sums become piles */

static bool take_sum(void *ctx, const struct sum *sum, struct err *e)
{
	struct merging *m = ctx;
	struct arena scratch = { 0 };
	struct buf packed = { 0 };
	struct profile p;
	bool ok;

	book_sum_pack(sum->sum, &packed);
	ok = book_unpack(sum->book->book, buf_view(&packed), &scratch, m->strings, &p, e) &&
	     piles_add(&m->piles, &p, sum, e);
	buf_release(&packed);
	arena_release(&scratch);
	return ok;
}

static bool end_service(void *ctx, struct err *e)
{
	struct merging *m = ctx;

	return sums_flush(&m->sums, e);
}

/* ---- rows become sums */

static void note_row(struct merging *m, const struct scan_row *row)
{
	struct store_merged *out = m->out;

	if (!row->nprofiles) {
		m->has_corrections = true;
		return;
	}
	if (!out->nprofiles || row->time < out->first)
		out->first = row->time;
	if (!out->nprofiles || row->last > out->last)
		out->last = row->last;
	if (!out->nprofiles) {
		buf_str(&m->first, row->data);
		m->first_book = row->book;
	}
	out->nprofiles += row->nprofiles;
	out->ntiers += row->is_sum;
	out->nseries += row->series != m->last_series;
	m->last_series = row->series;
}

static bool add_row(void *ctx, const struct scan_row *row, struct err *e)
{
	struct merging *m = ctx;
	bool is_added;

	if (!row->book)
		return err_set(e, ERR_USAGE, "can't merge profiles of %.*s type",
			       STR_ARG(row->series->type));
	if (!sums_add(&m->sums, row, 0, &is_added, e))
		return false;
	if (is_added)
		note_row(m, row);
	return true;
}

/* ---- piles become one profile */

static bool finish_one(struct merging *m, struct err *e)
{
	struct shelf_book *b = shelf_take(m->s, m->first_book, e);
	bool ok;

	if (!b)
		return false;
	pthread_rwlock_rdlock(&b->lock);
	ok = book_unpack(b->book, buf_view(&m->first), m->a, m->strings, &m->out->profile, e);
	pthread_rwlock_unlock(&b->lock);
	shelf_put_back(m->s, b);
	return ok;
}

static bool merge(struct merging *m, struct scan *scan, enum store_sum how, struct err *e)
{
	if (!scan_check_type(scan, e) || !scan_run(scan, e))
		return false;
	if (!m->out->nprofiles)
		return err_set(e, ERR_NOTFOUND, "nothing found");
	if (m->out->nprofiles == 1 && !m->has_corrections)
		return finish_one(m, e);
	if (!piles_finish(&m->piles, scan->q, &m->out->profile, &m->out->left_out, e))
		return false;
	m->out->nprofiles -= m->out->left_out.nprofiles;
	if (how == STORE_AS_TYPE || how == STORE_MEAN)
		average_profile(m->a, &m->out->profile, scan->picked[0].type, how == STORE_MEAN,
				m->out->nprofiles);
	return true;
}

/* Of what the scan, for which series have been picked, is about. */
static bool merge_picked(const struct scan *of, enum store_sum how, struct arena *a,
			 struct strings *strings, struct store_merged *out, struct err *e)
{
	struct merging m = { .s = of->s,
			     .a = a,
			     .strings = strings,
			     .piles = { .a = a, .strings = strings },
			     .out = out };
	struct scan scan = *of;
	bool ok;

	*out = (struct store_merged){ 0 };
	scan.has_data = true;
	scan.each = add_row;
	scan.after_service = end_service;
	scan.ctx = &m;
	sums_init(&m.sums, scan.s, take_sum, &m);
	ok = merge(&m, &scan, how, e);
	if (ok)
		naming_profile(scan.s->namer, a, &out->profile);
	sums_release(&m.sums);
	piles_release(&m.piles);
	buf_release(&m.first);
	return ok;
}

bool store_merge(struct store *s, const struct store_query *q, enum store_sum how, struct arena *a,
		 struct strings *strings, struct store_merged *out, struct err *e)
{
	struct scan scan = { .s = s,
			     .q = q,
			     .which = how == STORE_LAST	 ? SCAN_LAST
				      : how == STORE_MAX ? SCAN_MAX
							 : SCAN_ALL,
			     .as_type = how == STORE_AS_TYPE };

	scan_pick(&scan, a);
	return merge_picked(&scan, how, a, strings, out, e);
}

/* ---- of profiles that are named */

struct place {
	int64_t series, time, row;
};

static bool find_place(struct db *db, const struct store_id *id, struct place *place, struct err *e)
{
	struct str bytes = { (const char *)id->at, sizeof(id->at) };
	sqlite3_stmt *row = db_bind(db, SQL_PLACE_OF, DB_VALUES(DB_BLOB(bytes)), e);
	enum db_result r = row ? db_step(db, row, e) : DB_FAILED;

	if (r == DB_DONE)
		return err_set(e, ERR_NOTFOUND, "there is no profile of that id");
	if (r == DB_FAILED)
		return false;
	*place = (struct place){ db_int(row, 0), db_int(row, 1), db_int(row, 2) };
	sqlite3_reset(row);
	return true;
}

static bool find_places(struct store *s, const struct store_id *ids, size_t n, struct place *places,
			struct err *e)
{
	struct db *db = store_reader(s, e);
	bool ok = db;

	for (size_t i = 0; ok && i < n; i++)
		ok = find_place(db, &ids[i], &places[i], e);
	store_reader_back(s, db);
	return ok;
}

static int by_series(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

/* Series of one service need not come together here: it only costs memory earlier. */
static bool pick_places(struct scan *scan, struct arena *a, struct place *places, size_t n,
			struct err *e)
{
	struct scan_place *to = arena_many(a, n, struct scan_place);

	qsort(places, n, sizeof(*places), by_series);
	scan->picked = arena_many(a, n, struct picked);
	for (size_t i = 0; i < n; i++) {
		if ((!i || places[i].series != places[i - 1].series) &&
		    !catalog_copy(&scan->s->catalog, places[i].series, a,
				  &scan->picked[scan->npicked++]))
			return err_set(e, ERR_NOTFOUND, "a profile has just been deleted");
		to[i] = (struct scan_place){ scan->npicked - 1, places[i].time, places[i].row };
	}
	scan->places = to;
	scan->nplaces = n;
	return true;
}

bool store_merge_ids(struct store *s, const struct store_id *ids, size_t n, const atomic_bool *stop,
		     struct arena *a, struct strings *strings, struct store_merged *out,
		     struct err *e)
{
	struct store_query q = { .stop = stop, .is_whole = true };
	/* One alone is what was pushed. */
	struct scan scan = { .s = s, .q = &q, .as_type = n > 1 };
	struct place *places = arena_many(a, n + 1, struct place);

	if (!find_places(s, ids, n, places, e) || !pick_places(&scan, a, places, n, e) ||
	    !merge_picked(&scan, STORE_AS_TYPE, a, strings, out, e))
		return false;
	return out->nprofiles == n || err_set(e, ERR_NOTFOUND, "a profile has just been deleted");
}
