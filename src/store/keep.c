#include "store/keep.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/int.h"
#include "base/stop.h"
#include "store/delete.h"
#include "store/inside.h"
#include "store/tiers.h"

enum {
	PAUSE_S = 10,
	VACUUM_PAGES = 256, /* given back in one commit */
	CHECKPOINT_MS = 100,
	SPARE_PAGES = 128,  /* that are free may stay */
	MAX_ROUNDS = 10000, /* of making room at a time */
	SUMS_SHARE = 2,	    /* half of the room may go to sums before they are thinned too */
};

struct ids {
	vec(int64_t) at;
};

static void list_series(struct store *s, struct ids *ids)
{
	pthread_rwlock_rdlock(&s->catalog.lock);
	for (size_t i = 0; i < s->catalog.series.n; i++)
		if (s->catalog.series.at[i]->counts.nprofiles)
			vec_push(&ids->at, s->catalog.series.at[i]->id);
	pthread_rwlock_unlock(&s->catalog.lock);
}

/* ---- by age */

static struct store_keep keep_of(struct store *s, int64_t series)
{
	struct store_keep keep = s->params.keep;
	const struct series *live;

	pthread_rwlock_rdlock(&s->catalog.lock);
	live = catalog_series(&s->catalog, series);
	if (live && live->service->has_keep)
		keep = live->service->keep;
	pthread_rwlock_unlock(&s->catalog.lock);
	return keep;
}

/* What a tier keeps goes to the next one when it is old; that may be of no age already. */
static bool age_series(struct store *s, int64_t series, int64_t now, uint64_t *nthinned,
		       uint64_t *ndropped, struct err *e)
{
	struct store_keep keep = keep_of(s, series);
	const int64_t ages[] = { keep.raw_ns, keep.minute_ns, keep.hour_ns };

	for (enum tier t = TIER_MINUTE; t < NTIERS; t++) {
		int64_t age = ages[t - 1];
		int64_t cut = tier_start(t == TIER_DAY ? TIER_DAY : TIER_HOUR, int_add(now, -age));

		if (age > 0 && !keep_thin(s, series, (int)t, cut, nthinned, e))
			return false;
	}
	return keep.day_ns <= 0 ||
	       delete_range(s, series, INT64_MIN,
			    int_add(tier_start(TIER_DAY, int_add(now, -keep.day_ns)), -1),
			    &s->keeper.stop, ndropped, e);
}

static bool age(struct store *s, int64_t now, bool *is_less, struct err *e)
{
	uint64_t nthinned = 0, ndropped = 0;
	struct ids ids = { 0 };
	bool ok = true;

	list_series(s, &ids);
	for (size_t i = 0; ok && i < ids.at.n; i++)
		ok = age_series(s, ids.at.at[i], now, &nthinned, &ndropped, e);
	vec_release(&ids.at);
	if (nthinned)
		store_log(s, "%llu profiles are old and only in sums now (keep-raw)",
			  (unsigned long long)nthinned);
	if (ndropped)
		store_log(s, "%llu profiles have been dropped, as they are too old (keep-day)",
			  (unsigned long long)ndropped);
	*is_less |= nthinned || ndropped;
	return ok;
}

/* ---- room */

struct vacuum {
	int64_t nfree, npages;
};

static bool pragma_number(struct db *db, const char *text, int64_t *number, struct err *e)
{
	sqlite3_stmt *row;
	bool ok;

	if (sqlite3_prepare_v2(db->sqlite, text, -1, &row, NULL) != SQLITE_OK)
		return db_fail(db, e);
	ok = sqlite3_step(row) == SQLITE_ROW || db_fail(db, e);
	if (ok)
		*number = db_int(row, 0);
	sqlite3_finalize(row);
	return ok;
}

static bool vacuum_some(struct store *s, struct db *db, void *ctx, struct err *e)
{
	struct vacuum *v = ctx;
	char text[60];

	(void)s;
	if (!pragma_number(db, "PRAGMA freelist_count", &v->nfree, e) ||
	    !pragma_number(db, "PRAGMA page_count", &v->npages, e))
		return false;
	if (v->nfree <= SPARE_PAGES)
		return true;
	snprintf(text, sizeof(text), "PRAGMA incremental_vacuum(%d)", VACUUM_PAGES);
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
	struct vacuum v = { .nfree = INT64_MAX };
	bool ok = true;

	while (ok && v.nfree > SPARE_PAGES && !stop_asked(&s->keeper.stop)) {
		struct writer_task task = { .work = vacuum_some, .after = after_vacuum, .ctx = &v };

		ok = writer_do(s, &task, e);
	}
	return ok;
}

