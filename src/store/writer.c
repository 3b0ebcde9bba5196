#include "store/writer.h"

#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "store/inside.h"
#include "store/tiers.h"

enum {
	MAX_BATCH = 1024,
	CHECKPOINT_PAGES = 4096, /* the log is copied to the database when it is so long */
	RESTART_PAGES = 8192,	 /* then it is begun anew, even if readers must be waited for */
	RESTART_MS = 200,	 /* for so long */
	MIN_PAGES = 32,
	SMALL_CHUNKS = 64,
	MAX_SMALL_CHUNKS = 4096,
	LOG_PARTS = 4, /* puts of one commit, with a limit of the log, and how often it is copied */
};

/* ---- one profile */

bool writer_save_series(struct writer *w, struct series *series, struct err *e)
{
	struct service *service = series->service;

	if (!service->is_saved && service->saving != w->ncommit) {
		service->saving = w->ncommit;
		if (!db_run(w->db, SQL_NEW_SERVICE,
			    DB_VALUES(DB_INT(service->id), DB_BLOB(service->name)), e))
			return false;
	}
	if (!series->is_saved && series->saving != w->ncommit) {
		series->saving = w->ncommit;
		if (!db_run(w->db, SQL_NEW_SERIES,
			    DB_VALUES(DB_INT(series->id), DB_INT(service->id),
				      DB_BLOB(series->type), DB_BLOB(series->key)),
			    e))
			return false;
	}
	return true;
}

/* Many small chunks are slow to read: once they are many and weigh something next to the first,
 * which has most of the book, the book is written as one. */
static bool has_many_chunks(const struct shelf_book *b)
{
	return (b->nsmall >= SMALL_CHUNKS && b->small_bytes >= b->whole_bytes / 2) ||
	       b->nsmall >= MAX_SMALL_CHUNKS;
}

static bool save_chunk(struct writer *w, struct shelf_book *b, struct str chunk, struct err *e)
{
	int64_t first = b->id << 32;

	if (b->is_whole && !db_run(w->db, SQL_DROP_CHUNKS,
				   DB_VALUES(DB_INT(first), DB_INT(first | 0xffffffff)), e))
		return false;
	return db_run(w->db, SQL_NEW_CHUNK, DB_VALUES(DB_INT(first | b->nchunks), DB_BLOB(chunk)),
		      e);
}

/* What the book has got since it was last saved: at least all that the task's profile needs. */
bool writer_save_book(struct writer *w, struct shelf_book *b, struct err *e)
{
	struct buf chunk = { 0 };
	bool ok = true;

	if (b->saving == w->ncommit)
		return true;
	b->saving = w->ncommit;
	b->is_whole = b->nchunks == 0 || has_many_chunks(b);
	pthread_rwlock_rdlock(&b->lock);
	b->ends = book_mark(b->book);
	if (!book_is_at(b->book, &b->saved))
		book_write_chunk(b->book, b->is_whole ? &b->empty : &b->saved, &chunk);
	pthread_rwlock_unlock(&b->lock);
	if (!b->is_saved)
		ok = db_run(w->db, SQL_NEW_BOOK,
			    DB_VALUES(DB_INT(b->id), DB_INT(b->service->id), DB_INT(b->created)),
			    e);
	ok = ok && (!chunk.n || save_chunk(w, b, buf_view(&chunk), e));
	b->chunk_bytes = chunk.n;
	buf_release(&chunk);
	return ok;
}

static bool save_profile(struct writer *w, struct writer_task *t, struct err *e)
{
	int64_t row = t->series->id << 32 | t->series->next_row;
	struct str id = { (const char *)t->id.at, sizeof(t->id.at) };

	if (!writer_save_series(w, t->series, e) || (t->book && !writer_save_book(w, t->book, e)))
		return false;
	t->series->next_row++;
	if (t->time < t->series->tiers_until &&
	    !tier_change(w->db, t->series->id, t->process, t->time, t->series->tiers_until, e))
		return false;
	if (!kept_change(w->db, t->series, t->time, t->duration == 0, e))
		return false;
	return db_run(w->db, SQL_NEW_PROFILE,
		      DB_VALUES(DB_INT(t->series->id), DB_INT(t->time), DB_INT(row), DB_BLOB(id),
				DB_INT(t->book ? t->book->id : 0), DB_INT(t->head),
				DB_INT(t->nsamples), DB_INT(t->data.n), DB_BLOB(t->totals),
				DB_INT(t->duration), DB_INT(t->process)),
		      e) &&
	       db_run(w->db, SQL_NEW_BLOB, DB_VALUES(DB_INT(row), DB_BLOB(t->data)), e);
}

