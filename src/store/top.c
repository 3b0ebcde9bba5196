/* top.c - the functions that weigh most, over all services.
 *
 * A series' time is cut into windows: days, hours and pieces of five minutes that have come to
 * rest, of which sums by function are kept (hot.h), and the rest. Services are divided among
 * threads.
 */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/int.h"
#include "base/parallel.h"
#include "store/by.h"
#include "store/meaning.h"
#include "store/naming.h"
#include "store/running.h"
#include "store/sums.h"

#define SECOND ((int64_t)1000000000)
#define PIECE (300 * SECOND)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)
enum { MAX_PARTS = 16, MIN_SERIES = 8 }; /* of a part */
#define MAX_KEPT (400 * DAY)		 /* before that, one window */

/* A row to be. */
struct weight {
	uint32_t key; /* function, or string that is a group */
	uint32_t by;  /* string */
	double flat, cum;
	double ran, late; /* flat, times how much of what ran was profiled; in the second half */
	int64_t service;  /* that was the last to add to it */
	uint32_t nservices;
};

/* What a series has of a function, before it is known how long it ran. */
struct local {
	uint32_t function;
	double flat, cum, late;
};

struct topping {
	struct store *s;
	const struct store_top_params *params;
	struct hot *hot;
	struct picked *picked;
	uint32_t sample_type; /* string */
	int64_t settled;      /* what is older has come to rest */
	int64_t from, to, middle;
	size_t max_weights;
	atomic_bool is_failed;
	pthread_mutex_t grouping;
	size_t first[MAX_PARTS + 1]; /* series of each part */
	struct part *parts;
	size_t nparts;
};

/* What one thread does. */
struct part {
	struct topping *t;
	struct sums sums;
	struct buf scratch;
	vec(struct weight) weights;
	struct map map;
	vec(uint32_t) slots;  /* of functions: number in `locals` + 1 */
	vec(uint32_t) groups; /* of functions: string + 1 */
	vec(struct local) locals;
	double total, ran;
	uint64_t nprofiles, nservices;
	vec(uint64_t) nprofiles_of; /* each value of `by`, which is a string's number */
	uint32_t unit;
	bool has_unit, is_gauge;
	int64_t first, last; /* times of profiles */
	struct err no_type;  /* of what was left out */
	struct err e;
	bool ok;
	/* of the window that is being read */
	struct hot_sum sum;
	struct running running;
	struct str type; /* of the profiles */
	struct naming naming;
	bool has_unnamed; /* which may have names later: it is not kept */
};

/* ---- a window */

static void add_function(void *ctx, const struct book_function_sum *f)
{
	struct part *p = ctx;

	p->has_unnamed |= f->is_unnamed;
	vec_push(&p->sum.weights,
		 (struct hot_weight){ hot_function(p->t->hot, f->name, f->file, f->module),
				      int_from_double(round(f->flat)),
				      int_from_double(round(f->cum)) });
}

static bool take_sum(void *ctx, const struct sum *sum, struct err *e)
{
	struct part *p = ctx;
	const struct book *book = sum->book->book;
	struct str name = p->t->params->sample_type;
	uint32_t type = book_find_type(book, sum->head, name), unit;

	/* Others may have the type: a service that has not is left out. */
	if (type == NONE) {
		book_no_type(book, sum->head, name, &p->no_type);
		return true;
	}
	unit = hot_string(p->t->hot, book_type_unit(book, sum->head, type));
	if (p->sum.has_type && unit != p->sum.unit)
		return err_set(e, ERR_USAGE,
			       "some values of a series are in another unit; name a sample type");
	p->sum.has_type = true;
	p->sum.unit = unit;
	p->sum.is_gauge =
		meaning_of(p->type, book_type_name(book, sum->head, type)) == MEANING_GAUGE;
	p->sum.total += book_sum_total(sum->sum, type);
	hot_lock(p->t->hot);
	book_sum_functions(sum->sum, type, &p->naming, add_function, p);
	hot_unlock(p->t->hot);
	return true;
}

