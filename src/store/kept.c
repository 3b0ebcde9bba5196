#include "store/kept.h"

#include <string.h>

#include "base/int.h"
#include "base/stop.h"
#include "store/column.h"
#include "store/delta.h"
#include "store/inside.h"
#include "store/naming.h"
#include "store/top.h"

enum {
	SUMS_IN_COMMIT = 256,
	FUNCTIONS_IN_ROW = 4096,
	DROPPED_IN_COMMIT = 2000,
	LEVEL = 3, /* ZSTD's */
};

void kept_init(struct kept *k)
{
	pthread_mutex_init(&k->lock, NULL);
}

void kept_release(struct kept *k)
{
	pthread_mutex_destroy(&k->lock);
}

/* ---- rows: series, number of the five minutes that it begins with, and how long it is. Windows
 * lie within a day. */

enum { LENGTH_BITS = 3, START_BITS = 29, UNTIL_ROW = 0 /* of no series */ };
/* Of lengths: this and those after it; a piece to which more may come. */
enum { SHORT = TOP_HOUR_LEVEL + 1, OPEN = TOP_NLEVELS };

static int64_t row_of(int64_t series, int64_t start, unsigned length)
{
	int64_t most = ((int64_t)1 << START_BITS) - 1, piece = start < 0 ? 0 : start / TOP_PIECE;

	return series << 32 | (piece < most ? piece : most) << LENGTH_BITS | length;
}

static int64_t last_row_of(int64_t series)
{
	return series << 32 | 0xffffffff;
}

static int64_t start_of(int64_t row)
{
	return ((row & 0xffffffff) >> LENGTH_BITS) * TOP_PIECE;
}

static bool length_of(const struct hot_key *key, unsigned *length)
{
	for (*length = 0; *length < TOP_NLEVELS; ++*length)
		if (key->length == top_lengths[*length] - 1) {
			if (key->is_open)
				*length = OPEN;
			return true;
		}
	return false;
}

/* ---- functions */

static struct str get_text(struct reader *r)
{
	uint32_t n = get_count(r);
	struct str s = { (const char *)r->p, n };

	r->p += n;
	return s;
}

/* Most have the file, and the binary, of the one before. */
static void put_again(struct buf *out, struct str text, struct str *last)
{
	bool is_same = str_eq(text, *last);

	put_number(out, is_same);
	if (!is_same) {
		put_number(out, text.n);
		buf_str(out, text);
	}
	*last = text;
}

static struct str get_again(struct reader *r, struct str *last)
{
	if (!get_below(r, 2))
		*last = get_text(r);
	return *last;
}

static void put_functions(struct buf *out, struct hot *h, uint32_t first, uint32_t n)
{
	size_t begin = seal_begin(out);
	struct str file = STR(""), module = STR("");
	struct buf body = { 0 };

	put_number(out, n);
	for (uint32_t i = first; i < first + n; i++) {
		struct hot_function f = hot_function_at(h, i);
		struct str name = hot_text(h, f.name);

		put_number(&body, name.n);
		buf_str(&body, name);
		put_again(&body, hot_text(h, f.file), &file);
		put_again(&body, hot_text(h, f.module), &module);
	}
	seal_end(out, begin, buf_view(&body), STR(""), LEVEL, NULL);
	buf_release(&body);
}

/* With h == NULL they are only looked at. */
static bool get_functions(struct str data, struct hot *h, uint32_t *nfunctions, struct err *e)
{
	struct sealed s = { 0 };
	struct str file = STR(""), module = STR("");
	uint64_t n = 0;
	bool ok = seal_open(&s, data, e);

	if (ok) {
		n = get_number(&s.head);
		ok = seal_unpack(&s, e);
	}
	for (uint64_t i = 0; ok && i < n; i++) {
		struct str name = get_text(&s.body);

		get_again(&s.body, &file);
		get_again(&s.body, &module);
		ok = !s.body.is_bad &&
		     (!h || hot_new_function(h, name, file, module) == *nfunctions);
		++*nfunctions;
		if (!ok)
			err_set(e, ERR_FORMAT, "functions are damaged");
	}
	sealed_release(&s);
	return ok;
}

bool kept_check_functions(struct str data, uint32_t *nfunctions, struct err *e)
{
	return get_functions(data, NULL, nfunctions, e);
}

