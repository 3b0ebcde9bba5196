#include "store/keep.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/int.h"
#include "base/stop.h"
#include "store/delete.h"
#include "store/inside.h"
#include "store/rewrite.h"
#include "store/tiers.h"

enum {
	PAUSE_S = 10,
	VACUUM_PAGES = 256, /* given back in one commit, at most */
	CHECKPOINT_MS = 100,
	SPARE_PAGES = 128,  /* that are free may stay */
	MAX_ROUNDS = 10000, /* of making room at a time */
	SUMS_SHARE = 2,	    /* half of the room may go to sums before they are thinned too */
};

size_t keep_piece(const struct store *s)
{
	enum { MOST = 1000, LOG_SHARE = 4 };
	uint64_t pages = s->writer.shares.log_bytes / DB_PAGE_BYTES / LOG_SHARE;

	if (!s->writer.shares.log_bytes || pages > MOST)
		return MOST;
	return pages ? (size_t)pages : 1;
}

#define BOOK_SHARE 0.5 /* of a book that is in use: below that it is rewritten */

struct ids {
	vec(int64_t) at;
};

/* Those that have anything before a time: with many thousands of series, most have not. */
static void list_series(struct store *s, int64_t before, struct ids *ids)
{
	pthread_rwlock_rdlock(&s->catalog.lock);
	for (size_t i = 0; i < s->catalog.series.n; i++)
		if (s->catalog.series.at[i]->counts.nprofiles &&
		    s->catalog.series.at[i]->counts.first < before)
			vec_push(&ids->at, s->catalog.series.at[i]->id);
	pthread_rwlock_unlock(&s->catalog.lock);
}

/* ---- by age */

/* Times at which tiers end, for one service. */
struct cuts {
	int64_t at[NTIERS];  /* of each tier: what is before this goes to the next one */
	bool is_set[NTIERS]; /* or it stays for ever */
	int64_t first;	     /* of the series */
};

/* A tier is kept for at least as long as what is finer, since it is made of that. One that would
 * end with the finer one is not made at all. */
static struct cuts cuts_of(const struct store_keep *keep, int64_t now)
{
	const int64_t ages[NTIERS] = { keep->raw_ns, keep->minute_ns, keep->hour_ns, keep->day_ns };
	struct cuts c = { 0 };
	int64_t age = 0;

	for (enum tier t = TIER_RAW; t < NTIERS && ages[t] > 0; t++) {
		bool is_longer = ages[t] > age;

		if (is_longer)
			age = ages[t];
		else if (t > TIER_RAW)
			c.is_set[t - 1] = false;
		c.is_set[t] = true;
		c.at[t] = tier_start(t >= TIER_HOUR ? TIER_DAY : TIER_HOUR, int_add(now, -age));
	}
	return c;
}

static struct cuts cuts_for(struct store *s, struct rules *rules, int64_t series, int64_t now)
{
	struct store_keep keep = s->params.keep;
	const struct series *live;
	int64_t first = INT64_MAX;
	struct cuts c;

	pthread_rwlock_rdlock(&s->catalog.lock);
	live = catalog_series(&s->catalog, series);
	if (live)
		first = live->counts.first;
	if (live)
		rules_apply(rules, live->service->name, &keep);
	pthread_rwlock_unlock(&s->catalog.lock);
	c = cuts_of(&keep, now);
	c.first = first;
	return c;
}

int64_t keep_cut(struct store *s, struct str service, int64_t now)
{
	struct store_keep keep = s->params.keep;
	struct cuts c;

	rules_apply(&s->rules, service, &keep);
	c = cuts_of(&keep, now);
	return c.is_set[TIER_DAY] ? c.at[TIER_DAY] : INT64_MIN;
}

static bool age_series(struct store *s, int64_t series, int64_t now, struct keep_counts *n,
		       struct err *e)
{
	struct cuts c = cuts_for(s, &s->rules, series, now);

