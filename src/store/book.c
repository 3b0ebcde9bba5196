#include "store/tables.h"

#include <stdlib.h>
#include <string.h>

struct book *book_new(void)
{
	struct book *b = xcalloc(1, sizeof(*b));

	b->seed = map_seed();
	vec_push(&b->strings, STR(""));
	vec_push(&b->label_sets, (struct label_set){ 0 });
	/* so that what is empty has somewhere to point at */
	vec_reserve(&b->frames, 1);
	vec_reserve(&b->labels, 1);
	vec_reserve(&b->lines, 1);
	vec_reserve(&b->types, 1);
	vec_reserve(&b->placed, 1);
	return b;
}

void book_free(struct book *b)
{
	if (!b)
		return;
	vec_release(&b->strings);
	vec_release(&b->mappings);
	vec_release(&b->functions);
	vec_release(&b->lines);
	vec_release(&b->locations);
	vec_release(&b->frames);
	vec_release(&b->stacks);
	vec_release(&b->labels);
	vec_release(&b->label_sets);
	vec_release(&b->types);
	vec_release(&b->heads);
	vec_release(&b->placed);
	vec_release(&b->layouts);
	arena_release(&b->bytes);
	map_release(&b->maps.strings);
	map_release(&b->maps.mappings);
	map_release(&b->maps.functions);
	map_release(&b->maps.locations);
	map_release(&b->maps.stacks);
	map_release(&b->maps.label_sets);
	map_release(&b->maps.heads);
	map_release(&b->maps.layouts);
	free(b);
}

static size_t map_bytes(const struct map *m)
{
	return m->slots ? ((size_t)m->mask + 1) * sizeof(*m->slots) : 0;
}

#define VEC_BYTES(v) ((v).cap * sizeof(*(v).at))

size_t book_bytes(const struct book *b)
{
	return sizeof(*b) + VEC_BYTES(b->strings) + VEC_BYTES(b->mappings) +
	       VEC_BYTES(b->functions) + VEC_BYTES(b->lines) + VEC_BYTES(b->locations) +
	       VEC_BYTES(b->frames) + VEC_BYTES(b->stacks) + VEC_BYTES(b->labels) +
	       VEC_BYTES(b->label_sets) + VEC_BYTES(b->types) + VEC_BYTES(b->heads) +
	       VEC_BYTES(b->placed) + VEC_BYTES(b->layouts) + arena_bytes(&b->bytes) +
	       map_bytes(&b->maps.strings) + map_bytes(&b->maps.mappings) +
	       map_bytes(&b->maps.functions) + map_bytes(&b->maps.locations) +
	       map_bytes(&b->maps.stacks) + map_bytes(&b->maps.label_sets) +
	       map_bytes(&b->maps.heads) + map_bytes(&b->maps.layouts);
}

struct book_mark book_mark(const struct book *b)
{
	return (struct book_mark){
		.nstrings = (uint32_t)b->strings.n,
		.nmappings = (uint32_t)b->mappings.n,
		.nfunctions = (uint32_t)b->functions.n,
		.nlines = (uint32_t)b->lines.n,
		.nlocations = (uint32_t)b->locations.n,
		.nstacks = (uint32_t)b->stacks.n,
		.nlabel_sets = (uint32_t)b->label_sets.n,
		.nheads = (uint32_t)b->heads.n,
		.nlayouts = (uint32_t)b->layouts.n,
	};
}

bool book_is_at(const struct book *b, const struct book_mark *mark)
{
	struct book_mark now = book_mark(b);

	return memcmp(&now, mark, sizeof(now)) == 0;
}

/* ---- what is looked for, and where */

struct key {
	const struct book *b;
	const void *row, *part; /* `part`: lines, types, ... of the row */
	uint32_t n;
	bool may_add;
};

/* As map_put, or NONE. */
static uint32_t find_row(struct map *m, uint64_t hash, size_t n, map_same *same,
			 const struct key *k)
{
	return k->may_add ? map_put(m, hash, (uint32_t)n, same, k) : map_get(m, hash, same, k);
}

