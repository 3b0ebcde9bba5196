/* top.c - the functions that weigh most, over all services. */
#include <math.h>
#include <stdlib.h>

#include "store/by.h"
#include "store/meaning.h"
#include "store/naming.h"
#include "store/sums.h"

#define DAY ((int64_t)24 * 3600 * 1000000000) /* weeks are whole days */

struct weight {
	uint32_t function, file, by; /* strings */
	double flat, cum;
	int64_t service; /* that was the last to add to it */
	uint32_t nservices;
};

struct topping {
	struct store *s;
	const struct store_top_params *params;
	struct str type; /* of the profiles */
	struct sums sums;
	struct strings strings;
	struct buf scratch;
	vec(struct weight) weights;
	struct map map;
	uint64_t seed;
	double total;
	uint32_t unit;
	bool has_unit;
	struct err no_type; /* of what was left out */
	uint64_t nprofiles;
	vec(uint64_t) nprofiles_of; /* each value of `by`, which is a string's number */
	bool is_gauge;
	size_t max_weights;
	struct naming naming;
	/* of the sum that is being taken */
	int64_t service;
	uint32_t by;
};

/* ---- functions */

static bool same_weight(const void *ctx, uint32_t index)
{
	const struct weight *k = ((const void *const *)ctx)[0];
	const struct topping *t = ((const void *const *)ctx)[1];
	const struct weight *w = &t->weights.at[index];

	return w->function == k->function && w->file == k->file && w->by == k->by;
}

static void add_function(void *ctx, struct str name, struct str file, double flat, double cum)
{
	struct topping *t = ctx;
	struct weight key = { .function = strings_add(&t->strings, name),
			      .file = strings_add(&t->strings, file),
			      .by = t->by };
	const void *pair[2] = { &key, t };
	uint64_t hash = hash_mix(hash_mix(t->seed, (uint64_t)key.function << 32 | key.file), t->by);
	uint32_t i = map_put(&t->map, hash, t->weights.n, same_weight, pair);
	struct weight *w;

	if (i == t->weights.n)
		vec_push(&t->weights, key);
	w = &t->weights.at[i];
	w->flat += flat;
	w->cum += cum;
	w->nservices += w->service != t->service;
	w->service = t->service;
}

/* ---- sums */

static bool take_unit(struct topping *t, const struct sum *sum, uint32_t type, struct err *e)
{
	uint32_t unit = strings_add(&t->strings, book_type_unit(sum->book->book, sum->head, type));

	if (t->has_unit && unit != t->unit)
		return err_set(e, ERR_USAGE,
			       "some values are in %.*s and some in %.*s; name one "
			       "profile type and sample type",
			       STR_ARG(t->strings.at[t->unit]), STR_ARG(t->strings.at[unit]));
	t->unit = unit;
	t->has_unit = true;
	t->is_gauge = meaning_of(t->type, book_type_name(sum->book->book, sum->head, type)) ==
		      MEANING_GAUGE;
	return true;
}

static bool take_sum(void *ctx, const struct sum *sum, struct err *e)
{
	struct topping *t = ctx;
	uint32_t type = book_find_type(sum->book->book, sum->head, t->params->sample_type);

	/* Others may have the type: a service that has not is left out. */
	if (type == NONE) {
		book_no_type(sum->book->book, sum->head, t->params->sample_type, &t->no_type);
		return true;
	}
	if (!take_unit(t, sum, type, e))
		return false;
	t->service = sum->book->service->id;
	t->by = (uint32_t)sum->group;
	t->total += book_sum_total(sum->sum, type);
	book_sum_functions(sum->sum, type, &t->naming, add_function, t);
	if (t->weights.n > t->max_weights)
		return err_set(
			e, ERR_LIMIT,
			"max-memory: more than %zu functions; ask for fewer services or less "
			"time",
			t->max_weights);
	return true;
}

static bool end_service(void *ctx, struct err *e)
{
	struct topping *t = ctx;

	return sums_flush(&t->sums, e);
}

static bool add_row(void *ctx, const struct scan_row *row, struct err *e)
{
	struct topping *t = ctx;
	struct str value = by_value(row->series, row->time, t->params->by, &t->scratch);
	uint32_t by = strings_add(&t->strings, value);
	bool is_added = false;

	if (row->book && !sums_add(&t->sums, row, by, &is_added, e))
		return false;
	if (!is_added)
		return true;
	while (t->nprofiles_of.n <= by)
		vec_push(&t->nprofiles_of, 0);
	t->nprofiles_of.at[by] += row->nprofiles;
	t->nprofiles += row->nprofiles;
	return true;
}