static bool read_functions(struct store *s, struct db *db, struct err *e)
{
	sqlite3_stmt *rows = db_bind(db, SQL_KEPT_FUNCTIONS, NULL, 0, e);
	enum db_result r = rows ? DB_ROW : DB_FAILED;
	bool ok = true;

	while (ok && r == DB_ROW && (r = db_step(db, rows, e)) == DB_ROW)
		ok = get_functions(db_blob(rows, 0), &s->hot, &s->kept.nfunctions, e);
	if (rows)
		sqlite3_reset(rows);
	return ok && r == DB_DONE;
}

static bool read_all(struct store *s, struct err *e)
{
	struct db *db = store_reader(s, e);
	int64_t until = 0;
	bool ok = db && read_functions(s, db, e) && db_number(db, SQL_KEPT_UNTIL, &until, e);

	store_reader_back(s, db);
	if (ok)
		atomic_store(&s->kept.until, until);
	return ok;
}

void kept_begin(struct store *s)
{
	struct kept *k = &s->kept;
	struct err e;

	pthread_mutex_lock(&k->lock);
	if (!k->is_read) {
		k->is_read = true;
		k->names = s->hot.names;
		k->is_bad = !read_all(s, &e);
		if (k->is_bad)
			store_log(s, "%s: what is known of functions is not used: %s", s->path,
				  e.text);
	}
	pthread_mutex_unlock(&k->lock);
}

/* Are numbers of functions in the database those in memory? */
static bool is_usable(struct store *s)
{
	struct kept *k = &s->kept;
	bool is_usable;

	pthread_mutex_lock(&k->lock);
	is_usable = k->is_read && !k->is_bad && k->names == s->hot.names;
	pthread_mutex_unlock(&k->lock);
	return is_usable;
}

/* ---- sums */

/* Those without a name were written before there were any, or rounds: they are made again. */
enum { HAS_TYPE = 1, IS_GAUGE = 2, HAS_NAMER = 4, IS_OPEN = 8, HAS_NAME = 16 };

static void put_double(struct buf *out, double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	put_number(out, bits);
}

static double get_double(struct reader *r)
{
	uint64_t bits = get_number(r);
	double number;

	memcpy(&number, &bits, sizeof(number));
	return number;
}

static void put_sum(struct buf *out, struct store *s, const struct hot_packed *p)
{
	size_t begin = seal_begin(out);
	struct str unit = hot_text(&s->hot, p->sum.unit), name = hot_text(&s->hot, p->sum.name);

	put_number(out, (p->sum.has_type ? HAS_TYPE : 0) | (p->sum.is_gauge ? IS_GAUGE : 0) |
				(s->namer ? HAS_NAMER : 0) | (p->key.is_open ? IS_OPEN : 0) |
				HAS_NAME);
	put_double(out, p->sum.total);
	put_number(out, p->sum.nprofiles);
	put_signed(out, p->sum.first);
	put_signed(out, p->sum.last);
	put_signed(out, p->sum.duration);
	put_number(out, unit.n);
	buf_str(out, unit);
	put_number(out, name.n);
	buf_str(out, name);
	put_number(out, p->sum.ntyped);
	put_number(out, p->n);
	if (p->key.is_open) {
		put_signed(out, p->sum.seen.nrows);
		put_signed(out, p->sum.seen.last_row);
		put_signed(out, p->sum.seen.last_time);
	}
	if (p->sum.is_gauge)
		put_double(out, p->sum.rounds);
	seal_end(out, begin, STR(""), p->data, LEVEL, NULL);
}

struct sum_type {
	struct str name, unit;
};

