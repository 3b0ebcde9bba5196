#include "store/shelf.h"

#include <stdlib.h>
#include <time.h>

#include "store/inside.h"

enum {
	SHARE = 2,	/* one half of the memory is for books */
	BOOK_SHARE = 8, /* of that, what one book may take before another is begun */
	MIN_BOOK_BYTES = 1 << 20,
	MAX_BOOK_BYTES = 64 << 20,
	OLD_SECONDS = 14 * 24 * 3600, /* then much of what a book has is of no use any more */
};

void shelf_init(struct shelf *shelf, uint64_t max_memory)
{
	size_t one;

	*shelf = (struct shelf){ .max_bytes = max_memory / SHARE };
	one = shelf->max_bytes / BOOK_SHARE;
	if (one < MIN_BOOK_BYTES)
		one = MIN_BOOK_BYTES;
	shelf->max_book_bytes = one > MAX_BOOK_BYTES ? MAX_BOOK_BYTES : one;
	pthread_mutex_init(&shelf->lock, NULL);
}

static void free_entry(struct shelf_book *b)
{
	book_free(b->book);
	pthread_rwlock_destroy(&b->lock);
	free(b);
}

void shelf_release(struct shelf *shelf)
{
	for (size_t i = 0; i < shelf->books.n; i++)
		free_entry(shelf->books.at[i]);
	vec_release(&shelf->books);
	pthread_mutex_destroy(&shelf->lock);
}

static struct shelf_book *add(struct shelf *shelf, int64_t id, struct service *service,
			      int64_t created)
{
	struct shelf_book *b = xcalloc(1, sizeof(*b));
	pthread_rwlockattr_t attributes;

	*b = (struct shelf_book){ .id = id, .created = created, .service = service };
	/* A stream of readers must not keep profiles from being put. */
	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&b->lock, &attributes);
	pthread_rwlockattr_destroy(&attributes);
	vec_push(&shelf->books, b);
	if (id > shelf->last_id)
		shelf->last_id = id;
	return b;
}

bool shelf_load(struct store *s, struct db *db, struct err *e)
{
	sqlite3_stmt *rows = db_bind(db, SQL_ALL_BOOKS, NULL, 0, e);
	enum db_result r;

	if (!rows)
		return false;
	while ((r = db_step(db, rows, e)) == DB_ROW) {
		int64_t id = db_int(rows, 0);
		struct service *service = catalog_service(&s->catalog, db_int(rows, 1));

		if (!service || id <= 0 || id >> 30) {
			sqlite3_reset(rows);
			return err_set(e, ERR_FORMAT,
				       "book %lld is damaged; `kiln store check` tells more",
				       (long long)id);
		}
		service->book = add(&s->shelf, id, service, db_int(rows, 2));
		service->book->is_saved = true;
	}
	return r == DB_DONE;
}

