/* querier_labels.c - selectors, and what there is: profile types, labels, series. */
#include "server/querier.h"

#include <stdlib.h>

#include "base/map.h"
#include "profile/wire.h"

enum { MAX_SELECTORS = 16, MAX_LABEL_NAMES = 64, MAX_LABEL_SETS = 100000 };

/* ---- labels that a profile type is made of */

static const char *const own_names[] = { "__name__",	     "__period_type__", "__period_unit__",
					 "__profile_type__", "__type__",	"__unit__" };
#define NOWN (sizeof(own_names) / sizeof(*own_names))

static struct str print_id(struct arena *a, const struct profile_type_id *id)
{
	struct buf text = { 0 };
	struct str copy;

	profile_type_print_id(&text, id);
	copy = (struct str){ str_dup(a, buf_view(&text)), text.n };
	buf_release(&text);
	return copy;
}

static size_t find_own(struct str name)
{
	size_t i = 0;

	while (i < NOWN && !str_eq(name, str_of(own_names[i])))
		i++;
	return i;
}

static struct str own_value(struct arena *a, const struct profile_type_id *id, size_t which)
{
	const struct str values[NOWN] = { id->name, id->period, id->period_unit,
					  { 0 },    id->sample, id->unit };

	return values[which].p || which != 3 ? values[which] : print_id(a, id);
}

struct str profile_type_label(struct arena *a, const struct profile_type_id *id, struct str name)
{
	size_t i = find_own(name);
	struct str value = { 0 };

	if (i == NOWN)
		return value;
	value = own_value(a, id, i);
	return value.p ? value : STR("");
}

struct str store_label_name(struct str name)
{
	return str_eq(name, STR("service_name")) ? STR("service") : name;
}

/* ---- conditions on them */

/* What a period is of does not tell profile types apart. */
static bool same_type(const struct profile_type_id *x, const struct profile_type_id *y)
{
	return str_eq(x->name, y->name) && str_eq(x->sample, y->sample) && str_eq(x->unit, y->unit);
}

static bool holds(struct arena *a, const struct store_matcher *m, const struct profile_type_id *id)
{
	struct str value = profile_type_label(a, id, m->name);
	bool is_regex = m->op == STORE_LIKE || m->op == STORE_NOT_LIKE;
	bool is_not = m->op == STORE_NOT_EQUAL || m->op == STORE_NOT_LIKE;
	struct profile_type_id other;

	if (is_regex)
		return regex_match(m->regex, value) != is_not;
	if (str_eq(m->name, STR("__profile_type__")) && profile_type_parse_id(m->value, &other))
		return same_type(id, &other) != is_not;
	return str_eq(value, m->value) != is_not;
}

static bool all_hold(struct arena *a, const struct selection *s, const struct profile_type_id *id)
{
	for (size_t i = 0; i < s->own.n; i++)
		if (!holds(a, &s->own.at[i], id))
			return false;
	return true;
}

/* ---- selections */

/* Types in which the store may have it. */
static bool add_homes(struct selection *s, struct arena *a, const struct profile_type_id *id,
		      struct err *e)
{
	struct str types[PROFILE_TYPE_HOMES];
	size_t n = profile_type_homes(id, types);
	struct store_matcher m = { .name = STR("type"), .op = STORE_EQUAL, .value = types[0] };
	struct buf pattern = { 0 };

	if (n > 1) { /* they are words of profile_types.def */
		for (size_t i = 0; i < n; i++)
			buf_printf(&pattern, "%s%.*s", i ? "|" : "^(?:", STR_ARG(types[i]));
		buf_puts(&pattern, ")$");
		m.op = STORE_LIKE;
		m.value = (struct str){ str_dup(a, buf_view(&pattern)), pattern.n };
		buf_release(&pattern);
		m.regex = regex_compile(m.value, e);
		if (!m.regex)
			return false;
		vec_push(&s->read.regexes, (struct regex *)(uintptr_t)m.regex);
	}
	vec_push(&s->matchers, m);
	return true;
}

static bool add_own(struct selection *s, struct arena *a, const struct store_matcher *m,
		    struct err *e)
{
	struct profile_type_id id;

	vec_push(&s->own, *m);
	/* The store need not read what is of no use. */
	return m->op != STORE_EQUAL || !str_eq(m->name, STR("__profile_type__")) ||
	       !profile_type_parse_id(m->value, &id) || add_homes(s, a, &id, e);
}

