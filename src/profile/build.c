#include "profile/build.h"

#include <stdlib.h>
#include <string.h>

struct set_key {
	const struct label_table *table;
	const struct label *labels;
	uint32_t nstrings, nnumbers;
};

static bool same_set(const void *ctx, uint32_t index)
{
	const struct set_key *k = ctx;
	const struct label_set *s = &k->table->sets.at[index];

	return s->nstrings == k->nstrings && s->nnumbers == k->nnumbers &&
	       memcmp(k->table->labels.at + s->first, k->labels,
		      ((size_t)s->nstrings + s->nnumbers) * sizeof(*k->labels)) == 0;
}

uint32_t label_table_add_set(struct label_table *t, const struct label *labels, uint32_t nstrings,
			     uint32_t nnumbers)
{
	struct set_key key = { t, labels, nstrings, nnumbers };
	size_t n = (size_t)nstrings + nnumbers;
	uint64_t hash;
	uint32_t set;

	if (!n)
		return 0;
	hash = hash_bytes(t->seed + nstrings, labels, n * sizeof(*labels));
	set = map_put(&t->map, hash, t->sets.n, same_set, &key);
	if (set == t->sets.n) {
		struct label_set s = { (uint32_t)t->labels.n, nstrings, nnumbers };

		vec_push(&t->sets, s);
		vec_reserve(&t->labels, n);
		memcpy(t->labels.at + t->labels.n, labels, n * sizeof(*labels));
		t->labels.n += n;
	}
	return set;
}

void label_table_init(struct label_table *t)
{
	*t = (struct label_table){ .seed = map_seed() };
	vec_push(&t->sets, (struct label_set){ 0 });
	vec_reserve(&t->labels, 1); /* so that there is something to point at */
}

void label_table_release(struct label_table *t)
{
	vec_release(&t->sets);
	vec_release(&t->labels);
	map_release(&t->map);
}

struct ranked {
	struct label_input in;
	size_t rank;
};

static int compare_ranked(const void *x, const void *y, void *ctx)
{
	const struct ranked *a = x, *b = y;
	const struct strings *strings = ctx;

	if (a->in.is_number != b->in.is_number)
		return a->in.is_number ? 1 : -1;
	if (a->in.label.key != b->in.label.key)
		return str_cmp(strings->at[a->in.label.key], strings->at[b->in.label.key]);
	return a->rank < b->rank ? -1 : 1; /* values of one key stay in order */
}

/* Most samples have a few labels, in order already: no call of qsort for those. */
static void sort_ranked(struct ranked *r, size_t n, const struct strings *strings)
{
	void *ctx = (void *)(uintptr_t)strings;

	if (n > 16) {
		qsort_r(r, n, sizeof(*r), compare_ranked, ctx);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		struct ranked x = r[i];
		size_t k = i;

		for (; k && compare_ranked(&r[k - 1], &x, ctx) > 0; k--)
			r[k] = r[k - 1];
		r[k] = x;
	}
}

uint32_t label_table_add(struct label_table *t, const struct strings *strings,
			 const struct label_input *labels, size_t n)
{
	struct ranked few[16], *ranked = few;
	struct label few_labels[16], *sorted = few_labels;
	uint32_t nstrings = 0, set;

	if (!n)
		return 0;
	if (n > 16) {
		ranked = xmalloc(n * sizeof(*ranked));
		sorted = xmalloc(n * sizeof(*sorted));
	}
	for (size_t i = 0; i < n; i++) {
		ranked[i] = (struct ranked){ labels[i], i };
		nstrings += !labels[i].is_number;
	}
	sort_ranked(ranked, n, strings);
	for (size_t i = 0; i < n; i++)
		sorted[i] = ranked[i].in.label;
	set = label_table_add_set(t, sorted, nstrings, (uint32_t)n - nstrings);
	if (n > 16) {
		free(ranked);
		free(sorted);
	}
	return set;
}

void builder_init(struct builder *b, struct strings *strings)
{
	*b = (struct builder){ .head.strings = strings };
	label_table_init(&b->labels);
	/* so that what is empty has somewhere to point at */
	vec_reserve(&b->stacks, 1);
	vec_reserve(&b->values, 1);
	vec_reserve(&b->lines, 1);
}

void builder_release(struct builder *b)
{
	vec_release(&b->types);
	vec_release(&b->samples);
	vec_release(&b->stacks);
	vec_release(&b->values);
	vec_release(&b->mappings);
	vec_release(&b->locations);
	vec_release(&b->lines);
	vec_release(&b->functions);
	vec_release(&b->comments);
	label_table_release(&b->labels);
}

uint32_t builder_string(struct builder *b, struct str s)
{
	return strings_add(b->head.strings, s);
}

void builder_sample(struct builder *b, const uint32_t *stack, size_t nstack, uint32_t labels,
		    const int64_t *values)
{
	struct sample s = { (uint32_t)b->stacks.n, (uint32_t)nstack, labels,
			    (uint32_t)b->samples.n };

	vec_push(&b->samples, s);
	vec_reserve(&b->stacks, nstack);
	if (nstack)
		memcpy(b->stacks.at + b->stacks.n, stack, nstack * sizeof(*stack));
	b->stacks.n += nstack;
	vec_reserve(&b->values, b->types.n);
	if (b->types.n)
		memcpy(b->values.at + b->values.n, values, b->types.n * sizeof(*values));
	b->values.n += b->types.n;
}

void builder_finish(struct builder *b, struct arena *a, struct profile *out)
{
	*out = b->head;
	out->ntypes = (uint32_t)b->types.n;
	out->types = vec_adopt(a, &b->types);
	out->nsamples = (uint32_t)b->samples.n;
	out->samples = vec_adopt(a, &b->samples);
	out->stacks = vec_adopt(a, &b->stacks);
	out->values = vec_adopt(a, &b->values);
	out->nmappings = (uint32_t)b->mappings.n;
	out->mappings = vec_adopt(a, &b->mappings);
	out->nlocations = (uint32_t)b->locations.n;
	out->locations = vec_adopt(a, &b->locations);
	out->nlines = (uint32_t)b->lines.n;
	out->lines = vec_adopt(a, &b->lines);
	out->nfunctions = (uint32_t)b->functions.n;
	out->functions = vec_adopt(a, &b->functions);
	out->ncomments = (uint32_t)b->comments.n;
	out->comments = vec_adopt(a, &b->comments);
	out->nlabel_sets = (uint32_t)b->labels.sets.n;
	out->label_sets = vec_adopt(a, &b->labels.sets);
	out->labels = vec_adopt(a, &b->labels.labels);
	builder_release(b);
}
