/* shelf.h - the books of a store, of which those that were used last are in memory.
 *
 * Whoever uses a book holds it (shelf_take, shelf_current) until shelf_put_back, and its `lock`
 * while it calls functions of book.h: as a writer to pack, as a reader for all others, and for a
 * short while at a time, as a book that is being summed may be packed to as well. Books that nobody
 * holds are dropped from memory, oldest use first, when all take too much.
 */
#ifndef STORE_SHELF_H
#define STORE_SHELF_H

#include <pthread.h>

#include "base/vec.h"
#include "store/book.h"
#include "store/catalog.h"
#include "store/db.h"

struct shelf_book {
	int64_t id, created; /* second */
	struct service *service;
	pthread_rwlock_t lock;
	struct book *book; /* NULL: not in memory */
	/* the shelf's, under its lock */
	bool is_here; /* in memory, where it stays as long as it has users */
	unsigned nusers;
	size_t bytes;
	uint64_t last_use;
	uint64_t nprofiles; /* in the database, that need it */
	int64_t left_at;    /* second: when it was rewritten into another; 0: it was not */
	/* the writer's */
	struct book_mark saved; /* up to here it is in the database */
	struct book_mark empty;
	uint32_t nchunks;		 /* number of the next */
	size_t whole_bytes, small_bytes; /* of the first chunk, and those after it */
	uint32_t nsmall;
	/* of what is being saved */
	struct book_mark ends;
	size_t chunk_bytes; /* 0: nothing was new */
	bool is_whole;	    /* the chunk replaces all */
	bool is_saved;
	uint64_t saving;
};

struct shelf {
	pthread_mutex_t lock;
	vec(struct shelf_book *) books; /* in order of id */
	size_t bytes, max_bytes, max_book_bytes;
	uint64_t clock;
	int64_t last_id;
};

struct store;

void shelf_init(struct shelf *shelf, uint64_t max_memory);
bool shelf_load(struct store *s, struct db *db, struct err *e);
void shelf_release(struct shelf *shelf);

/* A book by its id. NULL: ERR_NOTFOUND when it was deleted, or it cannot be read. */
struct shelf_book *shelf_take(struct store *s, int64_t id, struct err *e);
/* The one that new profiles of a service go to. */
struct shelf_book *shelf_current(struct store *s, struct service *service, struct err *e);
void shelf_put_back(struct store *s, struct shelf_book *b);
/* The same for who knows how much memory it takes, and need not wait for its lock. */
void shelf_put_back_of(struct store *s, struct shelf_book *b, size_t bytes);
/* By its id, in memory or not; NULL if there is none. Under the shelf's lock. */
struct shelf_book *shelf_find(struct shelf *shelf, int64_t id);
/* Chunk `number` has been written or read. */
void shelf_note_chunk(struct shelf_book *b, uint32_t number, size_t bytes, bool is_whole);
/* New profiles go to another book. */
void shelf_close(struct shelf *shelf, struct shelf_book *b);
/* Books that nobody holds, in order of id, are no more. Under the shelf's lock. */
void shelf_forget(struct shelf *shelf, const int64_t *ids, size_t n);

#endif