void writer_note_book(struct writer *w, struct shelf_book *b)
{
	b->is_saved = true;
	if (b->saving != w->ncommit)
		return;
	b->saving = 0;
	b->saved = b->ends;
	if (b->chunk_bytes)
		shelf_note_chunk(b, b->nchunks, b->chunk_bytes, b->is_whole);
}

/* All profiles of the puts in a list, one after the other. *put is the one that has `t`. */
static struct writer_task *next_profile(struct writer_task **put, struct writer_task *t)
{
	if (t->also)
		return t->also;
	return *put = (*put)->next;
}

/* It is durable: what memory says of it follows. */
static void note_saved(struct store *s, struct writer_task *first)
{
	struct writer_task *list = first;

	pthread_rwlock_wrlock(&s->catalog.lock);
	for (struct writer_task *t = first; t; t = next_profile(&list, t)) {
		t->series->is_saved = t->series->service->is_saved = true;
		catalog_note_put(t->series, t->time, t->duration == 0);
		counts_add(&t->series->counts,
			   &(struct counts){ 1, t->nsamples, t->data.n, t->time, t->time });
		atomic_fetch_add(&s->writer.nputs, 1);
		if (t->time < atomic_load(&t->series->oldest_put))
			atomic_store(&t->series->oldest_put, t->time);
	}
	pthread_rwlock_unlock(&s->catalog.lock);
	list = first;
	pthread_mutex_lock(&s->shelf.lock);
	for (struct writer_task *t = first; t; t = next_profile(&list, t))
		if (t->book) {
			t->book->nprofiles++;
			writer_note_book(&s->writer, t->book);
		}
	pthread_mutex_unlock(&s->shelf.lock);
}

/* ---- commits */

static void roll_back(struct writer *w)
{
	struct err ignored;

	/* Some failures have done so already. */
	if (!sqlite3_get_autocommit(w->db->sqlite))
		db_do(w->db, SQL_ROLLBACK, &ignored);
}

static bool commit_profiles(struct store *s, struct writer_task *first, struct err *e)
{
	struct writer *w = &s->writer;
	struct writer_task *list = first;

	w->ncommit++;
	for (struct writer_task *t = first; t; t = next_profile(&list, t))
		if (!save_profile(w, t, e))
			return false;
	return db_do(w->db, SQL_COMMIT, e);
}

static bool commit_work(struct store *s, struct writer_task *t, struct err *e)
{
	bool ok;

	s->writer.ncommit++;
	ok = t->work(s, s->writer.db, t->ctx, e) && db_do(s->writer.db, SQL_COMMIT, e);

	if (t->after)
		t->after(s, t->ctx, ok);
	return ok;
}

/* Puts leave some of the database to what makes room. SQLite takes no limit that is passed already,
 * so it is told again as long as that is so. */
static bool limit_pages(struct writer *w, bool is_work, struct err *e)
{
	int64_t limit = writer_share(w, is_work ? w->shares.pages : w->shares.put_pages);
	char text[60];

	w->cap.is_hit = w->cap.is_disk_full = false;
	if (w->page_limit == limit)
		return true;
	snprintf(text, sizeof(text), "PRAGMA max_page_count=%lld", (long long)limit);
	if (sqlite3_exec(w->db->sqlite, text, NULL, NULL, NULL) != SQLITE_OK)
		return db_fail(w->db, e);
	w->page_limit = limit;
	return true;
}

/* If it was not the disk that is full, it was our own limit. */
static void explain_cap(struct store *s, struct err *e)
{
	const struct writer *w = &s->writer;

	if (w->shares.pages && db_is_full(w->db) && !w->cap.is_disk_full)
		err_set(e, ERR_LIMIT,
			"max-disk: %s may have %llu MB, and this does not fit; what is old is "
			"being thinned out, try again",
			s->dir, (unsigned long long)s->params.keep.max_bytes >> 20);
}

static bool commit_list(struct store *s, struct writer_task *first, struct err *e)
{
	struct writer *w = &s->writer;
	bool ok = limit_pages(w, first->work, e) && db_do(w->db, SQL_BEGIN, e);

	if (ok)
		ok = first->work ? commit_work(s, first, e) : commit_profiles(s, first, e);
	atomic_store(&w->is_full, !ok && db_is_full(w->db));
	if (!ok) {
		explain_cap(s, e);
		roll_back(w);
		return false;
	}
	atomic_fetch_add(&w->ncommits, 1);
	if (!first->work)
		note_saved(s, first);
	return true;
}

