/* writer.h - the one thread that changes the database.
 *
 * It takes all puts that wait and commits them together, so that a disk that can do 500 commits in
 * a second takes thousands of profiles. First what is new in books, then the profiles: if anything
 * fails, nothing of that commit is there, and nobody has been told so.
 */
#ifndef STORE_WRITER_H
#define STORE_WRITER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/err.h"
#include "store/cap.h"
#include "store/db.h"
#include "store/store.h"

struct series;
struct shelf_book;

struct writer_task {
	/* of a profile */
	struct series *series;
	struct shelf_book *book; /* or NULL: it is no profile */
	struct store_id id;
	int64_t time, duration, process;
	uint32_t head;
	uint64_t nsamples;
	struct str data, totals;
	struct writer_task *also; /* the next profile of the same put: all of them, or none */
	/* or: work of its own, in a commit of its own. `work` is called between begin and commit,
	 * and `after`, if it is not NULL, in any case after that: so what memory says can follow.
	 */
	bool (*work)(struct store *s, struct db *db, void *ctx, struct err *e);
	void (*after)(struct store *s, void *ctx, bool is_ok);
	void *ctx;
	/* the writer's */
	struct writer_task *next;
	sem_t done;
	bool is_ok;
	struct err *e;
};

struct writer {
	struct db *db;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* of the list */
	pthread_cond_t has_tasks;
	struct writer_task *first, **end;
	bool is_stopping;
	uint64_t ncommit;
	int checkpoint_at; /* length of the log */
	/* of the limit of all files, if there is one */
	struct cap cap;
	struct cap_shares shares;
	int64_t page_limit;		     /* that SQLite knows of */
	_Atomic int64_t pages, pages_in_use; /* of the database */
	_Atomic int64_t other_pages;	     /* as many as other files take, that count with it */
	atomic_bool is_full;
	_Atomic uint64_t nputs, ncommits, nwaiting, log_bytes;
};

/* What is left of a share (cap.h) beside other files. */
static inline int64_t writer_share(const struct writer *w, int64_t pages)
{
	int64_t others = atomic_load(&w->other_pages);

	if (!pages)
		return 0; /* no limit */
	return pages > others ? pages - others : 1;
}

bool writer_start(struct store *s, struct err *e);
/* Notes how much of the database is in use; for whoever has the connection. */
bool writer_note_pages(struct writer *w, struct err *e);
/* Within work of a task: the series and its service get into the same commit, if they are new. */
bool writer_save_series(struct writer *w, struct series *series, struct err *e);
/* The same: what is new in a book gets into the same commit; and, once that is there,
 * under the shelf's lock. */
bool writer_save_book(struct writer *w, struct shelf_book *b, struct err *e);
void writer_note_book(struct writer *w, struct shelf_book *b);
/* Finishes what waits. */
void writer_stop(struct store *s);
/* Gives room of the log back, if the disk has little. */
void writer_shorten_log(struct store *s);
/* Copies the log to the database, if it has anything, so that what others fill the disk with does
 * not find it long; with `is_given_back` also its room. */
void writer_copy_log(struct store *s, bool is_given_back);
/* Waits until it is durable, or has failed. */
bool writer_do(struct store *s, struct writer_task *task, struct err *e);

#endif
