/* windows.c - makes sums of windows, and lets them replace what is finer. */
#include <stdlib.h>

#include "base/int.h"
#include "base/stop.h"
#include "store/delete.h"
#include "store/inside.h"
#include "store/keep.h"
#include "store/tiers.h"

#define GRACE ((int64_t)5 * 60 * 1000000000) /* most profiles come within it */
enum { MAX_WINDOWS = 64 };		     /* in one commit */

/* What goes into one commit, of one series. */
struct batch {
	struct store *s;
	struct arena arena;
	struct picked series;
	vec(struct tier_window) windows;
	int64_t from, to; /* changes of this time since it was begun make it worthless */
	bool is_thinning;
	int64_t until; /* sums have been made up to here; 0: as before */
	/* set by the writer */
	bool is_stale;
	uint64_t nprofiles;		/* in the windows */
	uint64_t nraw, nsamples, bytes; /* of profiles that go */
	uint64_t nlost;			/* of them those that are no profiles: they are in no sum */
	vec(struct {
		int64_t book;
		uint64_t n;
	}) books; /* that have fewer profiles */
};

static bool batch_begin(struct batch *b, struct store *s, int64_t series)
{
	struct series *live;

	*b = (struct batch){ .s = s };
	pthread_rwlock_rdlock(&s->catalog.lock);
	live = catalog_series(&s->catalog, series);
	if (live)
		atomic_store(&live->oldest_put, INT64_MAX);
	pthread_rwlock_unlock(&s->catalog.lock);
	return live && catalog_copy(&s->catalog, series, &b->arena, &b->series);
}

static void batch_release(struct batch *b)
{
	for (size_t i = 0; i < b->windows.n; i++)
		tier_window_release(&b->windows.at[i]);
	vec_release(&b->windows);
	vec_release(&b->books);
	arena_release(&b->arena);
}

/* `below`: of what it is the sum. */
static bool batch_add(struct batch *b, enum tier tier, int64_t time, int below, struct err *e)
{
	struct tier_window *w;

	vec_push(&b->windows, (struct tier_window){ .s = b->s,
						    .series = &b->series,
						    .tier = tier,
						    .below = below,
						    .time = time });
	w = &b->windows.at[b->windows.n - 1];
	if (!tier_sum(w, e))
		return false;
	for (size_t i = 0; i < w->rows.n; i++)
		b->nprofiles += w->rows.at[i].nprofiles;
	return true;
}

/* ---- in the writer */

static bool is_changed(struct batch *b)
{
	struct series *live;
	bool is_changed = true;

	pthread_rwlock_rdlock(&b->s->catalog.lock);
	live = catalog_series(&b->s->catalog, b->series.series);
	if (live) {
		int64_t oldest = atomic_load(&live->oldest_put);

		is_changed = oldest <= b->to && oldest < INT64_MAX;
	}
	pthread_rwlock_unlock(&b->s->catalog.lock);
	return is_changed;
}

static bool count_raw(struct batch *b, struct db *db, int64_t from, int64_t to, struct err *e)
{
	sqlite3_stmt *rows =
		db_bind(db, SQL_RANGE_SUMS,
			DB_VALUES(DB_INT(b->series.series), DB_INT(from), DB_INT(to)), e);
	enum db_result r = rows ? DB_ROW : DB_FAILED;

	while (r == DB_ROW && (r = db_step(db, rows, e)) == DB_ROW) {
		vec_reserve(&b->books, 1);
		b->books.at[b->books.n].book = db_int(rows, 0);
		b->books.at[b->books.n++].n = (uint64_t)db_int(rows, 1);
		b->nraw += (uint64_t)db_int(rows, 1);
		if (!db_int(rows, 0))
			b->nlost += (uint64_t)db_int(rows, 1);
		b->nsamples += (uint64_t)db_int(rows, 2);
		b->bytes += (uint64_t)db_int(rows, 3);
	}
	return r == DB_DONE;
}

static bool drop_finer(struct batch *b, struct db *db, const struct tier_window *w, struct err *e)
{
	int64_t to = int_add(w->time, tier_length(w->tier) - 1), series = b->series.series;
	bool ok = count_raw(b, db, w->time, to, e);

	for (enum tier t = TIER_MINUTE; ok && t < w->tier; t++)
		ok = tier_drop(db, series, t, w->time, to, true, e);
	return ok &&
	       db_run(db, SQL_DROP_RANGE_BLOBS,
		      DB_VALUES(DB_INT(series), DB_INT(w->time), DB_INT(to)), e) &&
	       db_run(db, SQL_DROP_RANGE, DB_VALUES(DB_INT(series), DB_INT(w->time), DB_INT(to)),
		      e);
}