	for (enum tier t = TIER_RAW; t < TIER_DAY; t++)
		if (c.is_set[t] && c.first < c.at[t] &&
		    !keep_thin(s, series, (int)t + 1, c.at[t], n, e))
			return false;
	return !c.is_set[TIER_DAY] || c.first >= c.at[TIER_DAY] ||
	       delete_range(s, series, INT64_MIN, int_add(c.at[TIER_DAY], -1), &s->keeper.stop,
			    &n->ndropped, e);
}

/* ---- what would go */

static bool count_raw(struct db *db, int64_t series, int64_t from, int64_t to, uint64_t *all,
		      uint64_t *bytes, struct err *e)
{
	sqlite3_stmt *row =
		db_bind(db, SQL_COUNT_RAW, DB_VALUES(DB_INT(series), DB_INT(from), DB_INT(to)), e);
	bool ok = row && db_step(db, row, e) == DB_ROW;

	if (ok) {
		*all = (uint64_t)db_int(row, 0);
		*bytes = (uint64_t)db_int(row, 1);
		sqlite3_reset(row);
	}
	return ok;
}

static bool count_kept(struct db *db, int64_t series, int64_t to, uint64_t *n, struct err *e)
{
	sqlite3_stmt *row = db_bind(db, SQL_COUNT_KEPT,
				    DB_VALUES(DB_INT(series), DB_INT(INT64_MIN), DB_INT(to)), e);
	bool ok = row && db_step(db, row, e) == DB_ROW;

	if (ok) {
		*n = (uint64_t)db_int(row, 0);
		sqlite3_reset(row);
	}
	return ok;
}

/* What age_series would do. */
static bool foresee_series(struct db *db, int64_t series, const struct cuts *c,
			   struct store_foreseen *out, struct err *e)
{
	int64_t dropped = c->is_set[TIER_DAY] ? c->at[TIER_DAY] : INT64_MIN, thinned = dropped;
	uint64_t nraw = 0, nbytes = 0, ngone = 0;

	for (enum tier t = TIER_RAW; t < TIER_DAY; t++)
		if (c->is_set[t] && c->at[t] > thinned)
			thinned = c->at[t];
	if (c->first >= thinned)
		return true;
	if (!count_raw(db, series, dropped, thinned - 1, &nraw, &nbytes, e) ||
	    (dropped != INT64_MIN && !count_kept(db, series, dropped - 1, &ngone, e)))
		return false;
	out->nthinned += nraw - nbytes;
	out->ndropped += ngone + nbytes;
	return true;
}

static bool foresee(struct store *s, struct rules *rules, int64_t now, const atomic_bool *stop,
		    struct store_foreseen *out, struct err *e)
{
	struct db *db = store_reader(s, e);
	struct ids ids = { 0 };
	bool ok = db;

	list_series(s, now, &ids);
	for (size_t i = 0; ok && i < ids.at.n; i++) {
		struct cuts c = cuts_for(s, rules, ids.at.at[i], now);
		uint64_t before = out->nthinned + out->ndropped;

		ok = stop_asked(stop) ? err_set(e, ERR_IO, "nobody waits for it any more")
				      : foresee_series(db, ids.at.at[i], &c, out, e);
		out->nseries += out->nthinned + out->ndropped > before;
	}
	vec_release(&ids.at);
	store_reader_back(s, db);
	return ok;
}

bool store_foresee(struct store *s, const struct store_rule_change *change, int64_t now,
		   const atomic_bool *stop, struct store_foreseen *out, struct err *e)
{
	struct rules rules;
	bool is_found, ok;

	*out = (struct store_foreseen){ 0 };
	rules_copy(&rules, &s->rules, change, &is_found);
	ok = !change->is_drop || is_found ||
	     err_set(e, ERR_NOTFOUND, "there is no rule for \"%.*s\"",
		     STR_ARG(change->rule->service));
	ok = ok && foresee(s, &rules, now, stop, out, e);
	rules_release(&rules);
	return ok;
}

