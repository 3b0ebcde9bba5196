/* top_windows.c - what functions of a series weigh in a window of time: known already, made of
 * shorter ones that are, or read. */
#include "store/top.h"

#include <math.h>
#include <stdlib.h>

#include "base/int.h"
#include "base/unit.h"
#include "store/kept.h"
#include "store/meaning.h"
#include "store/rounds.h"

#define MAX_KEPT (400 * TOP_DAY) /* before that, long windows, of which nothing is kept */
enum { MAX_KNOWN = 1 << 16 };

const int64_t top_lengths[TOP_NLEVELS] = { TOP_DAY, TOP_DAY / 4, TOP_HOUR, TOP_HOUR / 2,
					   TOP_PIECE };
enum { PIECE_LEVEL = TOP_NLEVELS - 1 };
#define RECENT (3 * TOP_DAY)

/* ---- where windows end */

/* Of sums that stand for profiles which are not there any more all is where they begin: so what is
 * shorter says something else than it did before. */
static bool may_keep(const struct picked *series, int64_t at, int64_t length)
{
	return (length >= TOP_HOUR || at >= series->hours_until) &&
	       (length >= TOP_DAY || at >= series->days_until);
}

/* From where on something may be kept. */
static int64_t next_start(const struct picked *series, int64_t at)
{
	int64_t length = TOP_PIECE;

	if (at < series->hours_until)
		length = TOP_HOUR;
	if (at < series->days_until)
		length = TOP_DAY;
	return at - at % length + length;
}

/* Monday 0:00 of the next week. */
static int64_t next_week(int64_t at)
{
	enum { THURSDAY = 3 };
	int64_t week = 7 * TOP_DAY, since = at + THURSDAY * TOP_DAY;

	return at - since % week + week;
}

/* Before the time of which sums are kept. */
static struct top_window cut_old(const struct topping *t, int64_t at, int64_t to)
{
	int64_t end = to - to % TOP_DAY - MAX_KEPT + TOP_DAY - 1;

	if (t->has_weeks && next_week(at) <= end)
		end = next_week(at) - 1;
	return (struct top_window){ at, end, TOP_ONCE, 0 };
}

struct top_window top_cut(const struct topping *t, const struct picked *series, int64_t at,
			  int64_t to)
{
	int64_t next;

	/* Halves are told apart. */
	if (at < t->middle && t->middle <= to)
		to = t->middle - 1;
	if (int_distance(at, to) > MAX_KEPT)
		return cut_old(t, at, to);
	for (unsigned i = 0; i < TOP_NLEVELS; i++)
		if (at % top_lengths[i] == 0 && int_distance(at, to) >= top_lengths[i] - 1 &&
		    at + top_lengths[i] <= t->settled && may_keep(series, at, top_lengths[i]))
			return (struct top_window){ at, at + top_lengths[i] - 1, TOP_KEPT, i };
	next = next_start(series, at);
	if (next <= to)
		to = next - 1;
	if (at % TOP_PIECE == 0 && may_keep(series, at, TOP_PIECE) && at + TOP_PIECE > t->settled)
		return (struct top_window){ at, to, TOP_OPEN, PIECE_LEVEL };
	return (struct top_window){ at, to, TOP_ONCE, 0 };
}

/* ---- reading */

static bool same_known(const void *ctx, uint32_t index)
{
	const struct top_part *p = ((const void *const *)ctx)[0];
	const struct top_known *k = ((const void *const *)ctx)[1];

	return p->known.at[index].book == k->book && p->known.at[index].id == k->id;
}

struct adding {
	struct top_part *p;
	int64_t book;
	double ratio; /* of units */
};

/* Most functions are those of the window before. */
static uint32_t number_of(struct adding *g, const struct book_function_sum *f)
{
	struct top_part *p = g->p;
	struct top_known new = { .book = g->book, .id = f->id };
	const void *key[2] = { p, &new };
	uint64_t hash = hash_mix(hash_mix(p->t->hot->seed, (uint64_t) new.book), new.id);
	uint32_t i;

	if (f->id == UINT64_MAX)
		return hot_function(p->t->hot, f->name, f->file, f->module);
	i = map_get(&p->known_map, hash, same_known, key);
	if (i != MAP_NONE)
		return p->known.at[i].function;
	if (p->known.n >= MAX_KNOWN) {
		p->known.n = 0;
		map_release(&p->known_map);
		p->known_map = (struct map){ 0 };
	}
	new.function = hot_function(p->t->hot, f->name, f->file, f->module);
	map_add(&p->known_map, hash, p->known.n);
	vec_push(&p->known, new);
	return new.function;
}

