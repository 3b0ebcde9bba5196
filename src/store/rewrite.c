#include "store/rewrite.h"

#include <stdlib.h>
#include <time.h>

#include "base/stop.h"
#include "base/vec.h"
#include "store/tiers.h"
#include "store/usage.h"

enum { SLICE = 200 }; /* rows in a commit */

/* A profile, or with a tier a sum, that goes to another book. */
struct moved {
	enum tier tier;
	int64_t series, time, row;
	uint32_t old_head;
	bool is_thinned, is_done;
	size_t old_bytes;
	struct tier_row to; /* of a profile only head and data */
};

struct moving {
	struct store *s;
	struct shelf_book *from, *to;
	vec(struct moved) rows;
	/* the last row that was looked at */
	int64_t series, time, row;
	enum tier tier;
	uint32_t head;
	uint64_t ndamaged;
};

static void drop_rows(struct moving *m)
{
	for (size_t i = 0; i < m->rows.n; i++) {
		buf_release(&m->rows.at[i].to.data);
		vec_release(&m->rows.at[i].to.totals);
	}
	m->rows.n = 0;
}

/* ---- reading */

/* The same, of the other book. */
static bool repack(struct moving *m, struct str packed, struct tier_row *to)
{
	struct arena a = { 0 };
	struct strings strings;
	struct profile p;
	struct book_head head = { 0 };
	struct err ignored;
	bool ok;

	strings_init(&strings);
	pthread_rwlock_rdlock(&m->from->lock);
	ok = book_unpack(m->from->book, packed, &a, &strings, &p, &ignored);
	pthread_rwlock_unlock(&m->from->lock);
	if (ok) {
		pthread_rwlock_wrlock(&m->to->lock);
		book_pack(m->to->book, &p, &to->data);
		ok = book_read_head(m->to->book, buf_view(&to->data), &head, &ignored);
		pthread_rwlock_unlock(&m->to->lock);
		to->book = m->to->id;
		to->head = head.head;
	}
	strings_release(&strings);
	arena_release(&a);
	return ok;
}

/* What is damaged stays where it is. */
static void add_row(struct moving *m, struct moved *row, struct str packed)
{
	row->old_bytes = packed.n;
	if (repack(m, packed, &row->to)) {
		vec_push(&m->rows, *row);
		return;
	}
	m->ndamaged++;
	buf_release(&row->to.data);
	vec_release(&row->to.totals);
}

static void add_profile(struct moving *m, sqlite3_stmt *row)
{
	struct moved moved = { .series = m->series = db_int(row, 0),
			       .time = m->time = db_int(row, 1),
			       .row = m->row = db_int(row, 2) };

	add_row(m, &moved, db_blob(row, 3));
}

static void add_sum(struct moving *m, sqlite3_stmt *row)
{
	struct str totals = db_blob(row, 10);
	struct moved moved = {
		.series = m->series = db_int(row, 0),
		.tier = m->tier = (enum tier)db_int(row, 1),
		.time = m->time = db_int(row, 2),
		.old_head = m->head = (uint32_t)db_int(row, 3),
		.row = db_int(row, 4),
		.is_thinned = db_int(row, 5) & TIER_IS_THINNED,
		.to = { .has_deltas = db_int(row, 5) & TIER_HAS_DELTAS,
			.nprofiles = (uint64_t)db_int(row, 6),
			.first = db_int(row, 7),
			.last = db_int(row, 8),
			.duration = db_int(row, 9) },
	};

	for (size_t i = 0; i < totals.n / sizeof(int64_t); i++) {
		vec_push(&moved.to.totals, 0);
		memcpy(&moved.to.totals.at[i], totals.p + i * sizeof(int64_t), sizeof(int64_t));
	}
	add_row(m, &moved, db_blob(row, 11));
}

