#include "store/delete.h"

#include <stdlib.h>
#include <time.h>

#include "base/int.h"
#include "base/stop.h"
#include "store/find.h"
#include "store/tiers.h"

enum {
	SLICE = 500, /* profiles that are deleted in one commit */
	LEFT_SECONDS = 3600,
};

struct doomed {
	int64_t time, row, book;
	uint64_t nsamples, bytes;
	int64_t process;
};

struct deletion {
	int64_t series;
	int64_t from, to;
	size_t slice;		  /* up to so many */
	const struct found *list; /* or NULL: all between the times */
	size_t nlist;
	/* set by the writer */
	struct doomed doomed[SLICE];
	size_t n;
	uint64_t nthinned;   /* that were only in sums */
	int64_t first, last; /* of what is left, if anything */
};

/* ---- profiles */

static bool collect(struct deletion *d, struct db *db, sqlite3_stmt *rows, struct err *e)
{
	enum db_result r;

	if (!rows)
		return false;
	while ((r = db_step(db, rows, e)) == DB_ROW && d->n < d->slice)
		d->doomed[d->n++] =
			(struct doomed){ db_int(rows, 0),	    db_int(rows, 1),
					 db_int(rows, 2),	    (uint64_t)db_int(rows, 3),
					 (uint64_t)db_int(rows, 4), db_int(rows, 5) };
	sqlite3_reset(rows);
	return r != DB_FAILED;
}

static bool collect_all(struct deletion *d, struct db *db, struct err *e)
{
	bool ok = true;

	d->n = 0;
	if (!d->list)
		return collect(d, db,
			       db_bind(db, SQL_DOOMED,
				       DB_VALUES(DB_INT(d->series), DB_INT(d->from), DB_INT(d->to),
						 DB_INT(d->slice)),
				       e),
			       e);
	for (size_t i = 0; ok && i < d->nlist; i++)
		ok = collect(d, db,
			     db_bind(db, SQL_DOOMED_AT,
				     DB_VALUES(DB_INT(d->series), DB_INT(d->list[i].time),
					       DB_INT(d->list[i].row)),
				     e),
			     e);
	return ok;
}

static bool read_ends(struct deletion *d, struct db *db, struct err *e)
{
	sqlite3_stmt *row = db_bind(db, SQL_ENDS, DB_VALUES(DB_INT(d->series)), e);

	if (!row || db_step(db, row, e) != DB_ROW)
		return false;
	d->first = db_int(row, 0);
	d->last = db_int(row, 1);
	sqlite3_reset(row);
	return true;
}

/* The first time that is another then. */
static int64_t first_of(const struct deletion *d)
{
	int64_t first = d->list ? INT64_MAX : d->from;

	for (size_t i = 0; d->list && i < d->n; i++)
		if (d->doomed[i].time < first)
			first = d->doomed[i].time;
	return first;
}

/* Windows that had them. */
static bool drop_sums(struct deletion *d, struct db *db, struct err *e)
{
	int64_t first = first_of(d);

	d->nthinned = 0;
	if (!kept_delete(db, d->series, first, d->list ? INT64_MAX : d->to, e))
		return false;
	if (!d->list)
		return tier_delete(db, d->series, d->from, d->to, &d->nthinned, e);
	for (size_t i = 0; i < d->n; i++)
		if (!tier_change(db, d->series, d->doomed[i].process, d->doomed[i].time, INT64_MAX,
				 e))
			return false;
	return true;
}

static bool drop_profiles(struct store *s, struct db *db, void *ctx, struct err *e)
{
	struct deletion *d = ctx;

	(void)s;
	if (!collect_all(d, db, e))
		return false;
	for (size_t i = 0; i < d->n; i++)
		if (!db_run(db, SQL_DROP_BLOB, DB_VALUES(DB_INT(d->doomed[i].row)), e) ||
		    !db_run(db, SQL_DROP_PROFILE,
			    DB_VALUES(DB_INT(d->series), DB_INT(d->doomed[i].time),
				      DB_INT(d->doomed[i].row)),
			    e))
			return false;
	return drop_sums(d, db, e) && read_ends(d, db, e);
}

/* Sums that are being made of what there was are worthless now. */
static void note_change(struct series *series, const struct deletion *d)
{
	int64_t first = first_of(d);

	if (first < atomic_load(&series->oldest_put))
		atomic_store(&series->oldest_put, first);
	catalog_note_deleted(series, first, d->list ? INT64_MAX : d->to);
}