bool selection_add(struct selection *s, struct arena *a, struct str selector, struct err *e)
{
	size_t before = s->read.matchers.n;

	if (!selector_parse(&s->read, a, selector, e))
		return false;
	for (size_t i = before; i < s->read.matchers.n; i++) {
		struct store_matcher m = s->read.matchers.at[i];

		if (find_own(m.name) < NOWN) {
			if (!add_own(s, a, &m, e))
				return false;
			continue;
		}
		m.name = store_label_name(m.name);
		vec_push(&s->matchers, m);
	}
	return true;
}

bool selection_set_type(struct selection *s, struct arena *a, struct str id, struct err *e)
{
	if (!profile_type_parse_id(id, &s->id))
		return err_set(e, ERR_USAGE,
			       "profile_typeID: \"%.*s\" does not have five parts, as "
			       "process_cpu:cpu:nanoseconds:cpu:nanoseconds has",
			       STR_ARG(id));
	if (!all_hold(a, s, &s->id))
		return err_set(e, ERR_NOTFOUND, "nothing found");
	return add_homes(s, a, &s->id, e);
}

void selection_release(struct selection *s)
{
	selector_release(&s->read);
	vec_release(&s->matchers);
	vec_release(&s->own);
}

/* A time that there is not is the nearest that there is. */
static int64_t ns_of_ms(int64_t ms)
{
	int64_t ns;

	if (!__builtin_mul_overflow(ms, INT64_C(1000000), &ns))
		return ns;
	return ms < 0 ? INT64_MIN : INT64_MAX;
}

bool selection_query(const struct selection *s, const struct querier *q, int64_t start, int64_t end,
		     bool needs_times, struct store_query *query, struct err *e)
{
	if (needs_times && !start && !end)
		return err_set(e, ERR_USAGE, "start and end are missing: milliseconds since 1970");
	if (start > end)
		return err_set(e, ERR_USAGE,
			       "start, %lld, is after end, %lld; both are milliseconds since 1970",
			       (long long)start, (long long)end);
	*query = (struct store_query){ .matchers = s->matchers.at,
				       .nmatchers = s->matchers.n,
				       .from = ns_of_ms(start),
				       .to = ns_of_ms(end),
				       .stop = q->stop,
				       .may_mix_types = s->id.name.n,
				       .sample_type = s->id.sample,
				       .unit = s->id.unit };
	return true;
}

/* ---- all series */

typedef bool each_series(void *ctx, const struct store_listed *series,
			 const struct profile_type_id *id, struct err *e);

static bool has_colon(const struct profile_type_id *id)
{
	return str_find_char(id->name, ':') != STR_NONE ||
	       str_find_char(id->sample, ':') != STR_NONE ||
	       str_find_char(id->unit, ':') != STR_NONE ||
	       str_find_char(id->period, ':') != STR_NONE ||
	       str_find_char(id->period_unit, ':') != STR_NONE;
}

static bool go_through(const struct querier *q, const struct selection *s,
		       const struct store_query *query, each_series *each, void *ctx, struct err *e)
{
	struct store_listed *series;
	size_t n;

	if (!store_list(q->store, query, q->a, &series, &n, e))
		return false;
	for (size_t i = 0; i < n && !stop_asked(q->stop); i++) {
		for (size_t t = 0; t < series[i].ntypes; t++) {
			const struct store_sample_type *type = &series[i].types[t];
			struct profile_type_id id = { profile_type_name(series[i].type), type->type,
						      type->unit, type->period_type,
						      type->period_unit };

			/* It could not be asked for. */
			if (has_colon(&id))
				continue;
			if (all_hold(q->a, s, &id) && !each(ctx, &series[i], &id, e))
				return false;
		}
	}
	return true;
}

static bool list_selected(const struct querier *q, const struct ask_labels *ask,
			  struct str selector, each_series *each, void *ctx, struct err *e)
{
	struct selection s = { 0 };
	struct store_query query;
	bool ok = (selection_add(&s, q->a, selector, e) || err_wrap(e, "matchers")) &&
		  selection_query(&s, q, ask->start, ask->end, false, &query, e) &&
		  go_through(q, &s, &query, each, ctx, e);