static void add_function(void *ctx, const struct book_function_sum *f)
{
	struct adding *g = ctx;

	vec_push(&g->p->sum.weights,
		 (struct hot_weight){ number_of(g, f), int_from_double(round(f->flat * g->ratio)),
				      int_from_double(round(f->cum * g->ratio)) });
}

static void scale(struct hot_sum *sum, double ratio)
{
	sum->total *= ratio;
	for (size_t i = 0; i < sum->weights.n; i++) {
		struct hot_weight *w = &sum->weights.at[i];

		w->flat = int_from_double(round((double)w->flat * ratio));
		w->cum = int_from_double(round((double)w->cum * ratio));
	}
}

/* Does the sum take the values of so many profiles, and times what? A window that has several kinds
 * (kind.h) has that which most profiles have. */
static bool take_kind(struct hot *hot, struct hot_sum *to, const struct hot_sum *from,
		      double *ratio)
{
	struct str had = hot_text(hot, to->unit), comes = hot_text(hot, from->unit);
	bool is_same_name = to->has_type && to->name == from->name;

	*ratio = 1;
	if (is_same_name && to->unit != from->unit && unit_same_family(had, comes)) {
		if (!unit_is_finer(comes, had)) {
			*ratio = kind_ratio(comes, had);
		} else {
			scale(to, kind_ratio(had, comes));
			to->unit = from->unit;
		}
	} else if (!is_same_name || to->unit != from->unit) {
		if (to->has_type && from->ntyped <= to->ntyped)
			return false;
		to->weights.n = 0;
		to->total = 0;
		to->ntyped = 0;
		to->name = from->name;
		to->unit = from->unit;
		to->is_gauge = false;
	}
	to->has_type = true;
	to->is_gauge |= from->is_gauge;
	to->ntyped += from->ntyped;
	return true;
}

static bool take_sum(void *ctx, const struct sum *sum, struct err *e)
{
	struct top_part *p = ctx;
	struct adding adding = { p, sum->book->id, 1 };
	const struct book *book = sum->book->book;
	struct str name = p->t->params->sample_type;
	uint32_t type = book_find_type(book, sum->head, name);
	struct hot_sum more = { .ntyped = sum->nprofiles };

	(void)e;
	/* Others may have the type: a service that has not is left out. */
	if (type == NONE) {
		book_no_type(book, sum->head, name, &p->no_type);
		return true;
	}
	name = book_type_name(book, sum->head, type);
	more.name = hot_string(p->t->hot, name);
	more.unit = hot_string(p->t->hot, book_type_unit(book, sum->head, type));
	more.is_gauge = meaning_of(p->type, name) == MEANING_GAUGE;
	if (!take_kind(p->t->hot, &p->sum, &more, &adding.ratio))
		return true;
	p->sum.total += book_sum_total(sum->sum, type) * adding.ratio;
	book_sum_functions(sum->sum, type, &p->naming, add_function, &adding);
	return true;
}

static struct counts counts_of(const struct hot_sum *sum)
{
	return (struct counts){ .nprofiles = sum->nprofiles,
				.first = sum->first,
				.last = sum->last };
}

/* More of the same series. */
static void add_head(struct hot_sum *to, const struct hot_sum *more)
{
	struct counts all = counts_of(to), added = counts_of(more);

	counts_add(&all, &added);
	to->nprofiles = all.nprofiles;
	to->first = all.first;
	to->last = all.last;
	if (more->nprofiles)
		to->duration = int_add(to->duration, more->duration);
	to->rounds += more->rounds;
}

static bool add_row(void *ctx, const struct scan_row *row, struct err *e)
{
	struct top_part *p = ctx;
	struct hot_sum more = { .first = row->time,
				.last = row->last,
				.nprofiles = row->nprofiles,
				.duration = row->duration > 0 ? row->duration : 0 };
	bool is_added = false;

	if (row->book && !sums_add(&p->sums, row, 0, &is_added, e))
		return false;
	if (is_added)
		add_head(&p->sum, &more);
	return true;
}

static int by_function(const void *a, const void *b)
{
	const struct hot_weight *x = a, *y = b;

	return (x->function > y->function) - (x->function < y->function);
}

/* In order, and each once. */
static void join_weights(struct hot_sum *sum)
{
	size_t n = 0;

	if (sum->weights.n)
		qsort(sum->weights.at, sum->weights.n, sizeof(*sum->weights.at), by_function);
	for (size_t i = 0; i < sum->weights.n; i++) {
		const struct hot_weight *w = &sum->weights.at[i];
		struct hot_weight *last = n ? &sum->weights.at[n - 1] : NULL;

		if (last && last->function == w->function) {
			last->flat = int_add(last->flat, w->flat);
			last->cum = int_add(last->cum, w->cum);
		} else {
			sum->weights.at[n++] = *w;
		}
	}
	sum->weights.n = n;
}