static void finish(struct writer *w, struct writer_task *t, bool is_ok, const struct err *e)
{
	t->is_ok = is_ok;
	if (!is_ok)
		*t->e = *e;
	atomic_fetch_sub(&w->nwaiting, 1);
	sem_post(&t->done);
}

static void finish_all(struct writer *w, struct writer_task *first, bool is_ok, const struct err *e)
{
	/* A task that is done may be gone. */
	for (struct writer_task *t = first, *next; t; t = next) {
		next = t->next;
		finish(w, t, is_ok, e);
	}
}

/* So many, or a part of what the log may have. */
static int log_pages(const struct writer *w, int usual, unsigned part)
{
	uint64_t most = w->shares.log_bytes / DB_PAGE_BYTES / part;

	return most && most < (uint64_t)usual ? (int)most : usual;
}

/* Copies the log to the database. The next commit begins it anew if nobody reads from it; readers
 * that come and go all the time must not make it grow for ever, so in the end they are waited for.
 * A failure, as on a full disk, loses nothing: it is tried again when the log has grown. */
static int copy_log(struct writer *w, int mode)
{
	int length = 0, copied = 0, code;

	sqlite3_busy_timeout(w->db->sqlite, RESTART_MS);
	code = sqlite3_wal_checkpoint_v2(w->db->sqlite, NULL, mode, &length, &copied);
	sqlite3_busy_timeout(w->db->sqlite, DB_BUSY_MS);
	w->checkpoint_at = w->db->wal_pages + log_pages(w, CHECKPOINT_PAGES, LOG_PARTS);
	if (length >= 0 && copied >= 0)
		atomic_store(&w->log_bytes, (uint64_t)(length - copied) * DB_PAGE_BYTES);
	return code & 0xff;
}

/* A log that is as long as it may be is begun anew, if those who read let it. */
static bool commit_with_log(struct store *s, struct writer_task *first, struct err *e)
{
	struct writer *w = &s->writer;
	int code;

	if (commit_list(s, first, e))
		return true;
	if (!w->cap.is_hit)
		return false;
	code = copy_log(w, SQLITE_CHECKPOINT_TRUNCATE);
	if (code != SQLITE_OK && code != SQLITE_BUSY)
		return db_fail(w->db, e);
	/* Other work is tried again by whoever has asked for it, with less at a time. */
	return !first->work && commit_list(s, first, e);
}

static bool is_disk_full(struct writer *w)
{
	return atomic_load(&w->is_full) && (!w->shares.pages || w->cap.is_disk_full);
}

static void commit(struct store *s, struct writer_task *first)
{
	struct err e;
	bool ok = commit_with_log(s, first, &e);

	if (ok || !first->next || is_disk_full(&s->writer)) {
		finish_all(&s->writer, first, ok, &e);
		return;
	}
	/* One that cannot be stored does not take others with it. */
	for (struct writer_task *t = first, *next; t; t = next) {
		next = t->next;
		t->next = NULL;
		ok = commit_with_log(s, t, &e);
		finish(&s->writer, t, ok, &e);
		if (!ok && e.kind == ERR_LIMIT) {
			finish_all(&s->writer, next, false, &e);
			return;
		}
	}
}

static size_t put_bytes(const struct writer_task *t)
{
	size_t n = 0;

	for (; t; t = t->also)
		n += t->data.n;
	return n;
}

/* Takes profiles, or one piece of other work, off the list. */
static struct writer_task *next_tasks(struct writer *w)
{
	struct writer_task *first, *last;
	size_t n = 1, bytes = 0,
	       most = w->shares.log_bytes ? w->shares.log_bytes / LOG_PARTS : SIZE_MAX;

	pthread_mutex_lock(&w->lock);
	while (!w->first && !w->is_stopping)
		pthread_cond_wait(&w->has_tasks, &w->lock);
	first = last = w->first;
	if (first) {
		while (!first->work && last->next && !last->next->work && n++ < MAX_BATCH &&
		       (bytes += put_bytes(last)) < most)
			last = last->next;
		w->first = last->next;
		last->next = NULL;
		if (!w->first)
			w->end = &w->first;
	}
	pthread_mutex_unlock(&w->lock);
	return first;
}