/* What is wrong with one series must not keep others from getting old. */
static bool go_on(struct store *s, const struct err *why, bool *is_failed, struct err *e)
{
	if (!*is_failed)
		*e = *why;
	*is_failed = true;
	return !stop_asked(&s->keeper.stop);
}

static bool age(struct store *s, int64_t now, bool *is_less, struct err *e)
{
	struct keep_counts n = { 0 };
	struct ids ids = { 0 };
	bool is_failed = false;

	list_series(s, now, &ids);
	for (size_t i = 0; i < ids.at.n; i++) {
		struct err why;

		if (!age_series(s, ids.at.at[i], now, &n, &why) && !go_on(s, &why, &is_failed, e))
			break;
	}
	vec_release(&ids.at);
	if (n.nthinned)
		store_log(s, "%llu profiles are old and only in sums now (keep-raw)",
			  (unsigned long long)n.nthinned);
	if (n.ndropped)
		store_log(s, "%llu profiles have been dropped, as they are too old (keep-day)",
			  (unsigned long long)n.ndropped);
	*is_less |= n.nthinned || n.ndropped;
	return !is_failed;
}

/* ---- room */

struct vacuum {
	int64_t nfree;
	size_t piece; /* pages in one commit */
};

static bool vacuum_some(struct store *s, struct db *db, void *ctx, struct err *e)
{
	struct vacuum *v = ctx;
	char text[60];

	(void)s;
	if (!db_number(db, SQL_FREE_PAGES, &v->nfree, e))
		return false;
	if (v->nfree <= SPARE_PAGES)
		return true;
	snprintf(text, sizeof(text), "PRAGMA incremental_vacuum(%zu)", v->piece);
	return sqlite3_exec(db->sqlite, text, NULL, NULL, NULL) == SQLITE_OK || db_fail(db, e);
}

/* The file gets shorter when the log is copied to it. */
static void after_vacuum(struct store *s, void *ctx, bool is_ok)
{
	const struct vacuum *v = ctx;

	if (!is_ok || v->nfree > SPARE_PAGES)
		return;
	/* Puts do not wait long for those that read. */
	sqlite3_busy_timeout(s->writer.db->sqlite, CHECKPOINT_MS);
	sqlite3_wal_checkpoint_v2(s->writer.db->sqlite, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
				  NULL);
	sqlite3_busy_timeout(s->writer.db->sqlite, DB_BUSY_MS);
}

/* Gives free pages back to the disk, some at a time. */
static bool vacuum(struct store *s, struct err *e)
{
	size_t piece = keep_piece(s);
	struct vacuum v = { .nfree = INT64_MAX,
			    .piece = piece < VACUUM_PAGES ? piece : VACUUM_PAGES };
	bool ok = true;

	while (ok && v.nfree > SPARE_PAGES && !stop_asked(&s->keeper.stop)) {
		struct writer_task task = { .work = vacuum_some, .after = after_vacuum, .ctx = &v };

		ok = writer_do(s, &task, e);
		if (!ok && e->kind == ERR_LIMIT && v.piece > 1) {
			v.piece /= 2;
			ok = true;
		}
	}
	return ok;
}

/* Which limit is passed; NULL: none. */
static const char *passed_limit(struct store *s, uint64_t *bytes)
{
	const struct store_keep *keep = &s->params.keep;
	int64_t pages = atomic_load(&s->writer.pages_in_use);
	uint64_t free_bytes, reserve;

	/* store_put refuses more before the folder is as large as it may be. Pages that are free
	 * will be used again, so they need not be given back. */
	*bytes = (uint64_t)pages * DB_PAGE_BYTES;
	if (keep->max_bytes && pages > writer_share(&s->writer, s->writer.shares.thin_pages))
		return "max-disk";
	*bytes = store_disk_bytes(s);
	/* What others have filled is not to cost all that there is here: puts are refused then. */
	if (!keep->min_free_bytes || !store_free_bytes(s, &free_bytes, &reserve) ||
	    free_bytes >= keep->min_free_bytes)
		return NULL;
	return *bytes > keep->min_free_bytes - free_bytes ? "min-free" : NULL;
}