/* ---- rows */

/* Of what there is at one moment, the mean is told. */
static void average(struct topping *t)
{
	if (!t->is_gauge)
		return;
	for (size_t i = 0; i < t->weights.n; i++) {
		struct weight *w = &t->weights.at[i];
		double n = (double)t->nprofiles_of.at[w->by];

		w->flat /= n;
		w->cum /= n;
	}
	t->total /= (double)t->nprofiles;
}

static int cmp_double(double x, double y)
{
	return (x < y) - (x > y);
}

/* Heaviest first; ties by name. */
static int by_weight(const void *a, const void *b, void *ctx)
{
	const struct topping *t = ctx;
	const struct weight *x = a, *y = b;
	bool by_cum = t->params->by_cum;
	int c = by_cum ? cmp_double(fabs(x->cum), fabs(y->cum))
		       : cmp_double(fabs(x->flat), fabs(y->flat));

	if (!c)
		c = by_cum ? cmp_double(fabs(x->flat), fabs(y->flat))
			   : cmp_double(fabs(x->cum), fabs(y->cum));
	if (!c)
		c = str_cmp(t->strings.at[x->function], t->strings.at[y->function]);
	if (!c)
		c = str_cmp(t->strings.at[x->by], t->strings.at[y->by]);
	return c ? c : str_cmp(t->strings.at[x->file], t->strings.at[y->file]);
}

static struct str copy_string(struct arena *a, const struct topping *t, uint32_t string)
{
	struct str s = t->strings.at[string];

	return (struct str){ arena_copy(a, s.p, s.n), s.n };
}

static void make_rows(struct topping *t, struct arena *a, struct store_top *top)
{
	size_t n = t->weights.n;

	average(t);
	if (n)
		qsort_r(t->weights.at, n, sizeof(*t->weights.at), by_weight, t);
	if (t->params->limit && n > t->params->limit)
		n = t->params->limit;
	*top = (struct store_top){ .rows = arena_many(a, n + 1, struct store_top_row),
				   .n = n,
				   .total = llround(t->total),
				   .unit = copy_string(a, t, t->unit),
				   .nprofiles = t->nprofiles };
	for (size_t i = 0; i < n; i++) {
		const struct weight *w = &t->weights.at[i];

		top->rows[i] = (struct store_top_row){ .function = copy_string(a, t, w->function),
						       .file = copy_string(a, t, w->file),
						       .by = copy_string(a, t, w->by),
						       .flat = llround(w->flat),
						       .cum = llround(w->cum),
						       .nservices = w->nservices };
	}
}

/* *is_early: some names were not there yet, and are now. */
static bool top_once(struct store *s, const struct store_top_params *params, struct arena *a,
		     struct store_top *top, bool *is_early, struct err *e)
{
	struct topping t = { .s = s, .params = params, .seed = map_seed(), .naming.by = s->namer };
	struct scan scan = { .s = s,
			     .q = &params->query,
			     .has_data = true,
			     .as_type = true,
			     .step = str_eq(params->by, STR("week")) ? DAY : 0,
			     .each = add_row,
			     .after_service = end_service,
			     .ctx = &t };
	bool ok;

	t.max_weights = s->params.max_memory / 8 / sizeof(struct weight);
	strings_init(&t.strings);
	sums_init(&t.sums, s, take_sum, &t);
	scan_pick(&scan, a);
	if (scan.npicked)
		t.type = scan.picked[0].type;
	ok = scan_check_type(&scan, e) && scan_run(&scan, e);
	if (ok && !t.has_unit && t.no_type.kind) {
		*e = t.no_type;
		ok = false;
	}
	if (ok)
		make_rows(&t, a, top);
	sums_release(&t.sums);
	strings_release(&t.strings);
	vec_release(&t.weights);
	vec_release(&t.nprofiles_of);
	map_release(&t.map);
	buf_release(&t.scratch);
	*is_early = ok && naming_wait(&t.naming);
	return ok;
}

bool store_top(struct store *s, const struct store_top_params *params, struct arena *a,
	       struct store_top *top, struct err *e)
{
	bool is_early, ok = top_once(s, params, a, top, &is_early, e);

	return is_early ? top_once(s, params, a, top, &is_early, e) : ok;
}
