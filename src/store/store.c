#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/int.h"
#include "store/delta.h"
#include "store/inside.h"
#include "store/tiers.h"

#define DEFAULT_MEMORY ((uint64_t)512 << 20)

/* ---- opening */

static char *join(const char *dir, const char *name)
{
	size_t n = strlen(dir) + strlen(name) + 2;
	char *path = xmalloc(n);

	snprintf(path, n, "%s/%s", dir, name);
	return path;
}

static bool lock_folder(struct store *s, struct err *e)
{
	char *path = join(s->dir, "lock"), owner[32] = "";
	bool ok;

	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ok = s->lock_fd >= 0 || err_system(e, "open", path);
	if (ok && flock(s->lock_fd, LOCK_EX | LOCK_NB)) {
		ssize_t n = pread(s->lock_fd, owner, sizeof(owner) - 1, 0);

		owner[n > 0 ? strcspn(owner, "\n") : 0] = '\0';
		ok = err_set(e, ERR_IO,
			     "%s: another process (%s) has this folder open; end it first, or use "
			     "another folder",
			     s->dir, *owner ? owner : "not known");
	}
	s->has_lock = ok;
	if (ok) {
		/* The number is for people; who cannot write it has the lock all the same. */
		(void)!ftruncate(s->lock_fd, 0);
		dprintf(s->lock_fd, "%ld\n", (long)getpid());
	}
	free(path);
	return ok;
}

static bool make_folder(const char *dir, struct err *e)
{
	struct stat st;

	if (mkdir(dir, 0700) && errno != EEXIST)
		return err_system(e, "mkdir", dir);
	if (stat(dir, &st))
		return err_system(e, "stat", dir);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_IO, "%s: is not a folder", dir);
	return true;
}

struct loading {
	struct series *series; /* of the row before */
	struct shelf_book *book;
	uint64_t nlost; /* rows whose series or book is not there */
};

/* A disk may have lost something: what is left is served. */
static void load_row(struct store *s, struct loading *l, sqlite3_stmt *row)
{
	int64_t series = db_int(row, 0), book = db_int(row, 1);
	uint32_t number = (uint32_t)db_int(row, 5);
	struct counts one = { 1, (uint64_t)db_int(row, 3), (uint64_t)db_int(row, 4), db_int(row, 2),
			      db_int(row, 2) };

	if (!l->series || l->series->id != series)
		l->series = catalog_series(&s->catalog, series);
	if (!l->book || l->book->id != book)
		l->book = shelf_find(&s->shelf, book);
	if (!l->series || (book && !l->book)) {
		l->nlost++;
		return;
	}
	counts_add(&l->series->counts, &one);
	if (number >= l->series->next_row)
		l->series->next_row = number + 1;
	if (book)
		l->book->nprofiles++;
}

static bool load_counts(struct store *s, struct err *e)
{
	sqlite3_stmt *rows = db_bind(s->writer.db, SQL_ALL_PROFILES, NULL, 0, e);
	struct loading l = { 0 };
	enum db_result r;

	if (!rows)
		return false;
	while ((r = db_step(s->writer.db, rows, e)) == DB_ROW)
		load_row(s, &l, rows);
	if (l.nlost)
		store_log(s,
			  "%s: %llu profiles have lost their series or book; `kiln store check` "
			  "tells more",
			  s->path, (unsigned long long)l.nlost);
	return r == DB_DONE;
}

/* Profiles that are only in sums. */
static bool load_thinned(struct store *s, struct err *e)
{
	sqlite3_stmt *rows = db_bind(s->writer.db, SQL_ALL_THINNED, NULL, 0, e);
	enum db_result r = rows ? DB_ROW : DB_FAILED;

	while (r == DB_ROW && (r = db_step(s->writer.db, rows, e)) == DB_ROW) {
		struct series *series = catalog_series(&s->catalog, db_int(rows, 0));
		struct counts counts = { .nprofiles = (uint64_t)db_int(rows, 1),
					 .first = db_int(rows, 2),
					 .last = db_int(rows, 3) };

		enum tier tier = (enum tier)db_int(rows, 4);

		if (!series)
			continue;
		counts_add(&series->counts, &counts);
		if (tier > TIER_RAW && tier < NTIERS)
			catalog_note_thinned(series, (int)tier,
					     int_add(db_int(rows, 5), tier_length(tier)));
	}
	return r == DB_DONE;
}