/* The next rows of the book; *n of them were there. */
static bool read_slice(struct moving *m, bool are_sums, size_t *n, struct err *e)
{
	struct db *db = store_reader(m->s, e);
	sqlite3_stmt *rows;
	enum db_result r;

	*n = 0;
	if (!db)
		return false;
	rows = are_sums ? db_bind(db, SQL_BOOK_TIERS,
				  DB_VALUES(DB_INT(m->from->id), DB_INT(m->series), DB_INT(m->tier),
					    DB_INT(m->time), DB_INT(m->head), DB_INT(SLICE)),
				  e)
			: db_bind(db, SQL_BOOK_PROFILES,
				  DB_VALUES(DB_INT(m->from->id), DB_INT(m->series), DB_INT(m->time),
					    DB_INT(m->row), DB_INT(SLICE)),
				  e);
	r = rows ? DB_ROW : DB_FAILED;
	while (r == DB_ROW && (r = db_step(db, rows, e)) == DB_ROW) {
		(are_sums ? add_sum : add_profile)(m, rows);
		++*n;
	}
	store_reader_back(m->s, db);
	return r == DB_DONE;
}

/* ---- within a commit */

static bool save_profile(struct moving *m, struct db *db, struct moved *x, struct err *e)
{
	if (!db_run(db, SQL_MOVE_PROFILE,
		    DB_VALUES(DB_INT(m->to->id), DB_INT(x->to.head), DB_INT(x->to.data.n),
			      DB_INT(x->series), DB_INT(x->time), DB_INT(x->row),
			      DB_INT(m->from->id)),
		    e))
		return false;
	/* It may be gone meanwhile. */
	x->is_done = sqlite3_changes(db->sqlite) == 1;
	return !x->is_done || db_run(db, SQL_MOVE_BLOB,
				     DB_VALUES(DB_BLOB(buf_view(&x->to.data)), DB_INT(x->row)), e);
}

static bool save_sum(struct moving *m, struct db *db, struct moved *x, struct err *e)
{
	struct picked series = { .series = x->series };
	struct tier_window w = { .series = &series, .tier = x->tier, .time = x->time };
	bool ok;

	if (!db_run(db, SQL_DROP_TIER,
		    DB_VALUES(DB_INT(x->series), DB_INT(x->tier), DB_INT(x->time),
			      DB_INT(m->from->id), DB_INT(x->old_head), DB_INT(x->row)),
		    e))
		return false;
	if (sqlite3_changes(db->sqlite) != 1)
		return true;
	pthread_rwlock_rdlock(&m->to->lock);
	ok = db_run(db, SQL_DROP_TIER_BLOB, DB_VALUES(DB_INT(x->row)), e) &&
	     tier_add(db, m->to->book, &w, &x->to, x->is_thinned, e);
	pthread_rwlock_unlock(&m->to->lock);
	return ok;
}

static bool save_slice(struct store *s, struct db *db, void *ctx, struct err *e)
{
	struct moving *m = ctx;
	bool ok = writer_save_book(&s->writer, m->to, e);

	for (size_t i = 0; ok && i < m->rows.n; i++)
		ok = (m->rows.at[i].tier ? save_sum : save_profile)(m, db, &m->rows.at[i], e);
	return ok;
}

/* Memory follows. */
static void note_slice(struct store *s, void *ctx, bool is_ok)
{
	struct moving *m = ctx;
	uint64_t ndone = 0;

	if (!is_ok)
		return;
	pthread_rwlock_wrlock(&s->catalog.lock);
	for (size_t i = 0; i < m->rows.n; i++) {
		struct series *series = catalog_series(&s->catalog, m->rows.at[i].series);

		if (series && m->rows.at[i].is_done)
			series->counts.bytes += m->rows.at[i].to.data.n - m->rows.at[i].old_bytes;
		ndone += m->rows.at[i].is_done;
	}
	pthread_rwlock_unlock(&s->catalog.lock);
	pthread_mutex_lock(&s->shelf.lock);
	m->from->nprofiles -= ndone;
	m->to->nprofiles += ndone;
	m->from->left_at = time(NULL);
	writer_note_book(&s->writer, m->to);
	pthread_mutex_unlock(&s->shelf.lock);
}

/* ---- a book */