static bool same_string(const void *ctx, uint32_t index)
{
	const struct key *k = ctx;
	const struct str *s = k->row;

	return str_eq(k->b->strings.at[index], *s);
}

static uint64_t hash_string(const struct book *b, struct str s)
{
	return hash_bytes(b->seed, s.p, s.n);
}

uint32_t book_find_string(struct book *b, struct str s, bool may_add)
{
	struct key key = { .b = b, .may_add = may_add, .row = &s };
	uint32_t i = find_row(&b->maps.strings, hash_string(b, s), b->strings.n, same_string, &key);

	if (i == b->strings.n) {
		struct str kept = { arena_copy(&b->bytes, s.p, s.n), s.n };

		vec_push(&b->strings, kept);
	}
	return i;
}

static bool same_mapping(const void *ctx, uint32_t index)
{
	const struct key *k = ctx;
	const struct book_mapping *x = k->row, *y = &k->b->mappings.at[index];

	return x->size == y->size && x->offset == y->offset && x->file == y->file &&
	       x->build_id == y->build_id && x->kernel_symbol == y->kernel_symbol &&
	       x->copy == y->copy && x->flags == y->flags;
}

static uint64_t hash_mapping(const struct book *b, const struct book_mapping *m)
{
	uint64_t h = hash_mix(b->seed ^ m->size, m->offset);

	h = hash_mix(h, (uint64_t)m->file << 32 | m->build_id);
	return hash_mix(h ^ m->kernel_symbol, (uint64_t)m->copy << 32 | m->flags);
}

uint32_t book_find_mapping(struct book *b, const struct book_mapping *m, bool may_add)
{
	struct key key = { .b = b, .may_add = may_add, .row = m };
	uint32_t i =
		find_row(&b->maps.mappings, hash_mapping(b, m), b->mappings.n, same_mapping, &key);

	if (i == b->mappings.n)
		vec_push(&b->mappings, *m);
	return i;
}

static bool same_function(const void *ctx, uint32_t index)
{
	const struct key *k = ctx;
	const struct book_function *x = k->row, *y = &k->b->functions.at[index];

	return x->name == y->name && x->system_name == y->system_name &&
	       x->filename == y->filename && x->start_line == y->start_line && x->copy == y->copy;
}

static uint64_t hash_function(const struct book *b, const struct book_function *f)
{
	uint64_t h = hash_mix(b->seed ^ (uint64_t)f->start_line,
			      (uint64_t)f->name << 32 | f->system_name);

	return hash_mix(h, (uint64_t)f->copy << 32 | f->filename);
}

uint32_t book_find_function(struct book *b, const struct book_function *f, bool may_add)
{
	struct key key = { .b = b, .may_add = may_add, .row = f };
	uint32_t i = find_row(&b->maps.functions, hash_function(b, f), b->functions.n,
			      same_function, &key);

	if (i == b->functions.n)
		vec_push(&b->functions, *f);
	return i;
}

static bool same_location(const void *ctx, uint32_t index)
{
	const struct key *k = ctx;
	const struct book_location *x = k->row, *y = &k->b->locations.at[index];
	const struct line *m = k->part, *n = k->b->lines.at + y->first_line;

	if (x->address != y->address || x->mapping != y->mapping || x->nlines != y->nlines ||
	    x->variant != y->variant)
		return false;
	for (uint32_t i = 0; i < x->nlines; i++)
		if (m[i].line != n[i].line || m[i].column != n[i].column ||
		    m[i].function != n[i].function)
			return false;
	return true;
}

static uint64_t hash_location(const struct book *b, const struct book_location *l,
			      const struct line *lines)
{
	uint64_t h = hash_mix(b->seed ^ l->address, (uint64_t)l->mapping << 32 | l->variant);

	for (uint32_t i = 0; i < l->nlines; i++)
		h = hash_mix(h ^ (uint64_t)lines[i].line,
			     lines[i].function ^ (uint64_t)lines[i].column << 32);
	return h;
}