static bool open_writer(struct store *s, struct err *e)
{
	struct writer *w = &s->writer;

	w->shares = cap_share(s->params.keep.max_bytes);
	if (w->shares.log_bytes && !cap_begin(&w->cap, w->shares.log_bytes))
		return err_set(e, ERR_IO, "SQLite takes no layer that limits its log");
	w->db = db_open(s->path, true, w->shares.log_bytes ? w->cap.name : NULL, e);
	return w->db;
}

/* The log is then not written through with each commit, but before it is copied. */
static bool set_lazy(struct store *s, struct err *e)
{
	struct db *db = s->writer.db;

	return !s->params.is_lazy ||
	       sqlite3_exec(db->sqlite, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL) ==
		       SQLITE_OK ||
	       db_fail(db, e);
}

static bool open_all(struct store *s, struct err *e)
{
	return make_folder(s->dir, e) && lock_folder(s, e) && open_writer(s, e) && set_lazy(s, e) &&
	       rules_load(&s->rules, s->writer.db, e) &&
	       catalog_load(&s->catalog, s->writer.db, e) && shelf_load(s, s->writer.db, e) &&
	       load_counts(s, e) && load_thinned(s, e) && writer_start(s, e) && keeper_start(s, e);
}

struct store *store_open(const struct store_params *params, struct err *e)
{
	struct store *s = xcalloc(1, sizeof(*s));

	s->params = *params;
	if (!s->params.max_memory)
		s->params.max_memory = DEFAULT_MEMORY;
	s->lock_fd = -1;
	s->dir = join(params->dir, "");
	s->dir[strlen(params->dir)] = '\0';
	s->params.dir = s->dir;
	s->path = join(s->dir, "profiles.db");
	id_source_init(&s->ids);
	catalog_init(&s->catalog, params->max_series, params->max_service_series);
	shelf_init(&s->shelf, s->params.max_memory);
	hot_init(&s->hot, s->params.max_memory);
	kept_init(&s->kept);
	follow_init(&s->follow);
	pthread_mutex_init(&s->readers_lock, NULL);
	pthread_mutex_init(&s->packers_lock, NULL);
	keeper_init(&s->keeper);
	rules_init(&s->rules, params);
	s->params.rules = NULL;
	if (open_all(s, e))
		return s;
	store_close(s);
	return NULL;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	keeper_stop(s);
	writer_stop(s);
	for (struct db *db = s->readers, *next; db; db = next) {
		next = db->next;
		db_close(db);
	}
	db_close(s->writer.db);
	cap_end(&s->writer.cap);
	shelf_release(&s->shelf);
	hot_release(&s->hot);
	kept_release(&s->kept);
	follow_release(&s->follow);
	catalog_release(&s->catalog);
	for (size_t i = 0; i < s->packers.n; i++)
		packer_free(s->packers.at[i]);
	vec_release(&s->packers);
	pthread_mutex_destroy(&s->packers_lock);
	pthread_mutex_destroy(&s->readers_lock);
	keeper_release(&s->keeper);
	rules_release(&s->rules);
	/* A number that is left may be another's by the time somebody reads it. */
	if (s->has_lock)
		(void)!ftruncate(s->lock_fd, 0);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	free(s->path);
	free(s->dir);
	free(s);
}

void store_log(struct store *s, const char *fmt, ...)
{
	char line[1200];
	va_list args;

	if (!s->params.log)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	s->params.log(s->params.log_ctx, line);
}

struct db *store_reader(struct store *s, struct err *e)
{
	struct db *db;

	pthread_mutex_lock(&s->readers_lock);
	db = s->readers;
	if (db)
		s->readers = db->next;
	pthread_mutex_unlock(&s->readers_lock);
	if (!db) {
		db = db_open(s->path, false, NULL, e);
		if (db)
			atomic_fetch_add(&s->nreaders, 1);
	}
	return db;
}

