/* top_rows.c - which functions weigh most, and how they are told. */
#include "store/top.h"

#include <math.h>
#include <stdlib.h>

#include "base/int.h"

/* How much in a second; of gauges, how much there is. */
static double rate_of(const struct topping *t, const struct top_weight *w, double seconds)
{
	return t->parts[0].is_gauge ? w->flat : (w->early + w->late) / seconds;
}

/* The halves need not be of one length. */
struct halves {
	double first, second; /* seconds */
};

static struct halves halves_of(const struct topping *t)
{
	int64_t first = t->parts[0].first, from = t->from > first ? t->from : first;

	return (struct halves){ fmax(1, (double)int_distance(from, t->middle) / 1e9),
				fmax(1, (double)int_distance(t->middle, t->to) / 1e9) };
}

static double trend_of(const struct topping *t, const struct top_weight *w, const struct halves *h)
{
	return t->parts[0].is_gauge ? w->late - w->early
				    : w->late / h->second - w->early / h->first;
}

/* ---- the heaviest */

struct sorting {
	const struct topping *t;
	const struct str *strings;
	const struct hot_function *functions;
	struct halves halves;
};

static int cmp_double(double x, double y)
{
	return (x < y) - (x > y);
}

static double measure(const struct sorting *s, const struct top_weight *w)
{
	switch (s->t->params->order) {
	case STORE_TOP_CUM:
		return fabs(w->cum);
	case STORE_TOP_RATE:
		return rate_of(s->t, w, 1);
	case STORE_TOP_SERVICES:
		return (double)w->nservices;
	case STORE_TOP_TREND:
		return trend_of(s->t, w, &s->halves);
	case STORE_TOP_FLAT:
		break;
	}
	return fabs(w->flat);
}

static uint32_t name_of(const struct sorting *s, const struct top_weight *w)
{
	return s->t->params->group ? w->key : s->functions[w->key].name;
}

/* Heaviest first; ties by name. */
static int by_weight(const void *a, const void *b, void *ctx)
{
	const struct sorting *s = ctx;
	const struct top_weight *x = a, *y = b;
	int c = cmp_double(measure(s, x), measure(s, y));

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

/* The first n are a heap, whose lightest is on top: it sinks to where it belongs. */
static void sink(struct top_weight *heap, size_t n, size_t at, struct sorting *s)
{
	for (;;) {
		size_t child = 2 * at + 1;
		struct top_weight moved = heap[at];

		if (child >= n)
			return;
		if (child + 1 < n && by_weight(&heap[child + 1], &heap[child], s) > 0)
			child++;
		if (by_weight(&heap[child], &moved, s) <= 0)
			return;
		heap[at] = heap[child];
		heap[child] = moved;
		at = child;
	}
}

/* The heaviest n to the front: most of the others are looked at once. */
static void choose_heaviest(struct top_weight *all, size_t nall, size_t n, struct sorting *s)
{
	for (size_t i = n / 2; i > 0; i--)
		sink(all, n, i - 1, s);
	for (size_t i = n; i < nall; i++) {
		if (by_weight(&all[i], &all[0], s) >= 0)
			continue;
		all[0] = all[i];
		sink(all, n, 0, s);
	}
}

/* The heaviest n come first, in order. The others are lost. */
static void sort(struct topping *t, struct top_part *p, size_t n)
{
	struct sorting s = { .t = t, .halves = halves_of(t) };

	if (!n)
		return;
	pthread_rwlock_rdlock(&t->hot->lock);
	s.strings = t->hot->strings.at;
	s.functions = t->hot->functions.at;
	if (n < p->weights.at.n)
		choose_heaviest(p->weights.at.at, p->weights.at.n, n, &s);
	qsort_r(p->weights.at.at, n, sizeof(*p->weights.at.at), by_weight, &s);
	pthread_rwlock_unlock(&t->hot->lock);
}

/* Only those of the function that was asked for. */
static void choose(struct topping *t, struct top_part *p)
{
	struct str wanted = t->params->function;
	size_t n = 0;

	for (size_t i = 0; wanted.n && i < p->weights.at.n; i++) {
		uint32_t key = p->weights.at.at[i].key;

		if (!t->params->group)
			key = hot_function_at(t->hot, key).name;
		if (str_eq(hot_text(t->hot, key), wanted))
			p->weights.at.at[n++] = p->weights.at.at[i];
	}
	if (wanted.n)
		p->weights.at.n = n;
}

/* ---- rows */

static struct str copy_text(struct arena *a, struct hot *hot, uint32_t string)
{
	struct str s = hot_text(hot, string);

	return (struct str){ arena_copy(a, s.p, s.n), s.n };
}

/* Of each kind of service; if they are told apart. */
static void fill_parts(const struct topping *t, struct arena *a, const struct top_weight *w,
		       struct store_top_row *row)
{
	const struct top_share *shares = t->parts[0].shares.at;
	size_t n = !w->shares;

	if (t->params->group || !t->params->group_ctx_of)
		return;
	for (uint32_t i = w->shares; i; i = shares[i - 1].next)
		n++;
	row->nparts = n;
	row->parts = arena_many(a, n, struct store_top_part);
	row->parts[0] = (struct store_top_part){ w->ctx, w->flat, w->cum };
	for (uint32_t i = w->shares; i; i = shares[i - 1].next)
		row->parts[--n] = (struct store_top_part){ shares[i - 1].ctx, shares[i - 1].ran,
							   shares[i - 1].cum };
}

static struct store_top_row row_of(struct topping *t, struct arena *a, const struct top_weight *w,
				   double seconds)
{
	struct halves halves = halves_of(t);
	struct store_top_row row = { .by = copy_text(a, t->hot, w->by),
				     .flat = llround(w->flat),
				     .cum = llround(w->cum),
				     .rate = rate_of(t, w, seconds),
				     .trend = trend_of(t, w, &halves),
				     .nservices = w->nservices };

	fill_parts(t, a, w, &row);
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

void top_make_rows(struct topping *t, struct arena *a, struct store_top *top)
{
	struct top_part *p = &t->parts[0];
	int64_t from = t->from > p->first ? t->from : p->first;
	double seconds = fmax(1, (double)int_distance(from, t->to) / 1e9), rate = 0;
	size_t n;

	for (size_t i = 0; i < p->weights.at.n; i++)
		rate += rate_of(t, &p->weights.at.at[i], seconds);
	choose(t, p);
	n = p->weights.at.n;
	if (t->params->limit && n > t->params->limit)
		n = t->params->limit;
	sort(t, p, n);
	*top = (struct store_top){ .rows = arena_many(a, n + 1, struct store_top_row),
				   .n = n,
				   .nall = p->weights.at.n,
				   .total = llround(p->total),
				   .rate = rate,
				   .is_gauge = p->is_gauge,
				   .unit = copy_text(a, t->hot, p->unit),
				   .nprofiles = p->nprofiles,
				   .nservices = p->nservices,
				   .from = t->from,
				   .to = t->to };
	for (size_t i = 0; i < n; i++)
		top->rows[i] = row_of(t, a, &p->weights.at.at[i], seconds);
}