uint32_t book_find_location(struct book *b, const struct book_location *l, const struct line *lines,
			    bool may_add)
{
	struct key key = { .b = b, .may_add = may_add, .row = l, .part = lines };
	uint32_t i = find_row(&b->maps.locations, hash_location(b, l, lines), b->locations.n,
			      same_location, &key);

	if (i == b->locations.n) {
		struct book_location kept = *l;

		kept.first_line = (uint32_t)b->lines.n;
		vec_push(&b->locations, kept);
		vec_reserve(&b->lines, l->nlines);
		for (uint32_t k = 0; k < l->nlines; k++)
			b->lines.at[b->lines.n++] = lines[k];
	}
	return i;
}

static bool same_stack(const void *ctx, uint32_t index)
{
	const struct key *k = ctx;
	struct range s = k->b->stacks.at[index];

	return s.n == k->n &&
	       memcmp(k->b->frames.at + s.first, k->part, s.n * sizeof(uint32_t)) == 0;
}

static uint64_t hash_stack(const struct book *b, const uint32_t *frames, uint32_t n)
{
	return hash_bytes(b->seed, frames, n * sizeof(*frames));
}

uint32_t book_find_stack(struct book *b, const uint32_t *frames, uint32_t n, bool may_add)
{
	struct key key = { .b = b, .may_add = may_add, .part = frames, .n = n };
	uint32_t i =
		find_row(&b->maps.stacks, hash_stack(b, frames, n), b->stacks.n, same_stack, &key);

	if (i == b->stacks.n) {
		struct range s = { (uint32_t)b->frames.n, n };

		vec_push(&b->stacks, s);
		vec_reserve(&b->frames, n);
		memcpy(b->frames.at + b->frames.n, frames, n * sizeof(*frames));
		b->frames.n += n;
	}
	return i;
}

static bool same_labels(const void *ctx, uint32_t index)
{
	const struct key *k = ctx;
	const struct label_set *x = k->row, *y = &k->b->label_sets.at[index];

	return x->nstrings == y->nstrings && x->nnumbers == y->nnumbers &&
	       memcmp(k->part, k->b->labels.at + y->first,
		      ((size_t)y->nstrings + y->nnumbers) * sizeof(struct label)) == 0;
}

static uint64_t hash_labels(const struct book *b, const struct label *labels,
			    const struct label_set *s)
{
	return hash_bytes(b->seed + s->nstrings, labels,
			  ((size_t)s->nstrings + s->nnumbers) * sizeof(*labels));
}

uint32_t book_find_labels(struct book *b, const struct label *labels, uint32_t nstrings,
			  uint32_t nnumbers, bool may_add)
{
	struct label_set s = { (uint32_t)b->labels.n, nstrings, nnumbers };
	struct key key = { .b = b, .may_add = may_add, .row = &s, .part = labels };
	size_t n = (size_t)nstrings + nnumbers;
	uint32_t i;

	if (!n)
		return 0;
	i = find_row(&b->maps.label_sets, hash_labels(b, labels, &s), b->label_sets.n, same_labels,
		     &key);
	if (i == b->label_sets.n) {
		vec_push(&b->label_sets, s);
		vec_reserve(&b->labels, n);
		memcpy(b->labels.at + b->labels.n, labels, n * sizeof(*labels));
		b->labels.n += n;
	}
	return i;
}

static bool same_head(const void *ctx, uint32_t index)
{
	const struct key *k = ctx;
	const struct book_types *x = k->row, *y = &k->b->heads.at[index];

	return x->n == y->n && x->period_type.type == y->period_type.type &&
	       x->period_type.unit == y->period_type.unit && x->default_type == y->default_type &&
	       (x->n == 0 ||
		memcmp(k->part, k->b->types.at + y->first, x->n * sizeof(struct value_type)) == 0);
}

static uint64_t hash_head(const struct book *b, const struct book_types *h,
			  const struct value_type *types)
{
	uint64_t hash = hash_mix(b->seed ^ h->default_type,
				 (uint64_t)h->period_type.type << 32 | h->period_type.unit);

	return hash_bytes(hash, types, h->n * sizeof(*types));
}