void store_reader_back(struct store *s, struct db *db)
{
	if (!db)
		return;
	pthread_mutex_lock(&s->readers_lock);
	db->next = s->readers;
	s->readers = db;
	pthread_mutex_unlock(&s->readers_lock);
}

/* ---- putting */

/* What all samples have together, for each type: so totals over time are read without profiles. */
static void write_totals(struct buf *out, const struct profile *p)
{
	for (uint32_t t = 0; t < p->ntypes; t++) {
		int64_t total = 0;

		for (uint32_t i = 0; i < p->nsamples; i++)
			total = int_add(total, sample_values(p, &p->samples[i])[t]);
		buf_add(out, &total, sizeof(total));
	}
}

/* ---- packers that nobody uses */

enum { MAX_PACKERS = 8 };

static struct packer *take_packer(struct store *s)
{
	struct packer *k = NULL;

	pthread_mutex_lock(&s->packers_lock);
	if (s->packers.n)
		k = s->packers.at[--s->packers.n];
	pthread_mutex_unlock(&s->packers_lock);
	return k ? k : packer_new();
}

static void packer_back(struct store *s, struct packer *k)
{
	pthread_mutex_lock(&s->packers_lock);
	if (s->packers.n < MAX_PACKERS) {
		vec_push(&s->packers, k);
		k = NULL;
	}
	pthread_mutex_unlock(&s->packers_lock);
	packer_free(k);
}

/* Returns how much memory the book takes now. */
static size_t pack(struct store *s, struct shelf_book *b, const struct profile *p,
		   struct writer_task *task, struct buf *packed)
{
	struct packer *k = take_packer(s);
	size_t bytes;
	bool is_known;

	pthread_rwlock_rdlock(&b->lock);
	is_known = packer_find(k, b->book, p, false);
	bytes = book_bytes(b->book);
	pthread_rwlock_unlock(&b->lock);
	if (!is_known) {
		pthread_rwlock_wrlock(&b->lock);
		packer_find(k, b->book, p, true);
		bytes = book_bytes(b->book);
		pthread_rwlock_unlock(&b->lock);
	}
	task->head = packer_head(k);
	packer_write(k, packed);
	packer_back(s, k);
	task->data = buf_view(packed);
	return bytes;
}

/* One that is being put. */
struct put {
	struct writer_task task;
	struct buf packed, totals;
	size_t book_bytes;
};

static bool pack_profile(struct store *s, const struct store_new *new, struct put *put,
			 struct err *e)
{
	const struct profile *p = new->profile;
	struct writer_task *task = &put->task;