/* The first time of a tier, of all series. */
static bool oldest(struct store *s, const struct ids *ids, enum tier tier, int64_t *time,
		   bool *is_there, struct err *e)
{
	struct db *db = store_reader(s, e);
	bool ok = db;

	*is_there = false;
	for (size_t i = 0; ok && i < ids->at.n; i++) {
		struct db_value values[4] = { DB_INT(ids->at.at[i]), DB_INT(tier),
					      DB_INT(INT64_MIN), DB_INT(INT64_MAX) };
		sqlite3_stmt *row;
		enum db_result r;

		if (tier == TIER_RAW) {
			values[1] = DB_INT(INT64_MIN);
			values[2] = DB_INT(INT64_MAX);
		}
		row = db_bind(db, tier == TIER_RAW ? SQL_NEXT_TIME : SQL_NEXT_TIER, values,
			      tier == TIER_RAW ? 3 : 4, e);
		r = row ? db_step(db, row, e) : DB_FAILED;
		ok = r != DB_FAILED;
		if (r != DB_ROW)
			continue;
		if (!*is_there || db_int(row, 0) < *time)
			*time = db_int(row, 0);
		*is_there = true;
		sqlite3_reset(row);
	}
	store_reader_back(s, db);
	return ok;
}

static bool thin_all(struct store *s, enum tier tier, int64_t cut, struct keep_counts *n,
		     struct err *e)
{
	struct ids ids = { 0 };
	bool ok = true;

	list_series(s, cut, &ids);
	for (size_t i = 0; ok && i < ids.at.n; i++)
		ok = keep_thin(s, ids.at.at[i], (int)tier, cut, n, e);
	vec_release(&ids.at);
	return ok;
}

static bool drop_all(struct store *s, int64_t cut, struct keep_counts *n, struct err *e)
{
	struct ids ids = { 0 };
	bool ok = true;

	list_series(s, cut, &ids);
	for (size_t i = 0; ok && i < ids.at.n; i++)
		ok = delete_range(s, ids.at.at[i], INT64_MIN, int_add(cut, -1), &s->keeper.stop,
				  &n->ndropped, e);
	vec_release(&ids.at);
	return ok;
}

static struct counts count_all(struct store *s)
{
	struct counts all = { 0 };

	pthread_rwlock_rdlock(&s->catalog.lock);
	for (size_t i = 0; i < s->catalog.series.n; i++)
		counts_add(&all, &s->catalog.series.at[i]->counts);
	pthread_rwlock_unlock(&s->catalog.lock);
	return all;
}

/* What there is of each tier. */
struct firsts {
	int64_t times[NTIERS];
	bool has[NTIERS];
};

/* Up to where the oldest goes: a sum as a whole, and of profiles a part of a day, so that no more
 * goes than must. INT64_MIN: there is nothing. */
static int64_t next_drop(const struct firsts *f, int64_t last)
{
	enum { PARTS = 8 };
	enum tier of = NTIERS;
	int64_t end, first;

	for (enum tier t = TIER_RAW; t < NTIERS; t++)
		if (f->has[t] && (of == NTIERS || f->times[t] <= f->times[of]))
			of = t;
	if (of == NTIERS)
		return INT64_MIN;
	first = f->times[of];
	if (of != TIER_RAW) {
		of = of == TIER_MINUTE ? TIER_HOUR : of;
		return int_add(tier_start(of, first), tier_length(of));
	}
	end = int_add(tier_start(TIER_DAY, first), tier_length(TIER_DAY));
	if (last < end)
		end = last;
	return end > first ? int_add(first, (end - first) / PARTS + 1) : int_add(first, 1);
}