static bool save_batch(struct store *s, struct db *db, void *ctx, struct err *e)
{
	struct batch *b = ctx;
	bool ok = true;

	(void)s;
	b->is_stale = is_changed(b);
	if (b->is_stale)
		return true;
	for (size_t i = 0; ok && i < b->windows.n; i++)
		ok = tier_save(db, &b->windows.at[i], b->is_thinning, e) &&
		     (!b->is_thinning || drop_finer(b, db, &b->windows.at[i], e));
	ok = ok && (b->is_thinning ||
		    db_run(db, SQL_DROP_LATE,
			   DB_VALUES(DB_INT(b->series.series), DB_INT(b->from), DB_INT(b->to)), e));
	return ok &&
	       (!b->until || db_run(db, SQL_SET_UNTIL,
				    DB_VALUES(DB_INT(b->until), DB_INT(b->series.series)), e));
}

/* Memory follows. Profiles that are only in sums now are still counted. */
static void note_batch(struct store *s, void *ctx, bool is_ok)
{
	struct batch *b = ctx;
	struct series *live;

	if (!is_ok || b->is_stale)
		return;
	pthread_rwlock_wrlock(&s->catalog.lock);
	live = catalog_series(&s->catalog, b->series.series);
	if (live && b->until)
		live->tiers_until = b->until;
	if (live) {
		live->counts.nsamples -= b->nsamples;
		live->counts.bytes -= b->bytes;
	}
	if (live)
		live->counts.nprofiles -= b->nlost;
	for (size_t i = 0; live && b->is_thinning && i < b->windows.n; i++)
		catalog_note_thinned(
			live, (int)b->windows.at[i].tier,
			int_add(b->windows.at[i].time, tier_length(b->windows.at[i].tier)));
	pthread_rwlock_unlock(&s->catalog.lock);
	pthread_mutex_lock(&s->shelf.lock);
	for (size_t i = 0; i < b->books.n; i++) {
		struct shelf_book *book = shelf_find(&s->shelf, b->books.at[i].book);

		if (book)
			book->nprofiles -= b->books.at[i].n;
	}
	pthread_mutex_unlock(&s->shelf.lock);
	atomic_fetch_add(&s->keeper.nthinned, b->nraw - b->nlost);
	atomic_fetch_add(&s->ndeleted, b->nlost);
}

static bool batch_commit(struct batch *b, struct err *e)
{
	struct writer_task task = { .work = save_batch, .after = note_batch, .ctx = b };

	if (stop_asked(&b->s->keeper.stop))
		return err_set(e, ERR_IO, "the store is being closed");
	return writer_do(b->s, &task, e);
}

/* ---- what there is */

static bool next_time(struct store *s, enum db_statement which, const struct db_value *values,
		      size_t n, int64_t *time, bool *is_there, struct err *e)
{
	struct db *db = store_reader(s, e);
	sqlite3_stmt *row = db ? db_bind(db, which, values, n, e) : NULL;
	enum db_result r = row ? db_step(db, row, e) : DB_FAILED;

	*is_there = r == DB_ROW;
	if (r == DB_ROW) {
		*time = db_int(row, 0);
		sqlite3_reset(row);
	}
	store_reader_back(s, db);
	return r != DB_FAILED;
}

static bool next_profile(struct store *s, int64_t series, int64_t from, int64_t to, int64_t *time,
			 bool *is_there, struct err *e)
{
	return next_time(s, SQL_NEXT_TIME, DB_VALUES(DB_INT(series), DB_INT(from), DB_INT(to)),
			 time, is_there, e);
}

static bool next_window(struct store *s, int64_t series, enum tier tier, int64_t from, int64_t to,
			int64_t *time, bool *is_there, struct err *e)
{
	return next_time(s, SQL_NEXT_TIER,
			 DB_VALUES(DB_INT(series), DB_INT(tier), DB_INT(from), DB_INT(to)), time,
			 is_there, e);
}

/* The first that is finer than the tier. */
static bool next_finer(struct store *s, int64_t series, enum tier tier, int64_t from, int64_t to,
		       int64_t *time, bool *is_there, struct err *e)
{
	bool is_here;
	int64_t here;

	if (!next_profile(s, series, from, to, time, is_there, e))
		return false;
	for (enum tier t = TIER_MINUTE; t < tier; t++) {
		if (!next_window(s, series, t, from, to, &here, &is_here, e))
			return false;
		if (is_here && (!*is_there || here < *time))
			*time = here;
		*is_there |= is_here;
	}
	return true;
}