static void clear(struct hot_sum *sum)
{
	*sum = (struct hot_sum){ .weights = { sum->weights.at, 0, sum->weights.cap },
				 .generation = HOT_EVER };
}

struct top_opening {
	const struct picked *series;
	const struct top_window *w;
	struct store_query *q;
	struct hot_seen seen; /* now */
};

/* Only what is new is read, if what was there is as it was. */
static bool look(void *ctx, struct db *db, struct err *e)
{
	struct top_part *p = ctx;
	struct top_opening *o = p->opening;
	const struct hot_seen *before = &p->sum.seen;
	sqlite3_stmt *row = db_bind(db, SQL_SEEN,
				    DB_VALUES(DB_INT(o->series->series), DB_INT(o->w->from),
					      DB_INT(o->w->to), DB_INT(before->last_time)),
				    e);

	if (!row || db_step(db, row, e) != DB_ROW)
		return false;
	o->seen = (struct hot_seen){ db_int(row, 0), db_int(row, 1), db_int(row, 2) };
	if (db_int(row, 3) != before->nrows || db_int(row, 4) != before->last_row)
		clear(&p->sum);
	sqlite3_reset(row);
	if (p->max_rows &&
	    (o->seen.nrows > p->max_rows || o->seen.nrows - before->nrows > p->max_new))
		return err_set(e, ERR_LIMIT, "too many profiles of a series are new");
	if (before->nrows)
		o->q->from = before->last_time + 1;
	if (before->nrows && before->nrows == o->seen.nrows)
		o->q->to = before->last_time;
	return true;
}

/* How often processes told what there is. */
static bool count_rounds(struct top_part *p, const struct picked *series,
			 const struct top_window *w, struct err *e)
{
	struct rounds told = {
		.series = series->series, .from = w->from, .to = w->to, .nprofiles = p->sum.ntyped
	};

	return rounds_count(p->t->s, &told, &p->sum.rounds, e);
}

/* Adds to p->sum. *is_whole: no names are to come. */
static bool scan_window(struct top_part *p, struct picked *series, const struct top_window *w,
			bool *is_whole, struct err *e)
{
	struct store_query q = { .from = w->from, .to = w->to, .stop = p->t->params->query.stop };
	uint64_t nmissing = p->naming.nmissing, nasked = p->naming.nasked;
	struct scan scan = { .s = p->t->s,
			     .q = &q,
			     .has_data = true,
			     .as_type = true,
			     .begin = p->opening ? look : NULL,
			     .each = add_row,
			     .ctx = p,
			     .picked = series,
			     .npicked = 1 };

	if (p->opening)
		p->opening->q = &q;
	if (!scan_run(&scan, e) || !sums_flush(&p->sums, e))
		return false;
	join_weights(&p->sum);
	if (p->naming.nasked != nasked)
		p->sum.generation = p->t->generation;
	*is_whole = p->naming.nmissing == nmissing;
	return !p->sum.is_gauge || count_rounds(p, series, w, e);
}

/* ---- what is known */

static struct hot_key key_of(const struct top_part *p, const struct picked *series, int64_t start,
			     unsigned level, bool is_open)
{
	return (struct hot_key){ .series = series->series,
				 .start = start,
				 .length = top_lengths[level] - 1,
				 .sample_type = p->t->sample_type,
				 .is_open = is_open,
				 .changes = &series->changes,
				 .generation = p->t->generation };
}

static bool is_there(struct top_part *p, const struct picked *series, const struct hot_key *key)
{
	return hot_has(p->t->hot, key) ||
	       (kept_load(p->t->s, series, key) && hot_has(p->t->hot, key));
}

/* The same, and what it is: p->sum, which is empty if it is not. */
static bool find(struct top_part *p, const struct picked *series, const struct hot_key *key)
{
	clear(&p->sum);
	return hot_get(p->t->hot, key, &p->sum) ||
	       (kept_load(p->t->s, series, key) && hot_get(p->t->hot, key, &p->sum));
}

/* Is it known, or all that it is made of? */
static bool is_known(struct top_part *p, const struct picked *series, int64_t start, unsigned level)
{
	struct hot_key key = key_of(p, series, start, level, false);
	int64_t end = start + top_lengths[level];

	if (is_there(p, series, &key))
		return true;
	if (level + 1 == TOP_NLEVELS || !may_keep(series, start, top_lengths[level + 1]))
		return false;
	for (; start < end; start += top_lengths[level + 1])
		if (!is_known(p, series, start, level + 1))
			return false;
	return true;
}

/* Is it to be made of shorter ones? Those that people ask for begin at another hour in an hour:
 * so each hour is read once, whatever it is a part of. */