/* Which limit is passed; NULL: none. */
static const char *passed_limit(struct store *s, uint64_t *bytes)
{
	const struct store_keep *keep = &s->params.keep;
	uint64_t free_bytes, reserve;

	*bytes = store_disk_bytes(s);
	/* store_put refuses more before the folder is as large as it may be. */
	if (keep->max_bytes && *bytes > keep->max_bytes / 4 * 3)
		return "max-disk";
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

struct relief {
	uint64_t nthinned, ndropped;
};

static bool thin_all(struct store *s, const struct ids *ids, enum tier tier, int64_t cut,
		     struct relief *relief, struct err *e)
{
	bool ok = true;

	for (size_t i = 0; ok && i < ids->at.n; i++)
		ok = keep_thin(s, ids->at.at[i], (int)tier, cut, &relief->nthinned, e);
	return ok;
}

static bool drop_all(struct store *s, const struct ids *ids, int64_t cut, struct relief *relief,
		     struct err *e)
{
	bool ok = true;

	for (size_t i = 0; ok && i < ids->at.n; i++)
		ok = delete_range(s, ids->at.at[i], INT64_MIN, int_add(cut, -1), &s->keeper.stop,
				  &relief->ndropped, e);
	return ok;
}

static uint64_t raw_bytes(struct store *s)
{
	uint64_t bytes = 0;

	pthread_rwlock_rdlock(&s->catalog.lock);
	for (size_t i = 0; i < s->catalog.series.n; i++)
		bytes += s->catalog.series.at[i]->counts.bytes;
	pthread_rwlock_unlock(&s->catalog.lock);
	return bytes;
}

/* The oldest day of profiles becomes hours, that of hours a day; and the oldest day goes. Profiles
 * come first as long as they take more than half of the room: else years of sums would leave none
 * to today. */
static bool relieve(struct store *s, int64_t now, uint64_t bytes, struct relief *relief,
		    struct err *e)
{
	int64_t open = tier_start(TIER_HOUR, now), times[NTIERS] = { 0 }, first = INT64_MAX;
	bool has[NTIERS] = { false }, ok = true;
	struct ids ids = { 0 };

	list_series(s, &ids);
	for (enum tier t = TIER_RAW; ok && t < NTIERS; t++) {
		ok = oldest(s, &ids, t, &times[t], &has[t], e);
		if (ok && has[t] && times[t] < first)
			first = times[t];
	}
	if (ok && has[TIER_RAW] && times[TIER_RAW] < open && raw_bytes(s) > bytes / SUMS_SHARE) {
		int64_t end = int_add(tier_start(TIER_DAY, times[TIER_RAW]), tier_length(TIER_DAY));

		ok = thin_all(s, &ids, TIER_HOUR, end < open ? end : open, relief, e);
	} else if (ok && has[TIER_HOUR] && times[TIER_HOUR] < tier_start(TIER_DAY, open)) {
		int64_t end =
			int_add(tier_start(TIER_DAY, times[TIER_HOUR]), tier_length(TIER_DAY));

		ok = thin_all(s, &ids, TIER_DAY, end, relief, e);
	} else if (ok && first < INT64_MAX) {
		ok = drop_all(s, &ids, int_add(tier_start(TIER_DAY, first), tier_length(TIER_DAY)),
			      relief, e);
	}
	vec_release(&ids.at);
	return ok;
}

static bool make_room(struct store *s, int64_t now, struct err *e)
{
	struct relief all = { 0 };
	const char *limit = NULL, *passed;
	uint64_t bytes;
	bool ok = true;

	for (int i = 0; ok && i < MAX_ROUNDS && (passed = passed_limit(s, &bytes)); i++) {
		limit = passed;
		/* It may be that room has just not been given back. */
		ok = vacuum(s, e);
		if (!ok || !passed_limit(s, &bytes))
			break;
		ok = relieve(s, now, bytes, &all, e) && delete_empty(s, e) && vacuum(s, e);
	}
	if (limit && (all.nthinned || all.ndropped))
		store_log(s, "%s: %llu profiles are only in sums now, %llu have been dropped",
			  limit, (unsigned long long)all.nthinned,
			  (unsigned long long)all.ndropped);
	return ok;
}

/* ---- all */

static bool tidy(struct store *s, int64_t now, struct err *e)
{
	struct keeper *k = &s->keeper;
	int64_t hour = tier_start(TIER_HOUR, now);
	bool is_less = false;

	if (!keep_make_tiers(s, now, e))
		return false;
	if (hour != k->last_hour && !age(s, now, &is_less, e))
		return false;
	k->last_hour = hour;
	if (is_less && !(delete_empty(s, e) && vacuum(s, e)))
		return false;
	return make_room(s, now, e);
}

bool store_tidy(struct store *s, int64_t now, struct err *e)
{
	bool ok;

	pthread_mutex_lock(&s->keeper.busy);
	ok = tidy(s, now, e);
	pthread_mutex_unlock(&s->keeper.busy);
	return ok;
}

bool store_keep_service(struct store *s, struct str service, const struct store_keep *keep,
			struct err *e)
{
	bool is_found = false;

	pthread_rwlock_wrlock(&s->catalog.lock);
	for (size_t i = 0; i < s->catalog.services.n; i++)
		if (str_eq(s->catalog.services.at[i]->name, service)) {
			s->catalog.services.at[i]->keep = *keep;
			s->catalog.services.at[i]->has_keep = is_found = true;
		}
	pthread_rwlock_unlock(&s->catalog.lock);
	return is_found ||
	       err_set(e, ERR_NOTFOUND, "there is no service \"%.*s\"", STR_ARG(service));
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
	k->last_hour = INT64_MIN;
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