static bool is_thinned(struct store *s, int64_t series, enum tier tier, int64_t time,
		       bool *is_thinned, struct err *e)
{
	struct db *db = store_reader(s, e);
	sqlite3_stmt *row =
		db ? db_bind(db, SQL_TIER_WINDOWS,
			     DB_VALUES(DB_INT(series), DB_INT(tier), DB_INT(time), DB_INT(time)), e)
		   : NULL;
	enum db_result r = row ? db_step(db, row, e) : DB_FAILED;

	*is_thinned = r == DB_ROW && db_int(row, 1) >= TIER_IS_THINNED;
	if (r == DB_ROW)
		sqlite3_reset(row);
	store_reader_back(s, db);
	return r != DB_FAILED;
}

/* ---- sums */

static bool add_unless_thinned(struct batch *b, enum tier tier, int64_t time, struct err *e)
{
	bool is_there;

	return is_thinned(b->s, b->series.series, tier, time, &is_there, e) &&
	       (is_there || batch_add(b, tier, time, (int)tier, e));
}

/* Hours of a day between two times, and the day, if it has ended. */
static bool make_day(struct store *s, int64_t series, int64_t from, int64_t to, int64_t until,
		     bool *is_stale, struct err *e)
{
	int64_t day = tier_start(TIER_DAY, from), day_end = int_add(day, tier_length(TIER_DAY)),
		time = tier_start(TIER_HOUR, from);
	struct batch b;
	bool ok = true, is_there = true;

	*is_stale = !batch_begin(&b, s, series);
	b.from = time;
	b.to = to;
	b.until = to + 1;
	while (ok && !*is_stale) {
		ok = next_profile(s, series, time, to, &time, &is_there, e);
		if (!ok || !is_there)
			break;
		time = tier_start(TIER_HOUR, time);
		ok = add_unless_thinned(&b, TIER_HOUR, time, e);
		time = int_add(time, tier_length(TIER_HOUR));
	}
	if (ok && day_end <= until && b.windows.n)
		ok = add_unless_thinned(&b, TIER_DAY, day, e);
	ok = ok && (*is_stale || batch_commit(&b, e));
	*is_stale |= b.is_stale;
	batch_release(&b);
	return ok;
}

/* New windows of a series, up to `until`. */
static bool make_series(struct store *s, int64_t series, int64_t from, int64_t until, struct err *e)
{
	bool ok = true, is_there = true, is_stale = false;
	int64_t time = from;

	while (ok && !is_stale && time < until) {
		int64_t end;

		ok = next_profile(s, series, time, until - 1, &time, &is_there, e);
		if (!ok || !is_there)
			break;
		end = int_add(tier_start(TIER_DAY, time), tier_length(TIER_DAY));
		if (end > until)
			end = until;
		ok = make_day(s, series, time, end - 1, until, &is_stale, e);
		time = end;
	}
	return ok;
}

/* An hour that has changed, and its day. */
static bool make_again(struct store *s, int64_t series, int64_t time, int64_t hour_end,
		       struct err *e)
{
	int64_t hour = tier_start(TIER_HOUR, time), day = tier_start(TIER_DAY, time);
	struct batch b;
	bool ok = true, is_late;

	if (!batch_begin(&b, s, series)) {
		batch_release(&b);
		return true;
	}
	b.from = hour;
	b.to = hour_end;
	is_late = hour_end < b.series.tiers_until;
	if (is_late)
		ok = add_unless_thinned(&b, TIER_HOUR, hour, e);
	if (ok && is_late && int_add(day, tier_length(TIER_DAY)) <= b.series.tiers_until)
		ok = add_unless_thinned(&b, TIER_DAY, day, e);
	ok = ok && (batch_commit(&b, e) || e->kind == ERR_LIMIT);
	batch_release(&b);
	return ok;
}

/* Windows that have changed, one after the other, as there are few. */
static bool make_late(struct store *s, struct err *e)
{
	int64_t series = 0, time = INT64_MIN;
	bool ok = true, is_there = true;

	while (ok && !stop_asked(&s->keeper.stop)) {
		struct db *db = store_reader(s, e);
		sqlite3_stmt *row =
			db ? db_bind(db, SQL_LATE, DB_VALUES(DB_INT(series), DB_INT(time)), e)
			   : NULL;
		enum db_result r = row ? db_step(db, row, e) : DB_FAILED;
		int64_t hour_end;

		is_there = r == DB_ROW;
		if (is_there) {
			series = db_int(row, 0);
			time = db_int(row, 1);
			sqlite3_reset(row);
		}
		store_reader_back(s, db);
		if (!is_there)
			return r == DB_DONE;
		hour_end = int_add(tier_start(TIER_HOUR, time), tier_length(TIER_HOUR) - 1);
		ok = make_again(s, series, time, hour_end, e);
		time = hour_end;
	}
	return ok;
}

struct todo {
	int64_t series, from;
};