static bool get_sum(struct sealed *s, struct str data, struct hot_packed *p, struct sum_type *type,
		    unsigned *kind, struct err *e)
{
	if (!seal_open(s, data, e))
		return false;
	*kind = (unsigned)get_below(&s->head, 2 * HAS_NAME);
	p->sum.total = get_double(&s->head);
	p->sum.has_type = *kind & HAS_TYPE;
	p->sum.is_gauge = *kind & IS_GAUGE;
	p->sum.nprofiles = get_number(&s->head);
	p->sum.first = get_signed(&s->head);
	p->sum.last = get_signed(&s->head);
	p->sum.duration = get_signed(&s->head);
	p->sum.generation = HOT_EVER;
	*type = (struct sum_type){ .unit = get_text(&s->head) };
	if (*kind & HAS_NAME) {
		type->name = get_text(&s->head);
		p->sum.ntyped = get_number(&s->head);
	}
	p->n = get_count(&s->head);
	if (*kind & IS_OPEN) {
		p->sum.seen.nrows = get_signed(&s->head);
		p->sum.seen.last_row = get_signed(&s->head);
		p->sum.seen.last_time = get_signed(&s->head);
	}
	if ((*kind & HAS_NAME) && (*kind & IS_GAUGE))
		p->sum.rounds = get_double(&s->head);
	if (s->head.is_bad || !(p->sum.rounds >= 0) || !seal_unpack(s, e))
		return err_set(e, ERR_FORMAT, "head of a sum is damaged");
	p->data = (struct str){ (const char *)s->dense.p, (size_t)(s->dense.end - s->dense.p) };
	return true;
}

bool kept_check_sum(struct str data, uint32_t nfunctions, struct err *e)
{
	struct sealed s = { 0 };
	struct hot_packed p = { 0 };
	struct sum_type type;
	unsigned kind;
	bool ok = get_sum(&s, data, &p, &type, &kind, e);
	uint64_t function = 0;

	get_number(&s.dense);
	for (uint32_t i = 0; ok && i < p.n; i++) {
		function += get_below(&s.dense, nfunctions);
		get_number(&s.dense);
		get_number(&s.dense);
		ok = !s.dense.is_bad && function < nfunctions;
		if (!ok)
			err_set(e, ERR_FORMAT, "it has functions that are not there");
	}
	sealed_release(&s);
	return ok;
}

static void load_row(struct store *s, const struct picked *series, const struct hot_key *key,
		     struct str data)
{
	struct sealed sealed = { 0 };
	struct hot_packed p = { .key = *key, .nchanges = series->changes.n };
	struct sum_type type;
	struct err ignored;
	unsigned kind;

	if (get_sum(&sealed, data, &p, &type, &kind, &ignored) && (kind & HAS_NAME) &&
	    !(kind & HAS_NAMER) == !s->namer && !(kind & IS_OPEN) == !key->is_open) {
		p.sum.name = hot_string(&s->hot, type.name);
		p.sum.unit = hot_string(&s->hot, type.unit);
		hot_put_packed(&s->hot, &p);
	}
	sealed_release(&sealed);
}

bool kept_load(struct store *s, const struct picked *series, const struct hot_key *key)
{
	struct db *db;
	sqlite3_stmt *row;
	enum db_result r;
	struct err ignored;
	unsigned length;

	if (key->sample_type || !length_of(key, &length) || !is_usable(s))
		return false;
	db = store_reader(s, &ignored);
	row = db ? db_bind(db, SQL_KEPT,
			   DB_VALUES(DB_INT(row_of(series->series, key->start, length))), &ignored)
		 : NULL;
	r = row ? db_step(db, row, &ignored) : DB_FAILED;
	if (r == DB_ROW) {
		load_row(s, series, key, db_blob(row, 0));
		sqlite3_reset(row);
	}
	store_reader_back(s, db);
	return r == DB_ROW;
}

/* ---- saving */

struct saving {
	bool is_open; /* windows */
	struct hot_packed sums[SUMS_IN_COMMIT];
	size_t n;
	int64_t since, until;
	uint32_t nfunctions; /* that there are */
	struct arena arena;
	struct buf scratch;
};

static bool save_functions(struct store *s, struct db *db, struct saving *v, struct err *e)
{
	for (uint32_t at = s->kept.nfunctions; at < v->nfunctions; at += FUNCTIONS_IN_ROW) {
		uint32_t n = v->nfunctions - at;

		v->scratch.n = 0;
		put_functions(&v->scratch, &s->hot, at,
			      n < FUNCTIONS_IN_ROW ? n : FUNCTIONS_IN_ROW);
		if (!db_run(db, SQL_NEW_KEPT_FUNCTIONS,
			    DB_VALUES(DB_INT(at), DB_BLOB(buf_view(&v->scratch))), e))
			return false;
	}
	return true;
}

/* NULL: it is not there, or has changed since. */
static struct series *live_series(struct store *s, const struct hot_packed *p)
{
	struct series *live = catalog_series(&s->catalog, p->key.series);