static bool move_rows(struct moving *m, bool are_sums, struct err *e)
{
	struct store *s = m->s;
	bool ok = true;
	size_t n = SLICE;

	m->series = m->time = m->row = INT64_MIN;
	m->tier = TIER_RAW;
	m->head = 0;
	while (ok && n == SLICE) {
		struct writer_task task = { .work = save_slice, .after = note_slice, .ctx = m };

		if (stop_asked(&s->keeper.stop))
			return err_set(e, ERR_IO, "the store is being closed");
		m->to = shelf_current(s, m->from->service, e);
		ok = m->to && read_slice(m, are_sums, &n, e) &&
		     (!m->rows.n || writer_do(s, &task, e));
		drop_rows(m);
		if (m->to)
			shelf_put_back(s, m->to);
	}
	return ok;
}

static bool rewrite(struct store *s, struct shelf_book *from, struct err *e)
{
	struct moving m = { .s = s, .from = from };
	bool ok;

	shelf_close(&s->shelf, from);
	ok = move_rows(&m, false, e) && move_rows(&m, true, e);
	vec_release(&m.rows);
	if (ok && m.ndamaged)
		store_log(s, "%s: %llu profiles or sums are damaged; `kiln store check` tells more",
			  s->path, (unsigned long long)m.ndamaged);
	return ok;
}

static bool add_usage(struct db *db, enum db_statement which, int64_t book, struct book_usage *x,
		      bool *is_damaged, struct err *e)
{
	sqlite3_stmt *rows = db_bind(db, which, DB_VALUES(DB_INT(book)), e);
	enum db_result r = rows ? DB_ROW : DB_FAILED;
	struct err ignored;

	while (r == DB_ROW && (r = db_step(db, rows, e)) == DB_ROW)
		*is_damaged |= !book_usage_add(x, db_blob(rows, 0), &ignored);
	return r == DB_DONE;
}

/* How much of it is in use; of what has something damaged, all. */
static bool find_share(struct store *s, struct shelf_book *b, double *share, struct err *e)
{
	struct db *db = store_reader(s, e);
	struct book_usage *x;
	bool ok, is_damaged = false;

	if (!db)
		return false;
	pthread_rwlock_rdlock(&b->lock);
	x = book_usage_new(b->book);
	ok = add_usage(db, SQL_BOOK_BLOBS, b->id, x, &is_damaged, e) &&
	     add_usage(db, SQL_BOOK_TIER_BLOBS, b->id, x, &is_damaged, e);
	*share = is_damaged ? 1 : book_usage_share(x);
	book_usage_free(x);
	pthread_rwlock_unlock(&b->lock);
	store_reader_back(s, db);
	return ok;
}

/* ---- all */

struct book_ids {
	vec(int64_t) at;
};

static void list_books(struct store *s, bool is_online, struct book_ids *ids)
{
	pthread_mutex_lock(&s->shelf.lock);
	for (size_t i = 0; i < s->shelf.books.n; i++) {
		const struct shelf_book *b = s->shelf.books.at[i];

		if (!is_online || (b != b->service->book && !b->nprofiles && !b->left_at))
			vec_push(&ids->at, b->id);
	}
	pthread_mutex_unlock(&s->shelf.lock);
}

bool rewrite_books(struct store *s, double share, bool is_online, uint64_t *nbooks, struct err *e)
{
	struct book_ids ids = { 0 };
	bool ok = true;

	*nbooks = 0;
	list_books(s, is_online, &ids);
	for (size_t i = 0; ok && i < ids.at.n && !stop_asked(&s->keeper.stop); i++) {
		struct shelf_book *b = shelf_take(s, ids.at.at[i], e);
		double used = 1;

		if (!b && e->kind == ERR_NOTFOUND)
			continue;
		store_progress(s, i, ids.at.n);
		ok = b && find_share(s, b, &used, e);
		if (ok && used < share) {
			ok = rewrite(s, b, e);
			++*nbooks;
		}
		if (b)
			shelf_put_back(s, b);
	}
	vec_release(&ids.at);
	return ok;
}