static void note_dropped(struct store *s, void *ctx, bool is_ok)
{
	struct deletion *d = ctx;
	struct series *series;

	if (!is_ok)
		return;
	pthread_rwlock_wrlock(&s->catalog.lock);
	series = catalog_series(&s->catalog, d->series);
	if (series)
		note_change(series, d);
	for (size_t i = 0; series && i < d->n; i++) {
		series->counts.nprofiles--;
		series->counts.nsamples -= d->doomed[i].nsamples;
		series->counts.bytes -= d->doomed[i].bytes;
	}
	if (series) {
		series->counts.nprofiles -= d->nthinned;
		series->counts.first = d->first;
		series->counts.last = d->last;
	}
	pthread_rwlock_unlock(&s->catalog.lock);
	pthread_mutex_lock(&s->shelf.lock);
	for (size_t i = 0; i < d->n; i++) {
		struct shelf_book *b = shelf_find(&s->shelf, d->doomed[i].book);

		if (b)
			b->nprofiles--;
	}
	pthread_mutex_unlock(&s->shelf.lock);
	atomic_fetch_add(&s->ndeleted, d->n + d->nthinned);
}

/* One commit. */
static bool delete_slice(struct store *s, struct deletion *d, const atomic_bool *stop,
			 struct err *e)
{
	struct writer_task task = { .work = drop_profiles, .after = note_dropped, .ctx = d };

	if (stop_asked(stop))
		return err_set(e, ERR_IO, "nobody waits for it any more");
	return writer_do(s, &task, e);
}

static size_t slice_of(const struct store *s)
{
	return keep_piece(s) < SLICE ? keep_piece(s) : SLICE;
}

/* Where a commit ends, so that it has not too many sums: a year may have half a million. All
 * begin at the same time, or a day would be in none of them. */
static bool find_end(struct store *s, struct deletion *d, int64_t to, struct err *e)
{
	struct db *db = store_reader(s, e);
	enum db_result r = db ? DB_DONE : DB_FAILED;

	d->to = to;
	for (enum tier t = TIER_MINUTE; r != DB_FAILED && t < NTIERS; t++) {
		sqlite3_stmt *row = db_bind(db, SQL_TIER_ENDS,
					    DB_VALUES(DB_INT(d->series), DB_INT(t), DB_INT(d->from),
						      DB_INT(d->to), DB_INT(d->slice)),
					    e);

		r = row ? db_step(db, row, e) : DB_FAILED;
		if (r != DB_ROW)
			continue;
		/* One window at least. */
		if (db_int(row, 1) > db_int(row, 0))
			d->to = int_add(db_int(row, 1), -1);
		else if (int_add(db_int(row, 0), tier_length(t) - 1) < d->to)
			d->to = int_add(db_int(row, 0), tier_length(t) - 1);
		sqlite3_reset(row);
	}
	store_reader_back(s, db);
	return r != DB_FAILED;
}

bool delete_range(struct store *s, int64_t series, int64_t from, int64_t to,
		  const atomic_bool *stop, uint64_t *n, struct err *e)
{
	struct deletion *d = xcalloc(1, sizeof(*d));
	bool ok = true, is_done = false;

	*d = (struct deletion){ .series = series, .from = from, .slice = slice_of(s) };
	while (ok && !is_done) {
		ok = find_end(s, d, to, e) && delete_slice(s, d, stop, e);
		if (!ok && e->kind == ERR_LIMIT && d->slice > 1) {
			d->slice /= 2;
			ok = true;
			continue;
		}
		*n += ok ? d->n + d->nthinned : 0;
		is_done = d->to == to && d->n < d->slice;
	}
	free(d);
	return ok;
}

/* ---- what has become empty */

struct sweep {
	vec(int64_t) series, services, books;
};

static bool is_empty_series(const struct series *s)
{
	return !s->counts.nprofiles && !atomic_load(&s->nwaiting);
}

static bool has_sums(struct db *db, int64_t book)
{
	sqlite3_stmt *row;
	struct err ignored;
	enum db_result r = DB_FAILED;

	row = db_bind(db, SQL_TIERS_OF_BOOK, DB_VALUES(DB_INT(book)), &ignored);
	if (row)
		r = db_step(db, row, &ignored);
	if (r == DB_ROW)
		sqlite3_reset(row);
	return r != DB_DONE;
}

static bool is_empty_book(struct db *db, const struct shelf_book *b, bool is_passive)
{
	/* Of one that was rewritten, somebody may still read what was there before. */
	if (b->left_at && !is_passive && time(NULL) - b->left_at < LEFT_SECONDS)
		return false;
	return !b->nprofiles && !b->nusers && !has_sums(db, b->id);
}

/* Both locks are held from here to sweep_end, so that nobody uses what goes. */
static void sweep_find(struct store *s, struct db *db, struct sweep *w)
{
	pthread_rwlock_wrlock(&s->catalog.lock);
	pthread_mutex_lock(&s->shelf.lock);
	for (size_t i = 0; i < s->catalog.services.n; i++)
		s->catalog.services.at[i]->nleft = 0;
	for (size_t i = 0; i < s->catalog.series.n; i++) {
		struct series *series = s->catalog.series.at[i];

		if (is_empty_series(series))
			vec_push(&w->series, series->id);
		else
			series->service->nleft++;
	}
	for (size_t i = 0; i < s->shelf.books.n; i++) {
		struct shelf_book *b = s->shelf.books.at[i];

		if (is_empty_book(db, b, s->params.is_passive))
			vec_push(&w->books, b->id);
		else
			b->service->nleft++;
	}
	for (size_t i = 0; i < s->catalog.services.n; i++)
		if (!s->catalog.services.at[i]->nleft)
			vec_push(&w->services, s->catalog.services.at[i]->id);
}