uint32_t book_find_head(struct book *b, const struct book_types *head,
			const struct value_type *types, bool may_add)
{
	struct key key = { .b = b, .may_add = may_add, .row = head, .part = types };
	uint32_t i =
		find_row(&b->maps.heads, hash_head(b, head, types), b->heads.n, same_head, &key);

	if (i == b->heads.n) {
		struct book_types kept = *head;

		kept.first = (uint32_t)b->types.n;
		vec_push(&b->heads, kept);
		for (uint32_t k = 0; k < head->n; k++)
			vec_push(&b->types, types[k]);
	}
	return i;
}

static bool same_layout(const void *ctx, uint32_t index)
{
	const struct key *k = ctx;
	struct range l = k->b->layouts.at[index];
	const struct placed *x = k->part, *y = k->b->placed.at + l.first;

	if (l.n != k->n)
		return false;
	for (uint32_t i = 0; i < l.n; i++)
		if (x[i].start != y[i].start || x[i].id != y[i].id || x[i].mapping != y[i].mapping)
			return false;
	return true;
}

static uint64_t hash_layout(const struct book *b, const struct placed *p, uint32_t n)
{
	uint64_t h = hash_mix(b->seed, n);

	for (uint32_t i = 0; i < n; i++)
		h = hash_mix(hash_mix(h ^ p[i].start, p[i].id), p[i].mapping);
	return h;
}

uint32_t book_find_layout(struct book *b, const struct placed *placed, uint32_t n, bool may_add)
{
	struct key key = { .b = b, .may_add = may_add, .part = placed, .n = n };
	uint32_t i = find_row(&b->maps.layouts, hash_layout(b, placed, n), b->layouts.n,
			      same_layout, &key);

	if (i == b->layouts.n) {
		struct range l = { (uint32_t)b->placed.n, n };

		vec_push(&b->layouts, l);
		for (uint32_t k = 0; k < n; k++)
			vec_push(&b->placed, placed[k]);
	}
	return i;
}

/* ---- the maps of what was read */

static void index_names(struct book *b)
{
	for (uint32_t i = b->mapped.nstrings; i < b->strings.n; i++)
		map_add(&b->maps.strings, hash_string(b, b->strings.at[i]), i);
	for (uint32_t i = b->mapped.nmappings; i < b->mappings.n; i++)
		map_add(&b->maps.mappings, hash_mapping(b, &b->mappings.at[i]), i);
	for (uint32_t i = b->mapped.nfunctions; i < b->functions.n; i++)
		map_add(&b->maps.functions, hash_function(b, &b->functions.at[i]), i);
}

static void index_stacks(struct book *b)
{
	for (uint32_t i = b->mapped.nlocations; i < b->locations.n; i++) {
		const struct book_location *l = &b->locations.at[i];

		map_add(&b->maps.locations, hash_location(b, l, b->lines.at + l->first_line), i);
	}
	for (uint32_t i = b->mapped.nstacks; i < b->stacks.n; i++) {
		struct range s = b->stacks.at[i];

		map_add(&b->maps.stacks, hash_stack(b, b->frames.at + s.first, s.n), i);
	}
}

static void index_heads(struct book *b)
{
	for (uint32_t i = b->mapped.nlabel_sets; i < b->label_sets.n; i++) {
		const struct label_set *s = &b->label_sets.at[i];

		map_add(&b->maps.label_sets, hash_labels(b, b->labels.at + s->first, s), i);
	}
	for (uint32_t i = b->mapped.nheads; i < b->heads.n; i++) {
		const struct book_types *h = &b->heads.at[i];

		map_add(&b->maps.heads, hash_head(b, h, b->types.at + h->first), i);
	}
	for (uint32_t i = b->mapped.nlayouts; i < b->layouts.n; i++) {
		struct range l = b->layouts.at[i];

		map_add(&b->maps.layouts, hash_layout(b, b->placed.at + l.first, l.n), i);
	}
}

void book_index(struct book *b)
{
	if (book_is_at(b, &b->mapped))
		return;
	index_names(b);
	index_stacks(b);
	index_heads(b);
	b->mapped = book_mark(b);
}