	if (!live || !live->is_saved ||
	    !changes_hold(&live->changes, p->nchanges, p->key.start,
			  int_add(p->key.start, p->key.length)))
		return NULL;
	return live;
}

static void note_until(struct series *live, unsigned length, int64_t until)
{
	int64_t *known = length == OPEN ? &live->open_until : &live->kept_until;

	if (*known < until)
		*known = until;
}

/* A piece is not open any more. */
static bool drop_open(struct db *db, const struct hot_packed *p, unsigned length, struct err *e)
{
	int64_t row = row_of(p->key.series, p->key.start, OPEN);

	return length != OPEN - 1 ||
	       db_run(db, SQL_DROP_KEPT, DB_VALUES(DB_INT(row), DB_INT(row), DB_INT(INT64_MIN)), e);
}

static bool save_sum(struct store *s, struct db *db, struct saving *v, const struct hot_packed *p,
		     struct err *e)
{
	int64_t end = p->key.start + p->key.length, old = end - TOP_DAY / 4;
	struct series *live;
	unsigned length;

	if (!length_of(&p->key, &length) || p->key.start < 0 || end < v->since)
		return true;
	/* Whoever changes a series is this thread. */
	pthread_rwlock_rdlock(&s->catalog.lock);
	live = live_series(s, p);
	if (live)
		note_until(live, length, end + 1);
	pthread_rwlock_unlock(&s->catalog.lock);
	if (!live)
		return true;
	v->scratch.n = 0;
	put_sum(&v->scratch, s, p);
	if (!db_run(db, SQL_NEW_KEPT,
		    DB_VALUES(DB_INT(row_of(p->key.series, p->key.start, length)), DB_INT(end),
			      DB_BLOB(buf_view(&v->scratch))),
		    e) ||
	    !drop_open(db, p, length, e))
		return false;
	/* Once in an hour, what will not be asked for again. */
	return length != SHORT - 1 ||
	       (db_run(db, SQL_DROP_KEPT,
		       DB_VALUES(DB_INT(row_of(p->key.series, 0, 0)),
				 DB_INT(row_of(p->key.series, v->since - TOP_DAY, 0)),
				 DB_INT(INT64_MIN)),
		       e) &&
		db_run(db, SQL_DROP_SHORT_KEPT,
		       DB_VALUES(DB_INT(row_of(p->key.series, 0, 0)),
				 DB_INT(row_of(p->key.series, old, 0)), DB_INT(SHORT)),
		       e));
}

static bool save(struct store *s, struct db *db, void *ctx, struct err *e)
{
	struct saving *v = ctx;
	bool ok = save_functions(s, db, v, e);

	for (size_t i = 0; ok && i < v->n; i++)
		ok = save_sum(s, db, v, &v->sums[i], e);
	/* After the last. */
	return ok && (v->n || v->is_open ||
		      db_run(db, SQL_NEW_KEPT,
			     DB_VALUES(DB_INT(UNTIL_ROW), DB_INT(v->until), DB_BLOB(STR(""))), e));
}

static void note_saved(struct store *s, void *ctx, bool is_ok)
{
	const struct saving *v = ctx;

	if (is_ok)
		s->kept.nfunctions = v->nfunctions;
}

/* Profiles need it more. */
static bool is_short_of_room(struct store *s)
{
	int64_t thin = writer_share(&s->writer, s->writer.shares.thin_pages);

	return atomic_load(&s->writer.is_full) ||
	       (thin && atomic_load(&s->writer.pages_in_use) > thin / 8 * 7);
}

/* What is there is of other numbers of functions. */
static bool begin_anew(struct store *s, struct err *e)
{
	uint64_t n = 1;

	while (n)
		if (!kept_drop_some(s, &n, e))
			return false;
	pthread_mutex_lock(&s->kept.lock);
	s->kept.names = s->hot.names;
	s->kept.is_bad = false;
	pthread_mutex_unlock(&s->kept.lock);
	return true;
}