static bool sweep_drop(struct store *s, struct db *db, void *ctx, struct err *e)
{
	struct sweep *w = ctx;
	bool ok = true;

	sweep_find(s, db, w);
	for (size_t i = 0; ok && i < w->series.n; i++)
		ok = db_run(db, SQL_DROP_SERIES, DB_VALUES(DB_INT(w->series.at[i])), e) &&
		     kept_delete(db, w->series.at[i], 0, INT64_MAX, e) &&
		     db_run(db, SQL_DROP_LATE,
			    DB_VALUES(DB_INT(w->series.at[i]), DB_INT(INT64_MIN),
				      DB_INT(INT64_MAX)),
			    e);
	for (size_t i = 0; ok && i < w->services.n; i++)
		ok = db_run(db, SQL_DROP_SERVICE, DB_VALUES(DB_INT(w->services.at[i])), e);
	for (size_t i = 0; ok && i < w->books.n; i++) {
		int64_t first = w->books.at[i] << 32;

		ok = db_run(db, SQL_DROP_BOOK, DB_VALUES(DB_INT(w->books.at[i])), e) &&
		     db_run(db, SQL_DROP_CHUNKS,
			    DB_VALUES(DB_INT(first), DB_INT(first | 0xffffffff)), e);
	}
	return ok;
}

static void sweep_end(struct store *s, void *ctx, bool is_ok)
{
	struct sweep *w = ctx;

	if (is_ok) {
		shelf_forget(&s->shelf, w->books.at, w->books.n);
		catalog_forget(&s->catalog, w->series.at, w->series.n, w->services.at,
			       w->services.n);
	}
	pthread_mutex_unlock(&s->shelf.lock);
	pthread_rwlock_unlock(&s->catalog.lock);
}

bool delete_empty(struct store *s, struct err *e)
{
	struct sweep w = { 0 };
	struct writer_task task = { .work = sweep_drop, .after = sweep_end, .ctx = &w };
	bool ok = writer_do(s, &task, e);

	vec_release(&w.series);
	vec_release(&w.services);
	vec_release(&w.books);
	return ok;
}

/* ---- what a query finds */

static bool count(struct search *f, uint64_t *n, struct err *e)
{
	bool ok = true;

	if (f->q->limit) {
		ok = search_run(f, e);
		*n = f->found.n;
		return ok;
	}
	for (size_t i = 0; ok && i < f->npicked; i++) {
		sqlite3_stmt *row = db_bind(f->db, SQL_COUNT,
					    DB_VALUES(DB_INT(f->picked[i].series),
						      DB_INT(f->q->from), DB_INT(f->q->to)),
					    e);

		ok = row && db_step(f->db, row, e) == DB_ROW;
		if (ok) {
			*n += (uint64_t)db_int(row, 0);
			sqlite3_reset(row);
		}
	}
	return ok;
}

/* Those of the newest that belong to one series are dropped together. */
static bool delete_newest(struct search *f, uint64_t *n, struct err *e)
{
	struct deletion *d = xcalloc(1, sizeof(*d));
	bool ok = search_run(f, e);

	for (size_t i = 0; ok && i < f->found.n; i += d->nlist) {
		*d = (struct deletion){ .series = f->picked[f->found.at[i].picked].series,
					.slice = slice_of(f->s),
					.list = &f->found.at[i],
					.nlist = 1 };
		while (i + d->nlist < f->found.n && d->nlist < d->slice &&
		       f->found.at[i + d->nlist].picked == f->found.at[i].picked)
			d->nlist++;
		ok = delete_slice(f->s, d, f->q->stop, e);
		*n += ok ? d->n : 0;
	}
	free(d);
	return ok;
}

static bool delete_found(struct search *f, uint64_t *n, struct err *e)
{
	bool ok = true;

	if (f->q->limit)
		ok = delete_newest(f, n, e);
	for (size_t i = 0; ok && !f->q->limit && i < f->npicked; i++)
		ok = delete_range(f->s, f->picked[i].series, f->q->from, f->q->to, f->q->stop, n,
				  e);
	return ok && delete_empty(f->s, e);
}

bool store_delete(struct store *s, const struct store_query *q, bool dry_run, uint64_t *n,
		  struct err *e)
{
	struct search f = { .s = s, .q = q };
	struct arena scratch = { 0 };
	bool ok;

	*n = 0;
	f.picked = catalog_pick(&s->catalog, q, &scratch, &f.npicked);
	f.db = store_reader(s, e);
	ok = f.db && (dry_run ? count(&f, n, e) : delete_found(&f, n, e));
	store_reader_back(s, f.db);
	vec_release(&f.found);
	arena_release(&scratch);
	return ok;
}
