#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/int.h"
#include "base/vec.h"

/* Gives every set the labels that `keep` likes, plus `extra` if that is given, as a string label.
 */
static void rewrite_sets(struct arena *a, struct profile *p,
			 bool (*keep)(const void *ctx, const struct label *l), const void *ctx,
			 const struct label *extra)
{
	struct label_set *sets = arena_many(a, p->nlabel_sets, struct label_set);
	vec(struct label) labels = { 0 };

	for (uint32_t s = 0; s < p->nlabel_sets; s++) {
		const struct label_set *from = &p->label_sets[s];
		const struct label *l = set_labels(p, s);
		bool has_extra = !extra;

		sets[s].first = (uint32_t)labels.n;
		for (uint32_t i = 0; i < from->nstrings + from->nnumbers; i++) {
			bool is_number = i >= from->nstrings;

			if (!has_extra && (is_number || str_cmp(profile_str(p, extra->key),
								profile_str(p, l[i].key)) < 0)) {
				vec_push(&labels, *extra);
				sets[s].nstrings++;
				has_extra = true;
			}
			if (!keep(ctx, &l[i]))
				continue;
			vec_push(&labels, l[i]);
			if (is_number)
				sets[s].nnumbers++;
			else
				sets[s].nstrings++;
		}
		if (!has_extra) {
			vec_push(&labels, *extra);
			sets[s].nstrings++;
		}
	}
	vec_reserve(&labels, 1);
	p->label_sets = sets;
	p->labels = vec_adopt(a, &labels);
}

static bool has_other_key(const void *ctx, const struct label *l)
{
	return l->key != *(const uint32_t *)ctx;
}

void profile_add_base_label(struct arena *a, struct profile *p)
{
	struct label base = { .key = strings_add(p->strings, STR(LABEL_BASE)),
			      .text = strings_add(p->strings, STR("true")) };

	rewrite_sets(a, p, has_other_key, &base.key, &base);
}

void profile_remove_base_label(struct arena *a, struct profile *p)
{
	uint32_t key = strings_add(p->strings, STR(LABEL_BASE));

	for (uint32_t s = 0; s < p->nlabel_sets; s++) {
		const struct label *l = set_labels(p, s);

		for (uint32_t i = 0; i < p->label_sets[s].nstrings; i++) {
			if (l[i].key == key) {
				rewrite_sets(a, p, has_other_key, &key, NULL);
				return;
			}
		}
	}
}

struct key_filter {
	const bool *keep; /* by string */
};

static bool has_kept_key(const void *ctx, const struct label *l)
{
	return ((const struct key_filter *)ctx)->keep[l->key];
}

void profile_keep_label_keys(struct arena *a, struct profile *p, const bool *keep)
{
	rewrite_sets(a, p, has_kept_key, &(struct key_filter){ keep }, NULL);
}

bool label_set_is_base(const struct profile *p, uint32_t set)
{
	const struct label *l = set_labels(p, set);

	for (uint32_t i = 0; i < p->label_sets[set].nstrings; i++)
		if (str_eq(profile_str(p, l[i].key), STR(LABEL_BASE)) &&
		    str_eq(profile_str(p, l[i].text), STR("true")))
			return true;
	return false;
}

void profile_take_side(struct arena *a, struct profile *p, bool is_base)
{
	const struct profile all = *p;

	p->times = NULL;
	p->samples = arena_many(a, all.nsamples, struct sample);
	p->values = arena_many(a, (size_t)all.nsamples * all.ntypes, int64_t);
	p->nsamples = 0;
	for (uint32_t i = 0; i < all.nsamples; i++) {
		struct sample s = all.samples[i];
		const int64_t *from = sample_values(&all, &s);

		if (label_set_is_base(&all, s.labels) != is_base)
			continue;
		s.row = p->nsamples;
		for (uint32_t t = 0; t < all.ntypes; t++)
			p->values[(size_t)s.row * all.ntypes + t] =
				is_base ? int_neg(from[t]) : from[t];
		p->samples[p->nsamples++] = s;
	}
	profile_remove_base_label(a, p);
}

/* ---- units of numeric labels */

/* All units that were seen with a key, the one to use first. */
struct seen_units {
	uint32_t key;
	vec(uint32_t) units;
};

static void note_unit(struct seen_units *k, uint32_t unit)
{
	if (!unit)
		return;
	for (size_t i = 0; i < k->units.n; i++)
		if (k->units.at[i] == unit)
			return;
	if (k->units.n < 1000) /* the warning below gets long enough */
		vec_push(&k->units, unit);
}

static int compare_strs(const void *x, const void *y)
{
	return str_cmp(*(const struct str *)x, *(const struct str *)y);
}

static void warn_units(const struct profile *p, const struct seen_units *k, struct buf *warnings)
{
	size_t n = k->units.n - 1;
	struct str *others = xmalloc(n * sizeof(*others));

	for (size_t i = 0; i < n; i++)
		others[i] = profile_str(p, k->units.at[i + 1]);
	qsort(others, n, sizeof(*others), compare_strs);
	buf_puts(warnings, "For tag ");
	buf_str(warnings, profile_str(p, k->key));
	buf_puts(warnings, " used unit ");
	buf_str(warnings, profile_str(p, k->units.at[0]));
	buf_puts(warnings, ", also encountered unit(s) ");
	for (size_t i = 0; i < n; i++) {
		buf_puts(warnings, i ? ", " : "");
		buf_str(warnings, others[i]);
	}
	buf_char(warnings, '\n');
	free(others);
}

static uint32_t unit_for(struct profile *p, const struct seen_units *k)
{
	struct str key = profile_str(p, k->key);

	if (k->units.n)
		return k->units.at[0];
	if (str_eq(key, STR("alignment")) || str_eq(key, STR("request")))
		return strings_add(p->strings, STR("bytes"));
	return k->key; /* a key without units names its own: bytes are in bytes */
}

static bool same_key(const void *ctx, uint32_t index)
{
	const struct seen_units *keys = ((const void *const *)ctx)[0];
	const uint32_t *key = ((const void *const *)ctx)[1];

	return keys[index].key == *key;
}

void profile_label_units(struct arena *a, struct profile *p, struct label_units *units,
			 struct buf *warnings)
{
	bool *is_used = arena_many(a, p->nlabel_sets, bool);
	vec(struct seen_units) keys = { 0 };
	struct map map = { 0 };

	for (uint32_t i = 0; i < p->nsamples; i++)
		is_used[p->samples[i].labels] = true;
	/* Sets are numbered in the order in which samples brought them. */
	for (uint32_t s = 0; s < p->nlabel_sets; s++) {
		const struct label *l = set_labels(p, s) + p->label_sets[s].nstrings;

		for (uint32_t i = 0; is_used[s] && i < p->label_sets[s].nnumbers; i++) {
			const void *key[2] = { keys.at, &l[i].key };
			uint32_t at = map_put(&map, hash_mix(p->strings->seed, l[i].key), keys.n,
					      same_key, key);

			if (at == keys.n)
				vec_push(&keys, (struct seen_units){ .key = l[i].key });
			note_unit(&keys.at[at], l[i].text);
		}
	}
	units->n = p->strings->n;
	units->of = arena_many(a, p->strings->n, uint32_t);
	for (size_t i = 0; i < keys.n; i++) {
		units->of[keys.at[i].key] = unit_for(p, &keys.at[i]);
		if (keys.at[i].units.n > 1 && warnings)
			warn_units(p, &keys.at[i], warnings);
		vec_release(&keys.at[i].units);
	}
	vec_release(&keys);
	map_release(&map);
}