	task->process = new->process ? new->process : process_of(new->instance, p);
	task->book = shelf_current(s, task->series->service, e);
	if (!task->book)
		return false;
	put->book_bytes = pack(s, task->book, p, task, &put->packed);
	write_totals(&put->totals, p);
	task->nsamples = p->nsamples;
	task->duration = p->duration_nanos;
	task->totals = buf_view(&put->totals);
	if (new->let_go)
		new->let_go(new->ctx);
	return true;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Nothing was before 1970. A clock that is far ahead must not make profiles that never get old,
 * while all others go. */
static int64_t time_of(const struct store_new *new)
{
	const int64_t ahead = (int64_t)24 * 3600 * 1000000000;
	int64_t now = now_ns(), time = now;

	if (new->profile &&new->profile->time_nanos > 0)
		time = new->profile->time_nanos;
	else if (new->created > 0)
		time = new->created;
	return time > int_add(now, ahead) ? now : time;
}

static struct str copy_text(struct arena *a, struct str s)
{
	return (struct str){ arena_copy(a, s.p, s.n), s.n };
}

static void fill_meta(struct arena *a, const struct writer_task *task, struct store_meta *meta)
{
	const struct series *series = task->series;
	struct store_label *labels;

	*meta = (struct store_meta){
		.id = task->id,
		.service = copy_text(a, series->service->name),
		.type = copy_text(a, series->type),
		.created = task->time,
		.nsamples = task->nsamples,
		.bytes = task->data.n,
		.process = task->process,
	};
	labels_decode(a, copy_text(a, series->key), &labels, &meta->nlabels);
	meta->labels = labels;
}

/* Thinning needs room for sums and the log, so it begins before the folder is full. */
static bool is_below_cap(struct store *s, struct err *e)
{
	const struct cap_shares *shares = &s->writer.shares;
	int64_t pages = atomic_load(&s->writer.pages_in_use);

	if (!s->keeper.has_thread || !shares->pages)
		return true;
	if (pages > writer_share(&s->writer, shares->thin_pages))
		keeper_wake(s);
	return pages <= writer_share(&s->writer, shares->full_pages) ||
	       err_set(e, ERR_LIMIT,
		       "max-disk: %s has %lld MB of profiles, and may have %llu MB with its log; "
		       "what is old is being thinned out, try again",
		       s->dir, (long long)(pages * DB_PAGE_BYTES >> 20),
		       (unsigned long long)s->params.keep.max_bytes >> 20);
}

bool store_set_others(struct store *s, uint64_t bytes, struct err *e)
{
	struct writer *w = &s->writer;
	int64_t pages = (int64_t)(bytes / DB_PAGE_BYTES) + (bytes > 0);

	atomic_store(&w->other_pages, pages);
	if (!w->shares.pages || atomic_load(&w->pages) + pages <= w->shares.pages)
		return true;
	keeper_wake(s);
	return err_set(e, ERR_LIMIT,
		       "max-disk: %s may have %llu MB, and this does not fit; what is old is being "
		       "thinned out, try again",
		       s->dir, (unsigned long long)s->params.keep.max_bytes >> 20);
}

/* Room is left for the log to be copied, and for what makes room: deleting needs the log too. */
static bool has_room(struct store *s, struct err *e)
{
	uint64_t free_bytes, reserve, needed;

	if (!store_free_bytes(s, &free_bytes, &reserve))
		return err_system(e, "statvfs", s->dir);
	if (free_bytes < s->params.keep.min_free_bytes)
		keeper_wake(s);
	needed = reserve + atomic_load(&s->writer.log_bytes);
	if (free_bytes < needed) {
		writer_shorten_log(s);
		store_free_bytes(s, &free_bytes, &reserve);
		needed = reserve + atomic_load(&s->writer.log_bytes);
	}
	if (free_bytes >= needed)
		return true;
	return err_set(e, ERR_IO,
		       "%s: the disk is full: %llu KB are free, and %llu KB are kept for deleting; "
		       "free some space, or keep less",
		       s->dir, (unsigned long long)free_bytes >> 10,
		       (unsigned long long)needed >> 10);
}

static void put_end(struct store *s, struct put *put)
{
	if (put->task.book)
		shelf_put_back_of(s, put->task.book, put->book_bytes);
	if (put->task.series)
		catalog_leave(put->task.series);
	buf_release(&put->packed);
	buf_release(&put->totals);
}

/* All but the writing. False: it has been ended. */
static bool put_begin(struct store *s, const struct store_new *new, struct arena *a,
		      struct put *put, struct err *e)
{
	bool ok = is_below_cap(s, e) && has_room(s, e);

	*put = (struct put){ .task = { .time = time_of(new),
				       .id = new->id ? *new->id : id_next(&s->ids),
				       .data = new->bytes } };
	atomic_store(&s->writer.is_full, !ok);
	if (ok)
		put->task.series = catalog_enter(&s->catalog, new, a, e);
	ok = put->task.series && (!new->profile || pack_profile(s, new, put, e));
	if (!ok)
		put_end(s, put);
	return ok;
}

bool store_put(struct store *s, const struct store_new *new, struct arena *a,
	       struct store_meta *meta, struct err *e)
{
	struct put put;
	bool ok;

	if (!put_begin(s, new, a, &put, e))
		return false;
	ok = writer_do(s, &put.task, e);
	if (ok)
		follow_put(s, &put.task);
	if (ok && meta)
		fill_meta(a, &put.task, meta);
	put_end(s, &put);
	return ok;
}

struct store_batch {
	struct store *s;
	struct arena arena;
	vec(struct put *) puts;
};

struct store_batch *store_batch_new(struct store *s)
{
	struct store_batch *b = xcalloc(1, sizeof(*b));