static void checkpoint(struct store *s)
{
	struct writer *w = &s->writer;
	int pages = w->db->wal_pages;
	uint64_t free_bytes, reserve, bytes = (uint64_t)pages * DB_PAGE_BYTES;

	atomic_store(&w->log_bytes, bytes);
	if (pages >= w->checkpoint_at)
		copy_log(w, pages >= log_pages(w, RESTART_PAGES, 2) ? SQLITE_CHECKPOINT_RESTART
								    : SQLITE_CHECKPOINT_PASSIVE);
	/* What the log has must fit the disk once more. */
	else if (pages >= MIN_PAGES && store_free_bytes(s, &free_bytes, &reserve) &&
		 free_bytes < reserve + 2 * bytes)
		copy_log(w, SQLITE_CHECKPOINT_TRUNCATE);
}

static void *write_on(void *ctx)
{
	struct store *s = ctx;

	for (struct writer_task *tasks; (tasks = next_tasks(&s->writer));) {
		int before = s->writer.db->wal_pages;
		struct err ignored;

		commit(s, tasks);
		/* What was noted before is good enough if this fails. */
		writer_note_pages(&s->writer, &ignored);
		/* The log has been begun anew. */
		if (s->writer.db->wal_pages < before)
			s->writer.checkpoint_at =
				log_pages(&s->writer, CHECKPOINT_PAGES, LOG_PARTS);
		checkpoint(s);
	}
	return NULL;
}

/* ---- */

bool writer_note_pages(struct writer *w, struct err *e)
{
	int64_t pages, free_pages;

	if (!w->shares.pages)
		return true;
	if (!db_number(w->db, SQL_PAGES, &pages, e) ||
	    !db_number(w->db, SQL_FREE_PAGES, &free_pages, e))
		return false;
	atomic_store(&w->pages, pages);
	atomic_store(&w->pages_in_use, pages - free_pages);
	if (pages > writer_share(w, w->shares.put_pages))
		w->page_limit = 0;
	return true;
}

bool writer_start(struct store *s, struct err *e)
{
	struct writer *w = &s->writer;

	w->end = &w->first;
	w->checkpoint_at = log_pages(w, CHECKPOINT_PAGES, LOG_PARTS);
	if (!writer_note_pages(w, e))
		return false;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->has_tasks, NULL);
	errno = pthread_create(&w->thread, NULL, write_on, s);
	if (errno)
		return err_system(e, "pthread_create", "writer of the store");
	w->has_thread = true;
	return true;
}

void writer_stop(struct store *s)
{
	struct writer *w = &s->writer;

	if (!w->has_thread)
		return;
	pthread_mutex_lock(&w->lock);
	w->is_stopping = true;
	pthread_cond_signal(&w->has_tasks);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	w->has_thread = false;
	pthread_cond_destroy(&w->has_tasks);
	pthread_mutex_destroy(&w->lock);
}

/* The task is nothing: the writer looks at the log after each. */
static bool do_nothing(struct store *s, struct db *db, void *ctx, struct err *e)
{
	(void)s, (void)db, (void)ctx, (void)e;
	return true;
}

void writer_shorten_log(struct store *s)
{
	struct writer_task task = { .work = do_nothing };
	struct err ignored;

	writer_do(s, &task, &ignored);
}

static void copy_after(struct store *s, void *ctx, bool is_ok)
{
	const bool *is_given_back = ctx;

	if (is_ok)
		copy_log(&s->writer,
			 *is_given_back ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE);
}

void writer_copy_log(struct store *s, bool is_given_back)
{
	struct writer_task task = { .work = do_nothing,
				    .after = copy_after,
				    .ctx = &is_given_back };
	struct err ignored;

	if (is_given_back || atomic_load(&s->writer.log_bytes))
		writer_do(s, &task, &ignored);
}

bool writer_do(struct store *s, struct writer_task *task, struct err *e)
{
	struct writer *w = &s->writer;
	bool is_first;

	task->e = e;
	task->next = NULL;
	sem_init(&task->done, 0, 0);
	atomic_fetch_add(&w->nwaiting, 1);
	pthread_mutex_lock(&w->lock);
	is_first = !w->first;
	*w->end = task;
	w->end = &task->next;
	pthread_mutex_unlock(&w->lock);
	if (is_first) /* it waits for no other; and not before, as it wants the lock */
		pthread_cond_signal(&w->has_tasks);
	while (sem_wait(&task->done) && errno == EINTR)
		;
	sem_destroy(&task->done);
	return task->is_ok;
}
