#include "server/metrics.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/vec.h"

enum { MAX_SERIES = 2000, NBOUNDS = 11 };

/* Those that Prometheus' clients use. */
static const double bounds[NBOUNDS] = { .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10 };

enum kind { COUNTER, GAUGE, HISTOGRAM, SUMMARY };

static const struct definition {
	enum kind kind;
	const char *name, *labels, *help;
} definitions[NMETRICS] = {
#define METRIC(kind, field, name, labels, help) { kind, name, labels, help },
#include "server/metrics.def"
#undef METRIC
};

static const char *const kind_names[] = { "counter", "gauge", "histogram", "summary" };

struct series {
	enum metric metric;
	struct str labels; /* method="GET",path="/" */
	double value;	   /* of histograms and summaries: the sum */
	uint64_t n, below[NBOUNDS];
};

struct metrics {
	pthread_mutex_t lock;
	struct arena arena; /* of the labels */
	vec(struct series) all;
	struct map by_labels;
	uint32_t counts[NMETRICS];
};

struct metrics *metrics_new(void)
{
	struct metrics *m = xcalloc(1, sizeof(*m));

	pthread_mutex_init(&m->lock, NULL);
	return m;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	pthread_mutex_destroy(&m->lock);
	arena_release(&m->arena);
	vec_release(&m->all);
	map_release(&m->by_labels);
	free(m);
}

/* ---- finding one */

static void put_value(struct buf *out, struct str value)
{
	for (size_t i = 0; i < value.n; i++) {
		if (value.p[i] == '\n')
			buf_puts(out, "\\n");
		else if (value.p[i] == '"' || value.p[i] == '\\')
			buf_add(out, (char[]){ '\\', value.p[i] }, 2);
		else
			buf_char(out, value.p[i]);
	}
}

static void put_labels(struct buf *out, enum metric which, const struct str *values)
{
	struct str names = str_of(definitions[which].labels);

	for (size_t i = 0; names.n; i++) {
		if (i)
			buf_char(out, ',');
		buf_str(out, str_cut(&names, ','));
		buf_puts(out, "=\"");
		put_value(out, values ? values[i] : STR("other"));
		buf_char(out, '"');
	}
}

struct key {
	const struct metrics *m;
	enum metric metric;
	struct str labels;
};

static bool same_series(const void *key, uint32_t i)
{
	const struct key *k = key;
	const struct series *s = &k->m->all.at[i];

	return s->metric == k->metric && str_eq(s->labels, k->labels);
}

static uint64_t hash_key(const struct key *k)
{
	return hash_bytes(map_seed() + k->metric, k->labels.p, k->labels.n);
}

/* With the lock held. */
static struct series *find_series(struct metrics *m, enum metric which, const struct str *values)
{
	struct buf labels = { 0 };
	struct key key = { m, which, { 0 } };
	uint32_t i;

	put_labels(&labels, which, values);
	key.labels = buf_view(&labels);
	i = map_get(&m->by_labels, hash_key(&key), same_series, &key);
	if (i == MAP_NONE && m->counts[which] >= MAX_SERIES) { /* as "other" */
		labels.n = 0;
		put_labels(&labels, which, NULL);
		key.labels = buf_view(&labels);
		i = map_get(&m->by_labels, hash_key(&key), same_series, &key);
	}
	if (i == MAP_NONE) {
		char *copy = str_dup(&m->arena, key.labels);

		i = map_add(&m->by_labels, hash_key(&key), m->all.n);
		vec_push(&m->all,
			 (struct series){ .metric = which, .labels = { copy, key.labels.n } });
		m->counts[which]++;
	}
	buf_release(&labels);
	return &m->all.at[i];
}

/* ---- counting */

void metrics_add(struct metrics *m, enum metric which, double value, const struct str *labels)
{
	struct series *s;

	pthread_mutex_lock(&m->lock);
	s = find_series(m, which, labels);
	s->value += value;
	s->n++;
	for (size_t i = NBOUNDS; i-- > 0 && value <= bounds[i];)
		s->below[i]++;
	pthread_mutex_unlock(&m->lock);
}

void metrics_set(struct metrics *m, enum metric which, double value, const struct str *labels)
{
	pthread_mutex_lock(&m->lock);
	find_series(m, which, labels)->value = value;
	pthread_mutex_unlock(&m->lock);
}

double metrics_get(struct metrics *m, enum metric which, const struct str *labels)
{
	enum kind kind = definitions[which].kind;
	const struct series *s;
	double value;

	pthread_mutex_lock(&m->lock);
	s = find_series(m, which, labels);
	value = kind == HISTOGRAM || kind == SUMMARY ? (double)s->n : s->value;
	pthread_mutex_unlock(&m->lock);
	return value;
}

/* ---- printing */

static void put_line(struct buf *out, const struct series *s, const char *suffix, const char *le,
		     double value)
{
	buf_puts(out, definitions[s->metric].name);
	buf_puts(out, suffix);
	if (s->labels.n || le) {
		buf_char(out, '{');
		buf_str(out, s->labels);
		if (le)
			buf_printf(out, "%sle=\"%s\"", s->labels.n ? "," : "", le);
		buf_char(out, '}');
	}
	buf_printf(out, " %.15g\n", value);
}

static void put_series(struct buf *out, const struct series *s)
{
	enum kind kind = definitions[s->metric].kind;

	if (kind == COUNTER || kind == GAUGE) {
		put_line(out, s, "", NULL, s->value);
		return;
	}
	if (kind == HISTOGRAM) {
		for (size_t i = 0; i < NBOUNDS; i++) {
			char le[32];

			snprintf(le, sizeof(le), "%g", bounds[i]);
			put_line(out, s, "_bucket", le, (double)s->below[i]);
		}
		put_line(out, s, "_bucket", "+Inf", (double)s->n);
	}
	put_line(out, s, "_sum", NULL, s->value);
	put_line(out, s, "_count", NULL, (double)s->n);
}

void metrics_print(struct buf *out, struct metrics *m)
{
	pthread_mutex_lock(&m->lock);
	for (enum metric which = 0; which < NMETRICS; which++) {
		const struct definition *d = &definitions[which];

		if (!m->counts[which])
			continue;
		buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", d->name, d->help, d->name,
			   kind_names[d->kind]);
		for (size_t i = 0; i < m->all.n; i++)
			if (m->all.at[i].metric == which)
				put_series(out, &m->all.at[i]);
	}
	pthread_mutex_unlock(&m->lock);
}