struct shelf_book *shelf_find(struct shelf *shelf, int64_t id)
{
	size_t low = 0, high = shelf->books.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (shelf->books.at[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < shelf->books.n && shelf->books.at[low]->id == id ? shelf->books.at[low] : NULL;
}

void shelf_forget(struct shelf *shelf, const int64_t *ids, size_t n)
{
	size_t left = 0, next = 0;

	for (size_t i = 0; i < shelf->books.n; i++) {
		struct shelf_book *b = shelf->books.at[i];

		if (next == n || b->id != ids[next]) {
			shelf->books.at[left++] = b;
			continue;
		}
		next++;
		if (b->service->book == b)
			b->service->book = NULL;
		shelf->bytes -= b->bytes;
		free_entry(b);
	}
	shelf->books.n = left;
}

/* ---- in memory or not */

void shelf_note_chunk(struct shelf_book *b, uint32_t number, size_t bytes, bool is_whole)
{
	b->nchunks = number + 1;
	if (is_whole) {
		b->whole_bytes = bytes;
		b->small_bytes = b->nsmall = 0;
	} else {
		b->small_bytes += bytes;
		b->nsmall++;
	}
}

static bool read_chunks(struct db *db, struct shelf_book *b, struct book *book, struct err *e)
{
	sqlite3_stmt *rows =
		db_bind(db, SQL_CHUNKS,
			DB_VALUES(DB_INT(b->id << 32), DB_INT(b->id << 32 | 0xffffffff)), e);
	enum db_result r;

	if (!rows)
		return false;
	b->nchunks = 0;
	for (bool is_first = true; (r = db_step(db, rows, e)) == DB_ROW; is_first = false) {
		if (!book_read_chunk(book, db_blob(rows, 0), e)) {
			sqlite3_reset(rows);
			return err_wrap(e,
					"book %lld of service \"%.*s\" is damaged at chunk %u; "
					"`kiln store check` tells more",
					(long long)b->id, STR_ARG(b->service->name), b->nchunks);
		}
		shelf_note_chunk(b, (uint32_t)db_int(rows, 1), db_blob(rows, 0).n, is_first);
	}
	return r == DB_DONE;
}

/* Has its lock as a writer. Reads what is in the database now, not what the caller's transaction
 * sees: numbers that were given since must not be given again. */
static bool load(struct store *s, struct shelf_book *b, struct err *e)
{
	struct book *book = book_new();
	struct db *db = NULL;
	bool ok = true;

	b->empty = book_mark(book);
	if (b->is_saved) {
		db = store_reader(s, e);
		ok = db && read_chunks(db, b, book, e);
		store_reader_back(s, db);
	}
	if (!ok) {
		book_free(book);
		return false;
	}
	b->book = book;
	b->saved = book_mark(book);
	return true;
}

/* Under the shelf's lock. */
static void make_room(struct shelf *shelf)
{
	while (shelf->bytes > shelf->max_bytes) {
		struct shelf_book *oldest = NULL;

		for (size_t i = 0; i < shelf->books.n; i++) {
			struct shelf_book *b = shelf->books.at[i];

			if (b->is_here && !b->nusers && (!oldest || b->last_use < oldest->last_use))
				oldest = b;
		}
		if (!oldest)
			return;
		shelf->bytes -= oldest->bytes;
		oldest->bytes = 0;
		book_free(oldest->book);
		oldest->book = NULL;
		oldest->is_here = false;
	}
}

/* Its users have been counted up. */
static struct shelf_book *bring(struct store *s, struct shelf_book *b, struct err *e)
{
	bool ok;

	pthread_rwlock_wrlock(&b->lock);
	ok = b->book || load(s, b, e);
	pthread_rwlock_unlock(&b->lock);
	if (!ok) {
		shelf_put_back(s, b);
		return NULL;
	}
	pthread_mutex_lock(&s->shelf.lock);
	b->is_here = true;
	pthread_mutex_unlock(&s->shelf.lock);
	return b;
}

struct shelf_book *shelf_take(struct store *s, int64_t id, struct err *e)
{
	struct shelf_book *b;
	bool is_here = false;

	pthread_mutex_lock(&s->shelf.lock);
	b = shelf_find(&s->shelf, id);
	if (b) {
		b->nusers++;
		is_here = b->is_here;
	}
	pthread_mutex_unlock(&s->shelf.lock);
	if (!b) {
		err_set(e, ERR_NOTFOUND, "book %lld is not there (any more)", (long long)id);
		return NULL;
	}
	return is_here ? b : bring(s, b, e);
}

static bool is_full(const struct shelf *shelf, const struct shelf_book *b)
{
	return b->bytes > shelf->max_book_bytes || time(NULL) - b->created > OLD_SECONDS;
}

struct shelf_book *shelf_current(struct store *s, struct service *service, struct err *e)
{
	struct shelf_book *b;
	bool is_here;

	pthread_mutex_lock(&s->shelf.lock);
	if (!service->book || is_full(&s->shelf, service->book))
		service->book = add(&s->shelf, s->shelf.last_id + 1, service, time(NULL));
	b = service->book;
	b->nusers++;
	is_here = b->is_here;
	pthread_mutex_unlock(&s->shelf.lock);
	return is_here ? b : bring(s, b, e);
}

void shelf_close(struct shelf *shelf, struct shelf_book *b)
{
	pthread_mutex_lock(&shelf->lock);
	if (b->service->book == b)
		b->service->book = NULL;
	pthread_mutex_unlock(&shelf->lock);
}

void shelf_put_back(struct store *s, struct shelf_book *b)
{
	size_t bytes;

	pthread_rwlock_rdlock(&b->lock);
	bytes = b->book ? book_bytes(b->book) : 0;
	pthread_rwlock_unlock(&b->lock);
	shelf_put_back_of(s, b, bytes);
}

void shelf_put_back_of(struct store *s, struct shelf_book *b, size_t bytes)
{
	pthread_mutex_lock(&s->shelf.lock);
	b->nusers--;
	b->last_use = ++s->shelf.clock;
	s->shelf.bytes += bytes - b->bytes;
	b->bytes = bytes;
	make_room(&s->shelf);
	pthread_mutex_unlock(&s->shelf.lock);
}