/* Minutes of a day, up to where there are profiles, too. */
static int64_t end_of_minutes(const struct firsts *f, int64_t open)
{
	int64_t time = f->times[TIER_MINUTE],
		end = int_add(tier_start(TIER_DAY, time), tier_length(TIER_DAY)),
		hour = int_add(tier_start(TIER_HOUR, time), tier_length(TIER_HOUR));

	if (f->has[TIER_RAW] && f->times[TIER_RAW] < end)
		end = tier_start(TIER_HOUR, f->times[TIER_RAW]);
	if (end < hour)
		end = hour;
	return end < open ? end : open;
}

/* The oldest day of profiles becomes hours, so do minutes, that of hours a day; and the oldest
 * goes. Profiles come first as long as they take more than half of the room: else years of sums
 * would leave none to today. */
static bool relieve(struct store *s, int64_t now, uint64_t bytes, struct keep_counts *n,
		    struct err *e)
{
	int64_t open = tier_start(TIER_HOUR, now), end;
	struct counts all = count_all(s);
	struct firsts f = { 0 };
	struct ids ids = { 0 };
	bool ok = true;

	list_series(s, INT64_MAX, &ids);
	for (enum tier t = TIER_RAW; ok && t < NTIERS; t++)
		ok = oldest(s, &ids, t, &f.times[t], &f.has[t], e);
	vec_release(&ids.at);
	if (!ok)
		return false;
	if (f.has[TIER_RAW] && f.times[TIER_RAW] < open && all.bytes > bytes / SUMS_SHARE) {
		end = int_add(tier_start(TIER_DAY, f.times[TIER_RAW]), tier_length(TIER_DAY));
		return thin_all(s, TIER_HOUR, end < open ? end : open, n, e);
	}
	if (f.has[TIER_MINUTE] && f.times[TIER_MINUTE] < open)
		return thin_all(s, TIER_HOUR, end_of_minutes(&f, open), n, e);
	if (f.has[TIER_HOUR] && f.times[TIER_HOUR] < tier_start(TIER_DAY, open)) {
		end = int_add(tier_start(TIER_DAY, f.times[TIER_HOUR]), tier_length(TIER_DAY));
		return thin_all(s, TIER_DAY, end, n, e);
	}
	return drop_all(s, next_drop(&f, all.last), n, e);
}

/* A file that is larger than it may be, as the limit was higher before, or another limit is. */
static bool is_too_large(struct store *s, const char *limit)
{
	return (limit && strcmp(limit, "min-free") == 0) ||
	       (s->writer.shares.pages &&
		atomic_load(&s->writer.pages) > writer_share(&s->writer, s->writer.shares.pages));
}

static bool make_room(struct store *s, int64_t now, struct err *e)
{
	struct keep_counts all = { 0 };
	const char *limit = NULL, *passed;
	uint64_t bytes, nkept;
	bool ok = true;

	for (int i = 0; ok && i < MAX_ROUNDS && (passed = passed_limit(s, &bytes)); i++) {
		limit = passed;
		/* It may be that room has just not been given back. */
		if (i == 0 && strcmp(passed, "min-free") == 0)
			writer_copy_log(s, true);
		ok = !is_too_large(s, passed) || vacuum(s, e);
		if (!ok || !passed_limit(s, &bytes))
			break;
		/* What can be made again goes first. */
		ok = kept_drop_some(s, &nkept, e) &&
		     (nkept || (relieve(s, now, bytes, &all, e) && delete_empty(s, e)));
	}
	ok = ok && (!is_too_large(s, limit) || vacuum(s, e));
	if (all.nthinned || all.ndropped)
		store_log(s, "%s: %llu profiles are only in sums now, %llu have been dropped",
			  limit, (unsigned long long)all.nthinned,
			  (unsigned long long)all.ndropped);
	return ok;
}

/* ---- all */

/* Once a day is enough: it is days that go. */
static bool rewrite_old_books(struct store *s, int64_t now, struct err *e)
{
	int64_t day = tier_start(TIER_DAY, now);
	uint64_t nbooks;

	if (day == s->keeper.last_day)
		return true;
	if (!rewrite_books(s, BOOK_SHARE, true, &nbooks, e))
		return false;
	s->keeper.last_day = day;
	if (nbooks)
		store_log(s, "%llu books, most of which nothing needed any more, are in others now",
			  (unsigned long long)nbooks);
	return true;
}