bool keep_make_tiers(struct store *s, int64_t now, struct err *e)
{
	int64_t until = tier_start(TIER_HOUR, now < INT64_MIN + GRACE ? INT64_MIN : now - GRACE);
	vec(struct todo) todo = { 0 };
	struct err ignored;
	bool ok = true;

	pthread_rwlock_rdlock(&s->catalog.lock);
	for (size_t i = 0; i < s->catalog.series.n; i++) {
		const struct series *series = s->catalog.series.at[i];

		if (series->tiers_until < until && series->counts.nprofiles &&
		    series->counts.last >= series->tiers_until)
			vec_push(&todo, (struct todo){ series->id, series->tiers_until });
	}
	pthread_rwlock_unlock(&s->catalog.lock);
	for (size_t i = 0; i < todo.n && !stop_asked(&s->keeper.stop); i++) {
		struct err why;

		/* One that is damaged does not take others with it; and if there is no room for
		 * sums, single profiles are read instead. */
		if (make_series(s, todo.at[i].series, todo.at[i].from, until, &why) ||
		    why.kind == ERR_LIMIT)
			continue;
		if (ok)
			*e = why;
		ok = false;
	}
	vec_release(&todo);
	return make_late(s, ok ? e : &ignored) && ok;
}

/* ---- thinning */

/* Where thinning is. */
struct thinning {
	struct store *s;
	int64_t series, cut, time;
	enum tier tier;
	size_t piece; /* profiles in one commit, and windows: one at least */
	bool is_there;
	uint64_t *nthinned, *ndropped;
};

static bool fill(struct thinning *t, struct batch *b, struct err *e)
{
	bool ok = true;

	b->is_thinning = true;
	b->from = t->time;
	while (ok && b->windows.n < MAX_WINDOWS && b->windows.n < t->piece &&
	       b->nprofiles < t->piece) {
		ok = next_finer(t->s, t->series, t->tier, t->time, int_add(t->cut, -1), &t->time,
				&t->is_there, e);
		if (!ok || !t->is_there)
			break;
		t->time = tier_start(t->tier, t->time);
		ok = batch_add(b, t->tier, t->time, (int)t->tier + 1, e);
		t->time = int_add(t->time, tier_length(t->tier));
	}
	b->to = int_add(t->time, -1);
	return ok;
}

/* One commit. False: it is gone, or `t->time` is where it was. */
static bool thin_piece(struct thinning *t, struct err *e)
{
	int64_t begin = t->time;
	struct batch b;
	bool ok;

	if (!batch_begin(&b, t->s, t->series)) {
		batch_release(&b);
		t->is_there = false;
		return true;
	}
	ok = fill(t, &b, e) && (!b.windows.n || batch_commit(&b, e));
	if (ok && !b.is_stale) {
		*t->nthinned += b.nraw - b.nlost;
		*t->ndropped += b.nlost;
	}
	batch_release(&b);
	if (!ok)
		t->time = begin;
	return ok;
}

/* One window alone can neither be summed up, as it is damaged, nor does what replaces it fit the
 * log. It must not keep all that is old for ever. */
static bool give_up_window(struct thinning *t, const struct err *why, struct err *e)
{
	uint64_t n = 0;
	int64_t end;
	bool ok = next_finer(t->s, t->series, t->tier, t->time, int_add(t->cut, -1), &t->time,
			     &t->is_there, e);

	if (!ok || !t->is_there)
		return ok;
	t->time = tier_start(t->tier, t->time);
	end = int_add(t->time, tier_length(t->tier) - 1);
	ok = delete_range(t->s, t->series, t->time, end, &t->s->keeper.stop, &n, e);
	t->time = int_add(end, 1);
	*t->ndropped += n;
	if (n)
		store_log(t->s,
			  "%llu profiles of series %lld cannot be summed up and are dropped: %s",
			  (unsigned long long)n, (long long)t->series, why->text);
	return ok;
}

bool keep_thin(struct store *s, int64_t series, int tier, int64_t cut, struct keep_counts *n,
	       struct err *e)
{
	size_t most = keep_piece(s);
	struct thinning t = { .s = s,
			      .series = series,
			      .cut = cut,
			      .time = INT64_MIN,
			      .tier = (enum tier)tier,
			      .piece = most,
			      .is_there = true,
			      .nthinned = &n->nthinned,
			      .ndropped = &n->ndropped };

	while (t.is_there) {
		struct err why;

		if (thin_piece(&t, &why)) {
			t.piece = t.piece < most ? t.piece * 2 : most;
			continue;
		}
		t.is_there = true;
		if (why.kind == ERR_IO) {
			*e = why;
			return false;
		}
		if (t.piece == 1 && !give_up_window(&t, &why, e))
			return false;
		t.piece = why.kind == ERR_LIMIT && t.piece > 1 ? t.piece / 2 : 1;
	}
	return true;
}
