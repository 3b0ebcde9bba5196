#include "web/values.h"

#include <stdlib.h>

#include "base/int.h"

static bool same_value(const void *ctx, uint32_t index)
{
	const struct value_table *t = ((const void *const *)ctx)[0];
	const struct value_row *want = ((const void *const *)ctx)[1], *r = &t->rows.at[index];

	return r->key == want->key && r->is_number == want->is_number &&
	       (r->is_number ? r->number == want->number : r->text == want->text);
}

static void add_value(struct value_table *t, struct value_row row)
{
	const void *ctx[2] = { t, &row };
	uint64_t value = row.is_number ? (uint64_t)row.number : row.text;
	uint64_t hash = hash_mix(hash_mix(t->seed, row.key), value + row.is_number);
	uint32_t at = map_put(&t->map, hash, t->rows.n, same_value, ctx);

	if (at == t->rows.n) {
		vec_push(&t->rows, row);
		return;
	}
	t->rows.at[at].weight = int_add(t->rows.at[at].weight, row.weight);
	t->rows.at[at].samples += row.samples;
}

bool values_same_key(const struct value_row *a, const struct value_row *b)
{
	return a->key == b->key && a->is_number == b->is_number;
}

static int compare_rows(const void *a, const void *b, void *profile)
{
	const struct value_row *x = a, *y = b;
	const struct profile *p = profile;
	int64_t v = int_abs(x->weight), w = int_abs(y->weight);

	if (x->key != y->key)
		return str_cmp(profile_str(p, x->key), profile_str(p, y->key));
	if (x->is_number != y->is_number)
		return x->is_number ? 1 : -1;
	if (v != w)
		return v > w ? -1 : 1;
	if (x->is_number)
		return (x->number > y->number) - (x->number < y->number);
	return str_cmp(profile_str(p, x->text), profile_str(p, y->text));
}

void values_collect(struct value_table *t, const struct profile *p, const int64_t *weights,
		    const uint32_t *counts)
{
	*t = (struct value_table){ .seed = map_seed() };
	for (uint32_t set = 0; set < p->nlabel_sets; set++) {
		const struct label_set *s = &p->label_sets[set];
		const struct label *l = set_labels(p, set);

		for (uint32_t i = 0; counts[set] && i < s->nstrings + s->nnumbers; i++)
			add_value(t, (struct value_row){ l[i].key, l[i].text, i >= s->nstrings,
							 l[i].number, weights[set], counts[set] });
	}
	if (t->rows.n)
		qsort_r(t->rows.at, t->rows.n, sizeof(*t->rows.at), compare_rows,
			(void *)(uintptr_t)p);
}

void values_release(struct value_table *t)
{
	vec_release(&t->rows);
	map_release(&t->map);
}