	b->s = s;
	return b;
}

bool store_batch_add(struct store_batch *b, const struct store_new *new, struct err *e)
{
	struct put *put = arena_new(&b->arena, struct put);

	if (!put_begin(b->s, new, &b->arena, put, e))
		return false;
	vec_push(&b->puts, put);
	return true;
}

bool store_batch_commit(struct store_batch *b, struct err *e)
{
	for (size_t i = 1; i < b->puts.n; i++)
		b->puts.at[i - 1]->task.also = &b->puts.at[i]->task;
	if (b->puts.n && !writer_do(b->s, &b->puts.at[0]->task, e))
		return false;
	for (size_t i = 0; i < b->puts.n; i++)
		follow_put(b->s, &b->puts.at[i]->task);
	return true;
}

void store_batch_free(struct store_batch *b)
{
	for (size_t i = 0; i < b->puts.n; i++)
		put_end(b->s, b->puts.at[i]);
	vec_release(&b->puts);
	arena_release(&b->arena);
	free(b);
}

/* ---- getting */

static bool read_meta(struct db *db, const struct store_id *id, sqlite3_stmt *row, struct arena *a,
		      struct store_meta *meta, struct err *e)
{
	sqlite3_stmt *names = db_bind(db, SQL_LABELS_OF, DB_VALUES(DB_INT(db_int(row, 0))), e);
	struct store_label *labels;
	bool ok = names && db_step(db, names, e) == DB_ROW;

	if (!ok)
		return err_set(e, ERR_FORMAT, "the profile's series is not there");
	*meta = (struct store_meta){
		.id = *id,
		.service = copy_text(a, db_blob(names, 0)),
		.type = copy_text(a, db_blob(names, 1)),
		.created = db_int(row, 1),
		.nsamples = (uint64_t)db_int(row, 3),
		.bytes = (uint64_t)db_int(row, 4),
		.process = db_int(row, 6),
	};
	ok = labels_decode(a, copy_text(a, db_blob(names, 2)), &labels, &meta->nlabels);
	meta->labels = labels;
	sqlite3_reset(names);
	return ok || err_set(e, ERR_FORMAT, "the profile's labels are damaged");
}

static bool unpack(struct store *s, int64_t book, struct str packed, struct arena *a,
		   struct strings *strings, struct profile *p, struct err *e)
{
	struct shelf_book *b = shelf_take(s, book, e);
	bool ok;

	if (!b)
		return false;
	pthread_rwlock_rdlock(&b->lock);
	ok = book_unpack(b->book, packed, a, strings, p, e);
	pthread_rwlock_unlock(&b->lock);
	shelf_put_back(s, b);
	return ok;
}

static bool get(struct store *s, struct db *db, const struct store_id *id, struct arena *a,
		struct strings *strings, struct store_meta *meta, struct profile *p,
		struct str *bytes, struct err *e)
{
	struct str id_text = { (const char *)id->at, sizeof(id->at) };
	sqlite3_stmt *row = db_bind(db, SQL_BY_ID, DB_VALUES(DB_BLOB(id_text)), e);
	enum db_result r = row ? db_step(db, row, e) : DB_FAILED;
	bool ok;

	if (r == DB_DONE)
		return err_set(e, ERR_NOTFOUND, "there is no profile of that id");
	if (r == DB_FAILED || !read_meta(db, id, row, a, meta, e))
		return false;
	*p = (struct profile){ 0 };
	*bytes = (struct str){ 0 };
	if (db_int(row, 2)) {
		ok = unpack(s, db_int(row, 2), db_blob(row, 5), a, strings, p, e);
	} else {
		*bytes = copy_text(a, db_blob(row, 5));
		ok = true;
	}
	sqlite3_reset(row);
	return ok;
}

bool store_get(struct store *s, const struct store_id *id, struct arena *a, struct strings *strings,
	       struct store_meta *meta, struct profile *p, struct str *bytes, struct err *e)
{
	struct db *db = store_reader(s, e);
	bool ok = db && get(s, db, id, a, strings, meta, p, bytes, e);

	store_reader_back(s, db);
	return ok;
}
