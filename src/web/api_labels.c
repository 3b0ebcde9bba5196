/* api_labels.c - all labels with their values. */
#include "web/site.h"
#include "web/values.h"

/* Of all keys together no more than a page can show. */
enum { MOST_VALUES = 1000, LEAST_VALUES = 20, ALL_VALUES = 20000, MOST_KEYS = 1000 };

static void put_value(struct buf *out, const struct profile *p, const struct value_row *row)
{
	buf_puts(out, "{\"value\":");
	if (row->is_number)
		buf_int(out, row->number);
	else
		json_put(out, profile_str(p, row->text));
	buf_printf(out, ",\"weight\":%lld,\"samples\":%u}", (long long)row->weight, row->samples);
}

/* Values of one key, `most` of them. */
static void put_key(struct buf *out, const struct report_run *r, const struct value_row *rows,
		    size_t n, size_t most)
{
	struct str unit = STR("");
	int64_t total = 0;

	if (rows->is_number)
		unit = label_unit(r->p, r->params->units, rows->key);
	for (size_t i = 0; i < n; i++)
		total = int_add(total, rows[i].weight);
	buf_puts(out, "{\"key\":");
	json_put(out, profile_str(r->p, rows->key));
	buf_puts(out, ",\"unit\":");
	json_put(out, unit);
	buf_printf(out, ",\"is_number\":%s,\"total\":%lld,\"values\":[",
		   rows->is_number ? "true" : "false", (long long)total);
	for (size_t i = 0; i < n && i < most; i++) {
		buf_puts(out, i ? ",\n" : "");
		put_value(out, r->p, &rows[i]);
	}
	buf_printf(out, "],\"more\":%zu}", n > most ? n - most : 0);
}

static size_t count_keys(const struct value_table *t)
{
	size_t n = t->rows.n > 0;

	for (size_t i = 1; i < t->rows.n; i++)
		n += !values_same_key(&t->rows.at[i], &t->rows.at[i - 1]);
	return n;
}

static size_t values_of_each(size_t nkeys)
{
	size_t n = nkeys ? ALL_VALUES / nkeys : MOST_VALUES;

	return n < LEAST_VALUES ? LEAST_VALUES : n > MOST_VALUES ? MOST_VALUES : n;
}

static bool run_labels(struct buf *out, struct report_run *r, struct err *e)
{
	const struct profile *p = r->p;
	int64_t *weights = arena_many(r->a, p->nlabel_sets, int64_t), total = 0;
	uint32_t *counts = arena_many(r->a, p->nlabel_sets, uint32_t);
	struct value_table t;
	size_t end, nkeys, done = 0;

	(void)e;
	for (uint32_t i = 0; i < p->nsamples && !stop_asked_at(r->params->stop, i); i++) {
		const struct sample *s = &p->samples[i];
		int64_t w = report_sample_value(r, s);

		weights[s->labels] = int_add(weights[s->labels], w);
		counts[s->labels]++;
		total = int_add(total, w);
	}
	values_collect(&t, p, weights, counts);
	nkeys = count_keys(&t);
	buf_char(out, '{');
	api_put_type(out, r);
	buf_printf(out, ",\"total\":%lld,\"keys\":[", (long long)total);
	for (size_t i = 0; i < t.rows.n; i = end, done++) {
		for (end = i; end < t.rows.n && values_same_key(&t.rows.at[end], &t.rows.at[i]);)
			end++;
		if (done >= MOST_KEYS)
			continue;
		buf_puts(out, i ? ",\n" : "");
		put_key(out, r, &t.rows.at[i], end - i, values_of_each(nkeys));
	}
	buf_printf(out, "],\"more_keys\":%zu", nkeys > MOST_KEYS ? nkeys - MOST_KEYS : 0);
	values_release(&t);
	return true;
}

static const struct report report_label_values = {
	.name = "labels",
	.flags = REPORT_NO_STACKS,
	.run = run_labels,
};

bool api_labels(struct api_call *q, struct buf *out, struct err *e)
{
	if (!api_report(q, &q->profile->session, &report_label_values, "", NULL, out, e))
		return false;
	api_put_warnings(q, out);
	buf_puts(out, "}\n");
	return true;
}