static bool add_row(void *ctx, const struct scan_row *row, struct err *e)
{
	struct part *p = ctx;
	bool is_added = false;

	if (row->book && !sums_add(&p->sums, row, 0, &is_added, e))
		return false;
	if (!is_added || !row->nprofiles)
		return true;
	if (!p->sum.nprofiles || row->time < p->sum.first)
		p->sum.first = row->time;
	if (!p->sum.nprofiles || row->last > p->sum.last)
		p->sum.last = row->last;
	p->sum.nprofiles += row->nprofiles;
	p->sum.duration = int_add(p->sum.duration, row->duration > 0 ? row->duration : 0);
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

static bool scan_window(struct part *p, struct picked *series, int64_t from, int64_t to,
			struct err *e)
{
	struct store_query q = { .from = from, .to = to, .stop = p->t->params->query.stop };
	struct scan scan = { .s = p->t->s,
			     .q = &q,
			     .has_data = true,
			     .as_type = true,
			     .each = add_row,
			     .ctx = p,
			     .picked = series,
			     .npicked = 1 };

	if (!scan_run(&scan, e) || !sums_flush(&p->sums, e))
		return false;
	join_weights(&p->sum);
	return true;
}

/* ---- a series */

static uint32_t *slot_of(struct part *p, uint32_t function)
{
	while (p->slots.n <= function)
		vec_push(&p->slots, 0);
	return &p->slots.at[function];
}

static void add_locals(struct part *p, bool is_late)
{
	for (size_t i = 0; i < p->sum.weights.n; i++) {
		const struct hot_weight *w = &p->sum.weights.at[i];
		uint32_t *slot = slot_of(p, w->function);
		struct local *l;

		if (!*slot) {
			vec_push(&p->locals, (struct local){ .function = w->function });
			*slot = (uint32_t)p->locals.n;
		}
		l = &p->locals.at[*slot - 1];
		l->flat += (double)w->flat;
		l->cum += (double)w->cum;
		if (is_late)
			l->late += (double)w->flat;
	}
}

static uint32_t group_of(struct part *p, uint32_t function)
{
	const struct store_top_params *params = p->t->params;
	struct hot *hot = p->t->hot;
	struct hot_function f;

	if (!params->group)
		return function;
	while (p->groups.n <= function)
		vec_push(&p->groups, 0);
	if (p->groups.at[function])
		return p->groups.at[function] - 1;
	f = hot_function_at(hot, function);
	pthread_mutex_lock(&p->t->grouping);
	p->groups.at[function] =
		hot_string(hot, params->group(params->group_ctx, hot_text(hot, f.name),
					      hot_text(hot, f.file), hot_text(hot, f.module))) +
		1;
	pthread_mutex_unlock(&p->t->grouping);
	return p->groups.at[function] - 1;
}

struct weight_key {
	const struct part *p;
	uint32_t key, by;
};

static bool same_weight(const void *ctx, uint32_t index)
{
	const struct weight_key *k = ctx;
	const struct weight *w = &k->p->weights.at[index];

	return w->key == k->key && w->by == k->by;
}

static struct weight *weight_of(struct part *p, uint32_t key, uint32_t by)
{
	struct weight_key k = { p, key, by };
	uint64_t hash = hash_mix(p->t->hot->seed, (uint64_t)key << 32 | by);
	uint32_t i = map_put(&p->map, hash, p->weights.n, same_weight, &k);

	if (i == p->weights.n)
		vec_push(&p->weights, (struct weight){ .key = key, .by = by });
	return &p->weights.at[i];
}

/* What a series has of one value of `by`. */
static void flush_locals(struct part *p, const struct picked *series, uint32_t by, double whole)
{
	for (size_t i = 0; i < p->locals.n; i++) {
		const struct local *l = &p->locals.at[i];
		struct weight *w = weight_of(p, group_of(p, l->function), by);

		*slot_of(p, l->function) = 0;
		w->flat += l->flat;
		w->cum += p->t->params->group ? 0 : l->cum;
		w->ran += l->flat * whole;
		w->late += l->late * whole;
		/* Of groups, what is only called does not count. */
		if (p->t->params->group && l->flat == 0)
			continue;
		w->nservices += w->service != series->service;
		w->service = series->service;
	}
	p->locals.n = 0;
}

static bool take_unit(struct part *p, uint32_t unit, bool is_gauge, struct err *e)
{
	struct hot *hot = p->t->hot;

	if (p->has_unit && unit != p->unit)
		return err_set(e, ERR_USAGE,
			       "some values are in %.*s and some in %.*s; name one "
			       "profile type and sample type",
			       STR_ARG(hot_text(hot, p->unit)), STR_ARG(hot_text(hot, unit)));
	p->unit = unit;
	p->has_unit = true;
	p->is_gauge = is_gauge;
	return true;
}

/* How much of what ran was profiled, of what was added since the last call: its inverse. */
static double whole_of(struct running *r)
{
	double whole;

	running_end(r);
	whole = r->duration > 0 ? (double)r->ran / (double)r->duration : 1;
	*r = (struct running){ 0 };
	return whole;
}

static void note_window(struct part *p, const struct picked *series, uint32_t by)
{
	const struct hot_sum *sum = &p->sum;
	struct scan_row row = { .series = series,
				.time = sum->first,
				.last = sum->last,
				.duration = sum->duration,
				.nprofiles = sum->nprofiles };

	running_add(&p->running, &row);
	if (!p->nprofiles || sum->first < p->first)
		p->first = sum->first;
	if (!p->nprofiles || sum->last > p->last)
		p->last = sum->last;
	while (p->nprofiles_of.n <= by)
		vec_push(&p->nprofiles_of, 0);
	p->nprofiles_of.at[by] += sum->nprofiles;
	p->nprofiles += sum->nprofiles;
	p->total += sum->total;
}

/* The longest window that begins here and has come to rest, or up to where one may begin. */
static int64_t window_end(const struct topping *t, int64_t at, int64_t to, bool *is_kept)
{
	static const int64_t lengths[] = { DAY, DAY / 4, HOUR, HOUR / 2, PIECE };
	int64_t next;

	*is_kept = false;
	if (int_distance(at, to) > MAX_KEPT)
		return to - to % DAY - MAX_KEPT + DAY - 1;
	*is_kept = true;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		if (at % lengths[i] == 0 && int_distance(at, to) >= lengths[i] - 1 &&
		    at + lengths[i] <= t->settled)
			return at + lengths[i] - 1;
	*is_kept = false;
	next = at - at % PIECE + PIECE;
	return next > to || next + PIECE > t->settled ? to : next - 1;
}

static bool read_window(struct part *p, struct picked *series, int64_t from, int64_t to,
			bool is_kept, struct err *e)
{
	struct hot_key key = { .series = series->series,
			       .start = from,
			       .length = to - from,
			       .sample_type = p->t->sample_type,
			       .nchanges = series->nchanges };

	p->sum.weights.n = 0;
	if (is_kept && hot_get(p->t->hot, &key, &p->sum))
		return true;
	p->sum = (struct hot_sum){ .weights = { p->sum.weights.at, 0, p->sum.weights.cap } };
	p->has_unnamed = false;
	if (!scan_window(p, series, from, to, e))
		return false;
	if (is_kept && !(p->has_unnamed && p->t->s->namer))
		hot_put(p->t->hot, &key, &p->sum);
	return true;
}

/* Nothing is before its first profile, and nothing after its last, but for the rest of windows. */
static void clip(const struct topping *t, const struct picked *series, int64_t *from, int64_t *to)
{
	int64_t first = series->counts.first - series->counts.first % DAY;
	int64_t last = series->counts.last - series->counts.last % HOUR;

	*from = t->from > first ? t->from : first;
	*to = int_distance(last, t->to) < HOUR ? t->to : last + HOUR - 1;
	if (*from < 0)
		*from = 0;
}

static bool read_series(struct part *p, struct picked *series, struct err *e)
{
	struct topping *t = p->t;
	uint32_t by = 0, next_by;
	int64_t from, to;
	bool is_first = true;

	clip(t, series, &from, &to);
	for (int64_t at = from, end; at <= to; at = end + 1) {
		bool is_kept;

		end = window_end(t, at, to, &is_kept);
		if (!read_window(p, series, at, end, is_kept, e))
			return false;
		if (!p->sum.nprofiles || !p->sum.has_type)
			continue;
		if (!take_unit(p, p->sum.unit, p->sum.is_gauge, e))
			return false;
		next_by = hot_string(t->hot, by_value(series, at, t->params->by, &p->scratch));
		if (!is_first && next_by != by)
			flush_locals(p, series, by, whole_of(&p->running));
		is_first = false;
		by = next_by;
		note_window(p, series, by);
		add_locals(p, at >= t->middle);
	}
	if (!is_first)
		flush_locals(p, series, by, whole_of(&p->running));
	return p->weights.n <= t->max_weights ||
	       err_set(e, ERR_LIMIT,
		       "max-memory: more than %zu functions; ask for fewer services or less time",
		       t->max_weights);
}

static void run_part(void *ctx, size_t number)
{
	struct topping *t = ctx;
	struct part *p = &t->parts[number];
	int64_t service = 0;

	p->ok = true;
	for (size_t i = t->first[number]; p->ok && i < t->first[number + 1]; i++) {
		uint64_t before = p->nprofiles;

		if (atomic_load(&t->is_failed))
			return;
		p->type = t->picked[i].type;
		p->ok = read_series(p, &t->picked[i], &p->e);
		if (p->nprofiles > before && t->picked[i].service != service) {
			p->nservices++;
			service = t->picked[i].service;
		}
	}
	if (!p->ok)
		atomic_store(&t->is_failed, true);
}

/* ---- all of them */

static void divide(struct topping *t, size_t n)
{
	size_t wanted = (size_t)parallel_cores();

	if (wanted > MAX_PARTS)
		wanted = MAX_PARTS;
	if (wanted > n / MIN_SERIES)
		wanted = n / MIN_SERIES ? n / MIN_SERIES : 1;
	t->first[0] = 0;
	for (t->nparts = 1; t->nparts < wanted; t->nparts++) {
		size_t at = n * t->nparts / wanted;

		/* A service is never in two. */
		while (at > 0 && at < n && t->picked[at].service == t->picked[at - 1].service)
			at++;
		t->first[t->nparts] = at > t->first[t->nparts - 1] ? at : t->first[t->nparts - 1];
	}
	t->first[t->nparts] = n;
}

/* All of another part's into the first. */
static bool join(struct part *to, const struct part *p, struct err *e)
{
	if (p->has_unit && !take_unit(to, p->unit, p->is_gauge, e))
		return false;
	for (size_t i = 0; i < p->weights.n; i++) {
		const struct weight *x = &p->weights.at[i];
		struct weight *w = weight_of(to, x->key, x->by);

		w->flat += x->flat;
		w->cum += x->cum;
		w->ran += x->ran;
		w->late += x->late;
		w->nservices += x->nservices;
	}
	while (to->nprofiles_of.n < p->nprofiles_of.n)
		vec_push(&to->nprofiles_of, 0);
	for (size_t i = 0; i < p->nprofiles_of.n; i++)
		to->nprofiles_of.at[i] += p->nprofiles_of.at[i];
	if (p->nprofiles && (!to->nprofiles || p->first < to->first))
		to->first = p->first;
	if (p->nprofiles && (!to->nprofiles || p->last > to->last))
		to->last = p->last;
	to->nprofiles += p->nprofiles;
	to->nservices += p->nservices;
	to->total += p->total;
	to->naming.nmissing += p->naming.nmissing;
	if (p->no_type.kind)
		to->no_type = p->no_type;
	return true;
}

static bool join_parts(struct topping *t, struct err *e)
{
	for (size_t i = 0; i < t->nparts; i++)
		if (!t->parts[i].ok && t->parts[i].e.kind) {
			*e = t->parts[i].e;
			return false;
		}
	for (size_t i = 1; i < t->nparts; i++)
		if (!join(&t->parts[0], &t->parts[i], e))
			return false;
	if (!t->parts[0].has_unit && t->parts[0].no_type.kind) {
		*e = t->parts[0].no_type;
		return false;
	}
	return true;
}

/* ---- rows */

/* Of what there is at one moment, the mean is told. */
static void average(struct part *p)
{
	if (!p->is_gauge)
		return;
	for (size_t i = 0; i < p->weights.n; i++) {
		struct weight *w = &p->weights.at[i];
		double n = (double)p->nprofiles_of.at[w->by];

		w->flat /= n;
		w->cum /= n;
		w->ran = w->late = 0;
	}
	p->total /= (double)p->nprofiles;
}

static double trend_of(const struct weight *w)
{
	return 2 * w->late - w->ran;
}

static int cmp_double(double x, double y)
{
	return (x < y) - (x > y);
}

static double measure(const struct weight *w, enum store_top_order order)
{
	switch (order) {
	case STORE_TOP_CUM:
		return fabs(w->cum);
	case STORE_TOP_RATE:
		return w->ran;
	case STORE_TOP_SERVICES:
		return (double)w->nservices;
	case STORE_TOP_TREND:
		return trend_of(w);
	case STORE_TOP_FLAT:
		break;
	}
	return fabs(w->flat);
}

struct sorting {
	struct topping *t;
	const struct str *strings;
	const struct hot_function *functions;
};

static uint32_t name_of(const struct sorting *s, const struct weight *w)
{
	return s->t->params->group ? w->key : s->functions[w->key].name;
}

/* Heaviest first; ties by name. */
static int by_weight(const void *a, const void *b, void *ctx)
{
	const struct sorting *s = ctx;
	const struct weight *x = a, *y = b;
	enum store_top_order order = s->t->params->order;
	int c = cmp_double(measure(x, order), measure(y, order));

	if (!c)
		c = cmp_double(fabs(x->flat), fabs(y->flat));
	if (!c)
		c = cmp_double(fabs(x->cum), fabs(y->cum));
	if (!c)
		c = str_cmp(s->strings[name_of(s, x)], s->strings[name_of(s, y)]);
	if (!c)
		c = str_cmp(s->strings[x->by], s->strings[y->by]);
	if (c || s->t->params->group)
		return c;
	return str_cmp(s->strings[s->functions[x->key].file],
		       s->strings[s->functions[y->key].file]);
}

static struct str copy_text(struct arena *a, struct hot *hot, uint32_t string)
{
	struct str s = hot_text(hot, string);

	return (struct str){ arena_copy(a, s.p, s.n), s.n };
}

static struct store_top_row row_of(struct topping *t, struct arena *a, const struct weight *w,
				   double seconds)
{
	struct store_top_row row = { .by = copy_text(a, t->hot, w->by),
				     .flat = llround(w->flat),
				     .cum = llround(w->cum),
				     .rate = w->ran / seconds,
				     .trend = 2 * trend_of(w) / seconds,
				     .nservices = w->nservices };

	if (t->params->group) {
		row.function = copy_text(a, t->hot, w->key);
	} else {
		struct hot_function f = hot_function_at(t->hot, w->key);

		row.function = copy_text(a, t->hot, f.name);
		row.file = copy_text(a, t->hot, f.file);
		row.module = copy_text(a, t->hot, f.module);
	}
	return row;
}

/* Only those of the function that was asked for. */
static void choose(struct topping *t, struct part *p)
{
	struct str wanted = t->params->function;
	size_t n = 0;

	for (size_t i = 0; wanted.n && i < p->weights.n; i++) {
		uint32_t key = p->weights.at[i].key;

		if (!t->params->group)
			key = hot_function_at(t->hot, key).name;
		if (str_eq(hot_text(t->hot, key), wanted))
			p->weights.at[n++] = p->weights.at[i];
	}
	if (wanted.n)
		p->weights.n = n;
}

static void sort(struct topping *t, struct part *p)
{
	struct sorting s = { .t = t };

	pthread_rwlock_rdlock(&t->hot->lock);
	s.strings = t->hot->strings.at;
	s.functions = t->hot->functions.at;
	if (p->weights.n)
		qsort_r(p->weights.at, p->weights.n, sizeof(*p->weights.at), by_weight, &s);
	pthread_rwlock_unlock(&t->hot->lock);
}

static void make_rows(struct topping *t, struct arena *a, struct store_top *top)
{
	struct part *p = &t->parts[0];
	int64_t from = t->from > p->first ? t->from : p->first;
	double seconds = fmax(1, (double)int_distance(from, t->to) / 1e9), ran = 0;
	size_t n;

	average(p);
	for (size_t i = 0; i < p->weights.n; i++)
		ran += p->weights.at[i].ran;
	choose(t, p);
	sort(t, p);
	n = p->weights.n;
	if (t->params->limit && n > t->params->limit)
		n = t->params->limit;
	*top = (struct store_top){ .rows = arena_many(a, n + 1, struct store_top_row),
				   .n = n,
				   .nall = p->weights.n,
				   .total = llround(p->total),
				   .rate = ran / seconds,
				   .unit = copy_text(a, t->hot, p->unit),
				   .nprofiles = p->nprofiles,
				   .nservices = p->nservices,
				   .from = t->from,
				   .to = t->to };
	for (size_t i = 0; i < n; i++)
		top->rows[i] = row_of(t, a, &p->weights.at[i], seconds);
}

/* ---- */

/* Where times end, if the query does not say. */
static void find_times(struct topping *t, size_t n, int64_t now)
{
	int64_t first = INT64_MAX, last = 0;

	for (size_t i = 0; i < n; i++) {
		first = t->picked[i].counts.first < first ? t->picked[i].counts.first : first;
		last = t->picked[i].counts.last > last ? t->picked[i].counts.last : last;
	}
	t->settled = now - CATALOG_SETTLED;
	t->from = t->params->query.from > 0 ? t->params->query.from : 0;
	t->to = t->params->query.to;
	if (t->to > last && t->to > now)
		t->to = last > now ? last : now;
	if (t->params->is_settled) {
		if (t->to >= t->settled - t->settled % PIECE)
			t->to = t->settled - t->settled % PIECE - 1;
		t->from -= t->from % (int_distance(t->from, t->to) > DAY / 4 ? HOUR : PIECE);
	}
	t->middle = t->from > first ? t->from : first;
	t->middle += int_distance(t->middle, t->to) / 2;
}

static void parts_init(struct topping *t, struct part *parts)
{
	t->parts = parts;
	for (size_t i = 0; i < t->nparts; i++) {
		parts[i] = (struct part){ .t = t, .naming.by = t->s->namer };
		sums_init(&parts[i].sums, t->s, take_sum, &parts[i]);
	}
}

static void parts_release(struct topping *t)
{
	for (size_t i = 0; i < t->nparts; i++) {
		struct part *p = &t->parts[i];

		sums_release(&p->sums);
		vec_release(&p->weights);
		vec_release(&p->slots);
		vec_release(&p->groups);
		vec_release(&p->locals);
		vec_release(&p->nprofiles_of);
		vec_release(&p->sum.weights);
		map_release(&p->map);
		buf_release(&p->scratch);
	}
}

/* *is_early: some names were not there yet, and are now. */
static bool weigh(struct topping *t, size_t n, struct arena *a, struct store_top *top,
		  bool *is_early, struct err *e)
{
	struct part parts[MAX_PARTS];
	struct timespec now;
	bool ok;

	clock_gettime(CLOCK_REALTIME, &now);
	find_times(t, n, now.tv_sec * SECOND);
	divide(t, n);
	t->max_weights = t->s->params.max_memory / 8 / sizeof(struct weight) / t->nparts;
	parts_init(t, parts);
	t->sample_type = hot_string(t->hot, t->params->sample_type);
	parallel_for((int)t->nparts, t->nparts, run_part, t);
	ok = join_parts(t, e);
	if (ok)
		make_rows(t, a, top);
	*is_early = ok && naming_wait(&parts[0].naming);
	parts_release(t);
	return ok;
}

bool store_top(struct store *s, const struct store_top_params *params, struct arena *a,
	       struct store_top *top, struct err *e)
{
	struct topping t = { .s = s, .params = params, .hot = &s->hot };
	struct scan scan = { .s = s, .q = &params->query };
	bool ok, is_early;

	scan_pick(&scan, a);
	t.picked = scan.picked;
	if (!scan_check_type(&scan, e))
		return false;
	pthread_mutex_init(&t.grouping, NULL);
	hot_begin(&s->hot);
	ok = weigh(&t, scan.npicked, a, top, &is_early, e);
	if (is_early)
		ok = weigh(&t, scan.npicked, a, top, &is_early, e);
	hot_end(&s->hot);
	pthread_mutex_destroy(&t.grouping);
	return ok;
}
