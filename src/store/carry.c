/* carry.c - all of a store taken out, and sums put in: for tools that carry it elsewhere. */
#include <stdlib.h>

#include "base/int.h"
#include "store/inside.h"
#include "store/tiers.h"

void store_progress(struct store *s, uint64_t done, uint64_t all)
{
	if (s->params.progress)
		s->params.progress(s->params.progress_ctx, done, all);
}

/* ---- out */

struct carrying {
	struct store *s;
	struct db *db;
	const struct store_carrier *to;
	int64_t done, all;
};

static bool carry_profile(struct carrying *c, sqlite3_stmt *row, struct err *e)
{
	struct str text = db_blob(row, 0);
	struct store_id id;

	if (text.n != sizeof(id.at))
		return err_set(e, ERR_FORMAT, "%s: an id has %zu bytes", c->s->path, text.n);
	memcpy(id.at, text.p, text.n);
	return c->to->profile(c->to->ctx, &id, e);
}

static bool unpack(struct carrying *c, int64_t book, struct str packed, struct arena *a,
		   struct strings *strings, struct profile *p, struct err *e)
{
	struct shelf_book *b = shelf_take(c->s, book, e);
	bool ok;

	if (!b)
		return false;
	pthread_rwlock_rdlock(&b->lock);
	ok = book_unpack(b->book, packed, a, strings, p, e);
	pthread_rwlock_unlock(&b->lock);
	shelf_put_back(c->s, b);
	return ok;
}

static bool carry_window(struct carrying *c, sqlite3_stmt *row, struct err *e)
{
	struct arena a = { 0 };
	struct strings strings;
	struct picked series;
	struct profile p;
	bool ok;

	strings_init(&strings);
	ok = catalog_copy(&c->s->catalog, db_int(row, 0), &a, &series) ||
	     err_set(e, ERR_FORMAT, "%s: series %lld is not there", c->s->path,
		     (long long)db_int(row, 0));
	ok = ok && unpack(c, db_int(row, 3), db_blob(row, 9), &a, &strings, &p, e);
	if (ok) {
		struct store_window w = {
			.service = series.service_name,
			.type = series.type,
			.labels = series.labels,
			.nlabels = series.nlabels,
			.tier = (int)db_int(row, 1),
			.start = db_int(row, 2),
			.has_deltas = db_int(row, 4) & TIER_HAS_DELTAS,
			.is_thinned = db_int(row, 4) & TIER_IS_THINNED,
			.nprofiles = (uint64_t)db_int(row, 5),
			.first = db_int(row, 6),
			.last = db_int(row, 7),
			.duration = db_int(row, 8),
			.until = series.tiers_until,
			.profile = &p,
		};

		ok = c->to->window(c->to->ctx, &w, e);
	}
	strings_release(&strings);
	arena_release(&a);
	return ok;
}

static bool carry_rows(struct carrying *c, enum db_statement which,
		       bool (*carry)(struct carrying *c, sqlite3_stmt *row, struct err *e),
		       struct err *e)
{
	sqlite3_stmt *rows = db_bind(c->db, which, NULL, 0, e);
	enum db_result r = rows ? DB_ROW : DB_FAILED;

	while (r == DB_ROW && (r = db_step(c->db, rows, e)) == DB_ROW) {
		store_progress(c->s, (uint64_t)++c->done, (uint64_t)c->all);
		/* One that is damaged does not keep the others here. */
		if (!carry(c, rows, e) &&
		    !(e->kind == ERR_FORMAT && c->to->damaged(c->to->ctx, e))) {
			sqlite3_reset(rows);
			return false;
		}
	}
	return r == DB_DONE;
}

bool store_carry(struct store *s, const struct store_carrier *to, struct err *e)
{
	struct carrying c = { .s = s, .to = to };
	bool ok;

	c.db = store_reader(s, e);
	ok = c.db && db_number(c.db, SQL_COUNT_ALL, &c.all, e) &&
	     carry_rows(&c, SQL_ALL_IDS, carry_profile, e) &&
	     carry_rows(&c, SQL_ALL_TIERS, carry_window, e);
	store_reader_back(s, c.db);
	return ok;
}

/* ---- in */

struct bringing {
	const struct store_window *w;
	bool is_more, is_there;
	struct series *series;
	struct shelf_book *book;
	struct tier_row row;
};

static bool is_there(struct db *db, const struct bringing *b, bool *there, struct err *e)
{
	sqlite3_stmt *row = db_bind(db, SQL_TIER_WINDOWS,
				    DB_VALUES(DB_INT(b->series->id), DB_INT(b->w->tier),
					      DB_INT(b->w->start), DB_INT(b->w->start)),
				    e);
	enum db_result r = row ? db_step(db, row, e) : DB_FAILED;

	*there = r == DB_ROW;
	if (r == DB_ROW)
		sqlite3_reset(row);
	return r != DB_FAILED;
}