static void save_all(struct store *s, struct saving *v, const atomic_bool *stop)
{
	size_t most = keep_piece(s) < SUMS_IN_COMMIT ? keep_piece(s) : SUMS_IN_COMMIT, at = 0;
	struct err ignored;
	bool ok = true;

	for (v->n = 1; ok && v->n && !stop_asked(stop);) {
		struct writer_task task = { .work = save, .after = note_saved, .ctx = v };

		v->n = hot_take_new(&s->hot, v->is_open, &v->arena, v->sums, most, &at);
		v->nfunctions = hot_nfunctions(&s->hot);
		ok = (v->is_open && !v->n) || writer_do(s, &task, &ignored);
		arena_release(&v->arena);
	}
	buf_release(&v->scratch);
}

void kept_save(struct store *s, int64_t since, int64_t until, const atomic_bool *stop)
{
	struct saving *v = xcalloc(1, sizeof(*v));
	struct err ignored;

	v->since = since;
	v->until = until;
	if (!is_short_of_room(s) && (is_usable(s) || begin_anew(s, &ignored)))
		save_all(s, v, stop);
	atomic_store(&s->kept.until, until);
	hot_drop_open(&s->hot, until);
	free(v);
}

void kept_save_open(struct store *s, const atomic_bool *stop)
{
	struct saving *v = xcalloc(1, sizeof(*v));

	v->is_open = true;
	if (hot_has_new_open(&s->hot) && !is_short_of_room(s) && is_usable(s))
		save_all(s, v, stop);
	free(v);
}

/* ---- less */

struct dropping {
	uint64_t n;
};

static bool drop_some(struct store *s, struct db *db, void *ctx, struct err *e)
{
	struct dropping *d = ctx;

	(void)s;
	if (!db_run(db, SQL_DROP_SOME_KEPT, DB_VALUES(DB_INT(DROPPED_IN_COMMIT)), e))
		return false;
	d->n = (uint64_t)sqlite3_changes(db->sqlite);
	/* Numbers that no sum has may mean anything. */
	return d->n || db_do(db, SQL_DROP_KEPT_FUNCTIONS, e);
}

static void note_dropped(struct store *s, void *ctx, bool is_ok)
{
	const struct dropping *d = ctx;

	if (is_ok && !d->n)
		s->kept.nfunctions = 0;
}

bool kept_drop_some(struct store *s, uint64_t *n, struct err *e)
{
	struct dropping d = { 0 };
	struct writer_task task = { .work = drop_some, .after = note_dropped, .ctx = &d };
	bool ok = writer_do(s, &task, e);

	*n = d.n;
	return ok;
}

/* Up to where there may be any: the end of the last one's day. */
static bool find_until(struct db *db, struct series *series, struct err *e)
{
	sqlite3_stmt *row = db_bind(
		db, SQL_LAST_KEPT,
		DB_VALUES(DB_INT(row_of(series->id, 0, 0)), DB_INT(last_row_of(series->id))), e);

	if (!row || db_step(db, row, e) != DB_ROW)
		return false;
	series->kept_until = 0;
	if (db_int(row, 0))
		series->kept_until = start_of(db_int(row, 0)) / TOP_DAY * TOP_DAY + TOP_DAY;
	series->open_until = series->kept_until;
	sqlite3_reset(row);
	return true;
}

static int64_t first_row_of(int64_t series, int64_t from)
{
	return row_of(series, from < 0 ? 0 : from - from % TOP_DAY, 0);
}

bool kept_change(struct db *db, struct series *series, int64_t time, bool may_be_base,
		 struct err *e)
{
	if (series->kept_until == INT64_MAX && !find_until(db, series, e))
		return false;
	if (may_be_base && time < series->open_until)
		return kept_delete(db, series->id, time, INT64_MAX, e);
	/* Open windows tell by what they have seen. */
	return time >= series->kept_until ||
	       db_run(db, SQL_DROP_CLOSED_KEPT,
		      DB_VALUES(DB_INT(first_row_of(series->id, time)),
				DB_INT(last_row_of(series->id)), DB_INT(time), DB_INT(OPEN)),
		      e);
}

bool kept_delete(struct db *db, int64_t series, int64_t from, int64_t to, struct err *e)
{
	int64_t last = last_row_of(series);

	/* Differences to what is gone are others, too (delta.h). */
	if (to < INT64_MAX - DELTA_MAX_GAP - TOP_DAY)
		last = row_of(series, to + DELTA_MAX_GAP + TOP_PIECE, 0);
	return db_run(db, SQL_DROP_KEPT,
		      DB_VALUES(DB_INT(first_row_of(series, from)), DB_INT(last), DB_INT(from)), e);
}