/* A failure of one part, as of a profile that is damaged, must not keep the next from making room.
 * Returns the first one. */
static bool tidy(struct store *s, int64_t now, struct err *e)
{
	struct keeper *k = &s->keeper;
	int64_t hour = tier_start(TIER_HOUR, now);
	bool is_less = false, is_failed = false;
	struct err why;

	writer_copy_log(s, false);
	if (!keep_make_tiers(s, now, &why) && !go_on(s, &why, &is_failed, e))
		return false;
	if (atomic_exchange(&k->is_age_wanted, false) || hour != k->last_hour) {
		bool is_aged = age(s, now, &is_less, &why) && annotations_age(s, now, &why);

		if (!is_aged && !go_on(s, &why, &is_failed, e))
			return false;
		/* What has failed is tried again. */
		k->last_hour = is_aged ? hour : INT64_MIN;
	}
	if (is_less &&
	    !(rewrite_old_books(s, now, &why) && delete_empty(s, &why) && vacuum(s, &why)) &&
	    !go_on(s, &why, &is_failed, e))
		return false;
	if (!make_room(s, now, &why))
		go_on(s, &why, &is_failed, e);
	return !is_failed;
}

bool store_tidy(struct store *s, int64_t now, struct err *e)
{
	bool ok;

	pthread_mutex_lock(&s->keeper.busy);
	ok = tidy(s, now, e);
	pthread_mutex_unlock(&s->keeper.busy);
	return ok;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* False: it is to end. */
static bool pause_a_while(struct keeper *k)
{
	struct timespec until;
	bool is_stopping;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PAUSE_S;
	pthread_mutex_lock(&k->lock);
	while (!k->is_stopping && !k->is_wanted &&
	       pthread_cond_timedwait(&k->wake, &k->lock, &until) != ETIMEDOUT)
		;
	k->is_wanted = false;
	is_stopping = k->is_stopping;
	pthread_mutex_unlock(&k->lock);
	return !is_stopping;
}

static void *keep_on(void *ctx)
{
	struct store *s = ctx;
	struct err e;

	while (pause_a_while(&s->keeper))
		if (!store_tidy(s, now_ns(), &e) && !stop_asked(&s->keeper.stop))
			store_log(s, "work in the background has failed: %s", e.text);
	return NULL;
}

void keeper_wake(struct store *s)
{
	struct keeper *k = &s->keeper;

	pthread_mutex_lock(&k->lock);
	k->is_wanted = true;
	pthread_cond_signal(&k->wake);
	pthread_mutex_unlock(&k->lock);
}

void keeper_init(struct keeper *k)
{
	k->last_hour = k->last_day = INT64_MIN;
	pthread_mutex_init(&k->lock, NULL);
	pthread_mutex_init(&k->busy, NULL);
	pthread_cond_init(&k->wake, NULL);
}

void keeper_release(struct keeper *k)
{
	pthread_cond_destroy(&k->wake);
	pthread_mutex_destroy(&k->busy);
	pthread_mutex_destroy(&k->lock);
}

bool keeper_start(struct store *s, struct err *e)
{
	struct keeper *k = &s->keeper;

	if (s->params.is_passive)
		return true;
	errno = pthread_create(&k->thread, NULL, keep_on, s);
	if (errno)
		return err_system(e, "pthread_create", "keeper of the store");
	k->has_thread = true;
	return true;
}

void keeper_stop(struct store *s)
{
	struct keeper *k = &s->keeper;

	if (k->has_thread) {
		atomic_store(&k->stop, true);
		pthread_mutex_lock(&k->lock);
		k->is_stopping = true;
		pthread_cond_signal(&k->wake);
		pthread_mutex_unlock(&k->lock);
		pthread_join(k->thread, NULL);
		k->has_thread = false;
	}
}