static bool bring(struct store *s, struct db *db, void *ctx, struct err *e)
{
	struct bringing *b = ctx;
	struct picked series = { .series = b->series->id };
	struct tier_window w = { .series = &series,
				 .tier = (enum tier)b->w->tier,
				 .time = b->w->start };
	bool ok;

	if (!b->is_more && !is_there(db, b, &b->is_there, e))
		return false;
	if (b->is_there)
		return true;
	ok = writer_save_series(&s->writer, b->series, e) &&
	     kept_change(db, b->series, b->w->start, true, e) &&
	     writer_save_book(&s->writer, b->book, e);
	if (ok && b->w->until > b->series->tiers_until)
		ok = db_run(db, SQL_SET_UNTIL,
			    DB_VALUES(DB_INT(b->w->until), DB_INT(b->series->id)), e);
	if (!ok)
		return false;
	pthread_rwlock_rdlock(&b->book->lock);
	ok = tier_add(db, b->book->book, &w, &b->row, b->w->is_thinned, e);
	pthread_rwlock_unlock(&b->book->lock);
	return ok;
}

static void note(struct store *s, void *ctx, bool is_ok)
{
	struct bringing *b = ctx;
	struct counts counts = { .nprofiles = b->w->nprofiles,
				 .first = b->w->first,
				 .last = b->w->last };

	if (!is_ok || b->is_there)
		return;
	pthread_rwlock_wrlock(&s->catalog.lock);
	b->series->is_saved = b->series->service->is_saved = true;
	/* Others are counted as profiles. */
	if (b->w->is_thinned) {
		enum tier tier = (enum tier)b->w->tier;

		counts_add(&b->series->counts, &counts);
		catalog_note_thinned(b->series, b->w->tier,
				     int_add(b->w->start, tier_length(tier)));
	}
	catalog_note_change(b->series, b->w->first);
	if (b->w->until > b->series->tiers_until)
		b->series->tiers_until = b->w->until;
	pthread_rwlock_unlock(&s->catalog.lock);
	pthread_mutex_lock(&s->shelf.lock);
	writer_note_book(&s->writer, b->book);
	pthread_mutex_unlock(&s->shelf.lock);
}

static bool pack(struct bringing *b, struct err *e)
{
	const struct profile *p = b->w->profile;
	struct book_head head = { 0 };
	bool ok;

	pthread_rwlock_wrlock(&b->book->lock);
	book_pack(b->book->book, p, &b->row.data);
	ok = book_read_head(b->book->book, buf_view(&b->row.data), &head, e);
	pthread_rwlock_unlock(&b->book->lock);
	b->row.book = b->book->id;
	b->row.head = head.head;
	for (uint32_t t = 0; t < p->ntypes; t++) {
		int64_t total = 0;

		for (uint32_t i = 0; i < p->nsamples; i++)
			total = int_add(total, sample_values(p, &p->samples[i])[t]);
		vec_push(&b->row.totals, total);
	}
	return ok;
}

static bool check_window(const struct store_window *w, struct err *e)
{
	if (w->tier <= TIER_RAW || w->tier >= NTIERS)
		return err_set(e, ERR_FORMAT, "%d is no tier of sums", w->tier);
	if (tier_start((enum tier)w->tier, w->start) != w->start)
		return err_set(e, ERR_FORMAT, "no window begins at %lld", (long long)w->start);
	return true;
}

bool store_put_window(struct store *s, const struct store_window *w, bool is_more, bool *is_put,
		      struct err *e)
{
	struct store_new new = {
		.service = w->service, .type = w->type, .labels = w->labels, .nlabels = w->nlabels
	};
	struct bringing b = { .w = w,
			      .is_more = is_more,
			      .row = { .first = w->first,
				       .last = w->last,
				       .duration = w->duration,
				       .nprofiles = w->nprofiles,
				       .has_deltas = w->has_deltas } };
	struct writer_task task = { .work = bring, .after = note, .ctx = &b };
	struct arena a = { 0 };
	bool ok = check_window(w, e) && (b.series = catalog_enter(&s->catalog, &new, &a, e)) &&
		  (b.book = shelf_current(s, b.series->service, e)) && pack(&b, e) &&
		  writer_do(s, &task, e);

	*is_put = ok && !b.is_there;
	if (b.book)
		shelf_put_back(s, b.book);
	if (b.series)
		catalog_leave(b.series);
	buf_release(&b.row.data);
	vec_release(&b.row.totals);
	arena_release(&a);
	return ok;
}
