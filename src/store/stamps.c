#include "store/stamps.h"

#include <stdlib.h>

#include "profile/build.h"

/* Labels of a sample, on average. With the time each sample has a set of its own again: a small
 * file, in which a large set is named often, would be much memory. */
enum { MOST_LABELS = 16 };

static uint32_t set_size(const struct profile *p, uint32_t set)
{
	return p->label_sets[set].nstrings + p->label_sets[set].nnumbers;
}

/* ---- packing */

static bool is_like(const struct stamps *s, const struct label *l)
{
	return l->key == s->key && l->text == s->unit;
}

static bool has_few_labels(const struct stamps *s, const struct profile *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->nsamples; i++)
		if (s->of[p->samples[i].labels] != NONE)
			n += set_size(p, p->samples[i].labels);
	return n <= (uint64_t)p->nsamples * MOST_LABELS;
}

void stamps_find(struct stamps *s, struct arena *a, const struct profile *p)
{
	*s = (struct stamps){ 0 };
	for (uint32_t i = 0; i < p->nlabel_sets; i++) {
		uint32_t at = profile_set_stamp(p, i);
		const struct label *l = at == NONE ? NULL : set_labels(p, i) + at;

		if (l && !s->of) {
			s->key = l->key;
			s->unit = l->text;
			s->of = arena_many_raw(a, p->nlabel_sets, uint32_t);
			for (uint32_t k = 0; k < i; k++)
				s->of[k] = NONE;
		}
		if (s->of)
			s->of[i] = l && is_like(s, l) ? at : NONE;
	}
	if (s->of && !has_few_labels(s, p))
		s->of = NULL;
}

/* Each takes a byte or more, so that the bytes tell how many there may be. */
void stamps_put(struct buf *out, struct arena *scratch, const struct stamps *s,
		const struct profile *p)
{
	uint64_t *has = arena_many(scratch, p->nsamples, uint64_t);
	uint64_t *passed = arena_many(scratch, p->nsamples, uint64_t);
	uint64_t last = (uint64_t)p->time_nanos;

	for (uint32_t i = 0; i < p->nsamples; i++) {
		uint32_t set = p->samples[i].labels;
		uint64_t at;

		if (s->of[set] == NONE)
			continue;
		at = (uint64_t)set_labels(p, set)[s->of[set]].number;
		has[i] = 1;
		passed[i] = zigzag((int64_t)(at - last));
		last = at;
	}
	put_column(out, has, p->nsamples, true);
	put_column(out, passed, p->nsamples, false);
}

/* ---- unpacking */

struct stamper {
	struct profile *p;
	struct label stamp;
	struct label_table table;
	vec(struct label) labels;
	uint64_t nlabels;
};

/* Where profile_set_stamp had found it: among numbers, and the first of its key. */
static uint32_t stamped_set(struct stamper *s, uint32_t set)
{
	const struct profile *p = s->p;
	const struct label *l = set_labels(p, set);
	uint32_t n = set_size(p, set), at = p->label_sets[set].nstrings;
	struct str key = profile_str(p, s->stamp.key);

	while (at < n && str_cmp(profile_str(p, l[at].key), key) < 0)
		at++;
	s->labels.n = 0;
	for (uint32_t i = 0; i < at; i++)
		vec_push(&s->labels, l[i]);
	vec_push(&s->labels, s->stamp);
	for (uint32_t i = at; i < n; i++)
		vec_push(&s->labels, l[i]);
	s->nlabels += n + 1;
	return label_table_add_set(&s->table, s->labels.at, p->label_sets[set].nstrings,
				   p->label_sets[set].nnumbers + 1);
}

static uint32_t same_set(struct stamper *s, uint32_t set)
{
	const struct label_set *of = &s->p->label_sets[set];

	return label_table_add_set(&s->table, set_labels(s->p, set), of->nstrings, of->nnumbers);
}

static void stamp(struct reader *r, struct stamper *s, const uint64_t *has, const uint64_t *passed)
{
	struct profile *p = s->p;
	uint64_t last = (uint64_t)p->time_nanos;

	for (uint32_t i = 0; i < p->nsamples && !r->is_bad; i++) {
		struct sample *sample = &p->samples[i];

		if (!has[i]) {
			sample->labels = same_set(s, sample->labels);
			continue;
		}
		s->stamp.number = (int64_t)(last += (uint64_t)unzigzag(passed[i]));
		sample->labels = stamped_set(s, sample->labels);
		if (s->nlabels > (uint64_t)p->nsamples * MOST_LABELS)
			reader_fail(r);
	}
}

void stamps_get(struct reader *r, struct arena *a, const struct label *like, struct profile *p)
{
	struct stamper s = { .p = p, .stamp = *like };
	uint64_t *has, *passed;

	if (p->nsamples > (size_t)(r->end - r->p)) {
		reader_fail(r);
		return;
	}
	has = xcalloc((size_t)p->nsamples + 1, sizeof(*has));
	passed = xcalloc((size_t)p->nsamples + 1, sizeof(*passed));
	label_table_init(&s.table);
	get_column(r, has, p->nsamples, true);
	get_column(r, passed, p->nsamples, false);
	stamp(r, &s, has, passed);
	p->nlabel_sets = (uint32_t)s.table.sets.n;
	p->label_sets = vec_adopt(a, &s.table.sets);
	p->labels = vec_adopt(a, &s.table.labels);
	label_table_release(&s.table);
	vec_release(&s.labels);
	free(has);
	free(passed);
}