static bool has_parts(struct top_part *p, const struct picked *series, const struct top_window *w)
{
	if (w->level + 1 == TOP_NLEVELS || !may_keep(series, w->from, top_lengths[w->level + 1]))
		return false;
	return (w->level < TOP_HOUR_LEVEL && w->from > p->t->settled - RECENT) ||
	       is_known(p, series, w->from, w->level);
}

/* Which may be changed. */
static void add_part(struct hot *hot, struct hot_sum *to, struct hot_sum *part)
{
	double ratio;

	if (!part->nprofiles)
		return;
	add_head(to, part);
	if (!part->has_type || !take_kind(hot, to, part, &ratio))
		return;
	if (ratio != 1)
		scale(part, ratio);
	to->total += part->total;
	if (part->generation != HOT_EVER)
		to->generation = part->generation;
	vec_reserve(&to->weights, part->weights.n);
	if (part->weights.n)
		memcpy(to->weights.at + to->weights.n, part->weights.at,
		       part->weights.n * sizeof(*part->weights.at));
	to->weights.n += part->weights.n;
}

static bool read_window(struct top_part *p, struct picked *series, const struct top_window *w,
			bool *is_whole, struct err *e);

/* The sum of shorter windows: p->sum. */
static bool read_parts(struct top_part *p, struct picked *series, const struct top_window *w,
		       bool *is_whole, struct err *e)
{
	struct hot_sum all = { .generation = HOT_EVER };
	struct top_window part = { .from = w->from, .kind = TOP_KEPT, .level = w->level + 1 };
	bool ok = true, is_part_whole;

	*is_whole = true;
	for (; ok && part.from <= w->to; part.from = part.to + 1) {
		part.to = part.from + top_lengths[part.level] - 1;
		ok = read_window(p, series, &part, &is_part_whole, e);
		if (ok)
			add_part(p->t->hot, &all, &p->sum);
		*is_whole &= ok && is_part_whole;
	}
	join_weights(&all);
	vec_release(&p->sum.weights);
	p->sum = all;
	return ok;
}

/* ---- open windows */

/* A piece that was read before, when it was not yet complete, or not at all. */
static bool read_piece(struct top_part *p, struct picked *series, const struct top_window *w,
		       bool *is_whole, struct err *e)
{
	struct hot_key key = key_of(p, series, w->from, PIECE_LEVEL, true);
	struct top_opening o = { .series = series, .w = w };
	bool ok;

	/* Who asks for a time that is past must not get what came after it. */
	if (find(p, series, &key) && p->sum.seen.last_time > w->to)
		clear(&p->sum);
	p->opening = &o;
	ok = scan_window(p, series, w, is_whole, e);
	p->opening = NULL;
	p->sum.seen = o.seen;
	if (ok && *is_whole && w->kind == TOP_OPEN)
		hot_put(p->t->hot, &key, &p->sum);
	return ok;
}

void top_part_init(struct top_part *p, struct topping *t)
{
	*p = (struct top_part){ .t = t, .naming.by = t->s->namer };
	sums_init(&p->sums, t->s, take_sum, p);
}

void top_part_release(struct top_part *p)
{
	sums_release(&p->sums);
	vec_release(&p->weights.at);
	vec_release(&p->levels.weights.at);
	vec_release(&p->shares);
	vec_release(&p->slots);
	vec_release(&p->groups.of);
	vec_release(&p->locals);
	vec_release(&p->known);
	vec_release(&p->sum.weights);
	map_release(&p->weights.map);
	map_release(&p->levels.weights.map);
	map_release(&p->share_map);
	map_release(&p->known_map);
	buf_release(&p->scratch);
}

static bool read_window(struct top_part *p, struct picked *series, const struct top_window *w,
			bool *is_whole, struct err *e)
{
	struct hot_key key = key_of(p, series, w->from, w->level, false);
	bool is_kept = w->kind == TOP_KEPT, ok;

	clear(&p->sum);
	*is_whole = true;
	if (is_kept && find(p, series, &key))
		return true;
	if (w->kind != TOP_ONCE && w->level == PIECE_LEVEL)
		ok = read_piece(p, series, w, is_whole, e);
	else if (is_kept && has_parts(p, series, w))
		ok = read_parts(p, series, w, is_whole, e);
	else
		ok = scan_window(p, series, w, is_whole, e);
	if (ok && is_kept && *is_whole)
		hot_put(p->t->hot, &key, &p->sum);
	return ok;
}

bool top_read(struct top_part *p, struct picked *series, const struct top_window *w, struct err *e)
{
	bool is_whole;

	return read_window(p, series, w, &is_whole, e);
}