	selection_release(&s);
	return ok;
}

/* Those that any of the selectors finds, or all if there is none. */
static bool list(const struct querier *q, const struct ask_labels *ask, each_series *each,
		 void *ctx, struct err *e)
{
	const struct str *selectors = ask->matchers.at;

	if (!ask->matchers.n)
		return list_selected(q, ask, STR(""), each, ctx, e);
	if (ask->matchers.n > MAX_SELECTORS)
		return err_set(e, ERR_USAGE, "matchers: there are %zu, and at most %d are taken",
			       ask->matchers.n, MAX_SELECTORS);
	for (size_t i = 0; i < ask->matchers.n; i++)
		if (!list_selected(q, ask, selectors[i], each, ctx, e))
			return false;
	return true;
}

/* ---- names, each once */

struct names {
	const struct querier *q;
	struct str label; /* whose values are wanted */
	const struct store_listed *last;
	vec(struct str) at;
};

static int by_text(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void sort_names(struct names *x)
{
	size_t n = 0;

	if (x->at.n)
		qsort(x->at.at, x->at.n, sizeof(*x->at.at), by_text);
	for (size_t i = 0; i < x->at.n; i++)
		if (!n || !str_eq(x->at.at[n - 1], x->at.at[i]))
			x->at.at[n++] = x->at.at[i];
	x->at.n = n;
}

static void put_names(struct names *x, struct buf *out)
{
	sort_names(x);
	for (size_t i = 0; i < x->at.n; i++)
		put_utf8(out, 1, x->at.at[i]);
}

static bool add_label_names(void *ctx, const struct store_listed *series,
			    const struct profile_type_id *id, struct err *e)
{
	struct names *x = ctx;

	(void)id, (void)e;
	if (series == x->last)
		return true;
	if (!x->last) {
		for (size_t i = 0; i < NOWN; i++)
			vec_push(&x->at, str_of(own_names[i]));
		vec_push(&x->at, STR("service_name"));
	}
	x->last = series;
	for (size_t i = 0; i < series->nlabels; i++)
		vec_push(&x->at, store_query_name(series->labels[i].key));
	return true;
}

bool querier_label_names(const struct querier *q, const void *request, struct buf *out,
			 struct err *e)
{
	struct names x = { .q = q };
	bool ok = list(q, request, add_label_names, &x, e);

	if (ok)
		put_names(&x, out);
	vec_release(&x.at);
	return ok;
}

static bool add_label_values(void *ctx, const struct store_listed *series,
			     const struct profile_type_id *id, struct err *e)
{
	struct names *x = ctx;
	struct str own = profile_type_label(x->q->a, id, x->label);

	(void)e;
	if (own.n)
		vec_push(&x->at, own);
	if (own.p || series == x->last)
		return true;
	x->last = series;
	if (str_eq(x->label, STR("service_name")))
		vec_push(&x->at, series->service);
	for (size_t i = 0; i < series->nlabels; i++)
		if (str_eq(store_query_name(series->labels[i].key), x->label))
			vec_push(&x->at, series->labels[i].value);
	return true;
}

bool querier_label_values(const struct querier *q, const void *request, struct buf *out,
			  struct err *e)
{
	const struct ask_labels *ask = request;
	struct names x = { .q = q, .label = ask->name };
	bool ok;

	if (!ask->name.n)
		return err_set(e, ERR_USAGE, "name is missing: that of the label");
	ok = list(q, ask, add_label_values, &x, e);
	if (ok)
		put_names(&x, out);
	vec_release(&x.at);
	return ok;
}

/* ---- profile types */

static bool add_id(void *ctx, const struct store_listed *series, const struct profile_type_id *id,
		   struct err *e)
{
	struct names *x = ctx;

	(void)series, (void)e;
	vec_push(&x->at, print_id(x->q->a, id));
	return true;
}

static void put_type(struct str text, const struct profile_type_id *id, struct buf *out)
{
	struct buf type = { 0 };

	put_utf8(&type, 1, text);
	put_utf8(&type, 2, id->name);
	put_utf8(&type, 4, id->sample);
	put_utf8(&type, 5, id->unit);
	put_utf8(&type, 6, id->period);
	put_utf8(&type, 7, id->period_unit);
	put_message(out, 1, &type);
	buf_release(&type);
}

bool querier_profile_types(const struct querier *q, const void *request, struct buf *out,
			   struct err *e)
{
	struct names x = { .q = q };
	bool ok = list(q, request, add_id, &x, e);

	if (ok)
		sort_names(&x);
	for (size_t i = 0; ok && i < x.at.n; i++) {
		struct profile_type_id id = { 0 }, next = { 0 };

		/* Of those that are the same but for the period, which may be missing, the last. */
		profile_type_parse_id(x.at.at[i], &id);
		if (i + 1 < x.at.n && profile_type_parse_id(x.at.at[i + 1], &next) &&
		    same_type(&id, &next))
			continue;
		put_type(x.at.at[i], &id, out);
	}
	vec_release(&x.at);
	return ok;
}

/* ---- sets of labels */

struct label_sets {
	const struct querier *q;
	const struct ask_labels *ask;
	vec(struct store_label) labels; /* of one */
	vec(struct str) sets;		/* as messages */
	struct map map;
	uint64_t seed;
};

static bool is_wanted(const struct ask_labels *ask, struct str name)
{
	const struct str *names = ask->label_names.at;

	for (size_t i = 0; i < ask->label_names.n; i++)
		if (str_eq(name, names[i]))
			return true;
	return !ask->label_names.n;
}

static void add_label(struct label_sets *x, struct str name, struct str value)
{
	if (value.n && is_wanted(x->ask, name))
		vec_push(&x->labels, (struct store_label){ name, value });
}

static int by_key(const void *a, const void *b)
{
	const struct store_label *x = a, *y = b;

	return str_cmp(x->key, y->key);
}

static void put_labels(struct label_sets *x, struct buf *out)
{
	struct buf label = { 0 };

	if (x->labels.n)
		qsort(x->labels.at, x->labels.n, sizeof(*x->labels.at), by_key);
	for (size_t i = 0; i < x->labels.n; i++) {
		put_utf8(&label, 1, x->labels.at[i].key);
		put_utf8(&label, 2, x->labels.at[i].value);
		put_message(out, 1, &label);
	}
	buf_release(&label);
}

static bool same_set(const void *ctx, uint32_t index)
{
	const struct label_sets *x = ((const void *const *)ctx)[0];
	const struct buf *set = ((const void *const *)ctx)[1];

	return str_eq(x->sets.at[index], buf_view(set));
}

static bool add_label_set(void *ctx, const struct store_listed *series,
			  const struct profile_type_id *id, struct err *e)
{
	struct label_sets *x = ctx;
	struct buf set = { 0 };
	const void *key[2] = { x, &set };
	uint32_t i;

	x->labels.n = 0;
	for (size_t k = 0; k < NOWN; k++)
		if (is_wanted(x->ask, str_of(own_names[k])))
			add_label(x, str_of(own_names[k]), own_value(x->q->a, id, k));
	add_label(x, STR("service_name"), series->service);
	for (size_t k = 0; k < series->nlabels; k++)
		add_label(x, store_query_name(series->labels[k].key), series->labels[k].value);
	put_labels(x, &set);
	i = map_put(&x->map, hash_bytes(x->seed, set.p, set.n), x->sets.n, same_set, key);
	if (i == x->sets.n)
		vec_push(&x->sets, (struct str){ arena_copy(x->q->a, set.p, set.n), set.n });
	buf_release(&set);
	return x->sets.n <= MAX_LABEL_SETS ||
	       err_set(e, ERR_USAGE,
		       "there are more than %d series; ask for fewer by matchers, or for some "
		       "label_names",
		       MAX_LABEL_SETS);
}

bool querier_label_sets(const struct querier *q, const void *request, struct buf *out,
			struct err *e)
{
	struct label_sets x = { .q = q, .ask = request, .seed = map_seed() };
	bool ok;

	if (x.ask->label_names.n > MAX_LABEL_NAMES)
		return err_set(e, ERR_USAGE, "label_names: there are %zu, and at most %d are taken",
			       x.ask->label_names.n, MAX_LABEL_NAMES);
	ok = list(q, request, add_label_set, &x, e);
	for (size_t i = 0; ok && i < x.sets.n; i++)
		put_bytes(out, 2, x.sets.at[i]);
	vec_release(&x.labels);
	vec_release(&x.sets);
	map_release(&x.map);
	return ok;
}
