/* pack.c - a profile in terms of its book.
 *
 *	head: number of the head, of samples, time, duration, period
 *	body: columns of the samples (stack, labels, one for each type), then what the profile has
 *	      beyond its samples: comments and so on, layout, order and ids of locations and
 *	      functions; and, if samples have them, their times (stamps.h)
 *
 * Most programs list locations in the order in which samples use them first, and functions in the
 * order of locations, and number both from 1. An order like that takes a byte.
 */
#include "store/pack.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "store/stamps.h"

/* Which rows of a table a profile has, to tell copies of one content apart. */
struct claims {
	uint64_t *bits;
	struct map map;
	vec(struct range) copies; /* of row `first` there are n */
};

/* Rows of a profile's table in the order of their first use. */
struct uses {
	uint32_t *rows, n;
	bool *has;
};

struct packer {
	struct book *b;
	const struct profile *p;
	struct arena arena;  /* of what follows */
	uint32_t *string_of; /* + 1 */
	uint32_t *mapping_of, *function_of, *location_of, *labels_of, *stack_of, *comments;
	uint32_t extras[EXTRAS], head, layout;
	struct uses locations, functions;
	struct stamps stamps;
	uint32_t stamp_key, stamp_unit; /* strings of the book */
	/* how far it has come */
	bool may_add, has_names;
	uint32_t nstacks;
	/* what the next profile can use again */
	struct claims claims;
	vec(struct line) lines;
	vec(struct label) labels;
	vec(uint32_t) frames;
	struct buf body, dense;
	struct ZSTD_CCtx_s *zstd;
};

/* ---- memory */

enum { ARENA_BYTES = 256 << 10, KEPT_BYTES = 64 << 10 };

struct packer *packer_new(void)
{
	struct packer *k = xcalloc(1, sizeof(*k));

	arena_reserve(&k->arena, ARENA_BYTES);
	return k;
}

static void release_buffers(struct packer *k)
{
	vec_release(&k->lines);
	vec_release(&k->labels);
	vec_release(&k->frames);
	buf_release(&k->body);
	buf_release(&k->dense);
	k->body = k->dense = (struct buf){ 0 };
}

void packer_free(struct packer *k)
{
	if (!k)
		return;
	arena_release(&k->arena);
	release_buffers(k);
	ZSTD_freeCCtx(k->zstd);
	free(k);
}

static void packer_begin(struct packer *k, struct book *b, const struct profile *p)
{
	k->b = b;
	k->p = p;
	k->has_names = false;
	k->nstacks = 0;
	k->string_of = arena_many(&k->arena, p->strings->n, uint32_t);
	k->mapping_of = arena_many_raw(&k->arena, p->nmappings, uint32_t);
	k->function_of = arena_many_raw(&k->arena, p->nfunctions, uint32_t);
	k->location_of = arena_many_raw(&k->arena, p->nlocations, uint32_t);
	k->labels_of = arena_many_raw(&k->arena, p->nlabel_sets, uint32_t);
	k->stack_of = arena_many_raw(&k->arena, p->nsamples, uint32_t);
	k->comments = arena_many_raw(&k->arena, p->ncomments, uint32_t);
	k->locations = (struct uses){ .rows = arena_many_raw(&k->arena, p->nlocations, uint32_t),
				      .has = arena_many(&k->arena, p->nlocations, bool) };
	k->functions = (struct uses){ .rows = arena_many_raw(&k->arena, p->nfunctions, uint32_t),
				      .has = arena_many(&k->arena, p->nfunctions, bool) };
	stamps_find(&k->stamps, &k->arena, p);
}

/* What a large profile took is not kept. */
static void packer_end(struct packer *k)
{
	k->p = NULL;
	arena_rewind(&k->arena);
	k->body.n = k->dense.n = 0;
	if (k->body.cap > KEPT_BYTES || k->dense.cap > KEPT_BYTES ||
	    k->lines.cap * sizeof(*k->lines.at) > KEPT_BYTES ||
	    k->labels.cap * sizeof(*k->labels.at) > KEPT_BYTES ||
	    k->frames.cap * sizeof(*k->frames.at) > KEPT_BYTES)
		release_buffers(k);
}

/* ---- finding, or adding */

static void claims_begin(struct packer *k, size_t rows)
{
	k->claims = (struct claims){ .bits = arena_many(&k->arena, rows / 64 + 1, uint64_t) };
}

static void claims_end(struct packer *k)
{
	map_release(&k->claims.map);
	vec_release(&k->claims.copies);
}

static bool same_row(const void *ctx, uint32_t index)
{
	const struct claims *c = ((const void *const *)ctx)[0];
	const uint32_t *row = ((const void *const *)ctx)[1];

	return c->copies.at[index].first == *row;
}

/* How many had this row before. */
static uint32_t claim(struct claims *c, uint32_t row)
{
	const void *key[2] = { c, &row };
	uint64_t bit = (uint64_t)1 << row % 64;
	uint32_t i;

	if (!(c->bits[row / 64] & bit)) {
		c->bits[row / 64] |= bit;
		return 0;
	}
	i = map_put(&c->map, hash_mix(map_seed(), row), c->copies.n, same_row, key);
	if (i == c->copies.n)
		vec_push(&c->copies, (struct range){ row, 1 });
	return c->copies.at[i].n++;
}

static inline void use(struct uses *u, uint32_t row)
{
	if (!u->has[row]) {
		u->has[row] = true;
		u->rows[u->n++] = row;
	}
}

/* NONE, as for all that follows: it is new, and may not be added. */
static uint32_t string_of(struct packer *k, uint32_t string)
{
	if (!string)
		return 0;
	if (!k->string_of[string])
		k->string_of[string] =
			1 + book_find_string(k->b, profile_str(k->p, string), k->may_add);
	return k->string_of[string] - 1;
}

/* Two rows of one profile may have the same content. */
static bool find_mapping(struct packer *k, struct book_mapping *row, uint32_t *number)
{
	*number = book_find_mapping(k->b, row, k->may_add);
	row->copy = *number == NONE ? 0 : claim(&k->claims, *number);
	if (row->copy)
		*number = book_find_mapping(k->b, row, k->may_add);
	return *number != NONE;
}

static bool find_mappings(struct packer *k)
{
	bool ok = true;

	claims_begin(k, k->b->mappings.n + k->p->nmappings);
	for (uint32_t i = 0; ok && i < k->p->nmappings; i++) {
		const struct mapping *m = &k->p->mappings[i];
		struct book_mapping row = {
			.start = m->start,
			.size = m->limit - m->start,
			.offset = m->offset,
			.file = string_of(k, m->file),
			.build_id = string_of(k, m->build_id),
			.kernel_symbol = string_of(k, m->kernel_symbol),
			.flags = (uint32_t)m->has_functions | (uint32_t)m->has_filenames << 1 |
				 (uint32_t)m->has_line_numbers << 2 |
				 (uint32_t)m->has_inline_frames << 3,
		};

		ok = find_mapping(k, &row, &k->mapping_of[i]);
	}
	claims_end(k);
	return ok;
}

static bool find_function(struct packer *k, struct book_function *row, uint32_t *number)
{
	*number = book_find_function(k->b, row, k->may_add);
	row->copy = *number == NONE ? 0 : claim(&k->claims, *number);
	if (row->copy)
		*number = book_find_function(k->b, row, k->may_add);
	return *number != NONE;
}

static bool find_functions(struct packer *k)
{
	bool ok = true;

	claims_begin(k, k->b->functions.n + k->p->nfunctions);
	for (uint32_t i = 0; ok && i < k->p->nfunctions; i++) {
		const struct function *f = &k->p->functions[i];
		struct book_function row = {
			.start_line = f->start_line,
			.name = string_of(k, f->name),
			.system_name = string_of(k, f->system_name),
			.filename = string_of(k, f->filename),
		};

		ok = find_function(k, &row, &k->function_of[i]);
	}
	claims_end(k);
	return ok;
}

static void fill_location(struct packer *k, const struct location *l, struct book_location *row,
			  struct line *lines)
{
	row->address = l->address;
	row->mapping = NONE;
	row->nlines = l->nlines;
	row->variant = l->is_folded;
	if (l->mapping != NONE) {
		row->mapping = k->mapping_of[l->mapping];
		row->address -= k->p->mappings[l->mapping].start;
	}
	for (uint32_t i = 0; i < l->nlines; i++) {
		const struct line *from = &k->p->lines[l->first_line + i];

		lines[i].line = from->line;
		lines[i].column = from->column;
		lines[i].function = from->function;
		if (from->function == NONE)
			continue;
		use(&k->functions, from->function);
		lines[i].function = k->function_of[from->function];
	}
}

static bool find_location(struct packer *k, struct book_location *row, uint32_t *number)
{
	uint32_t copy;

	*number = book_find_location(k->b, row, k->lines.at, k->may_add);
	copy = *number == NONE ? 0 : claim(&k->claims, *number);
	row->variant += copy * 2;
	if (copy)
		*number = book_find_location(k->b, row, k->lines.at, k->may_add);
	return *number != NONE;
}

static bool find_locations(struct packer *k)
{
	bool ok = true;

	claims_begin(k, k->b->locations.n + k->p->nlocations);
	for (uint32_t i = 0; ok && i < k->p->nlocations; i++) {
		const struct location *l = &k->p->locations[i];
		struct book_location row = { 0 };

		vec_reserve(&k->lines, (size_t)l->nlines + 1);
		fill_location(k, l, &row, k->lines.at);
		ok = find_location(k, &row, &k->location_of[i]);
	}
	claims_end(k);
	return ok;
}

/* Without the label that is the time of its samples. */
static bool find_set(struct packer *k, uint32_t set)
{
	struct label_set s = k->p->label_sets[set];
	const struct label *from = set_labels(k->p, set);
	uint32_t n = s.nstrings + s.nnumbers, stamp = k->stamps.of ? k->stamps.of[set] : NONE;

	k->labels.n = 0;
	vec_reserve(&k->labels, (size_t)n + 1);
	for (uint32_t i = 0; i < n; i++) {
		struct label l = { string_of(k, from[i].key), string_of(k, from[i].text),
				   from[i].number };

		/* A long text that is new would be looked for again and again. */
		if (l.key == NONE || l.text == NONE)
			return false;
		if (i != stamp)
			vec_push(&k->labels, l);
	}
	k->labels_of[set] = book_find_labels(k->b, k->labels.at, s.nstrings,
					     s.nnumbers - (stamp != NONE), k->may_add);
	return k->labels_of[set] != NONE;
}

static bool find_labels(struct packer *k)
{
	for (uint32_t i = 0; i < k->p->nlabel_sets; i++)
		if (!find_set(k, i))
			return false;
	k->stamp_key = string_of(k, k->stamps.key);
	k->stamp_unit = string_of(k, k->stamps.unit);
	return true;
}

static bool find_head(struct packer *k)
{
	const struct profile *p = k->p;
	struct book_types head = { .n = p->ntypes };
	struct value_type *types = arena_many(&k->arena, p->ntypes, struct value_type);

	head.period_type.type = string_of(k, p->period_type.type);
	head.period_type.unit = string_of(k, p->period_type.unit);
	head.default_type = string_of(k, p->default_type);
	for (uint32_t i = 0; i < p->ntypes; i++) {
		types[i].type = string_of(k, p->types[i].type);
		types[i].unit = string_of(k, p->types[i].unit);
	}
	k->head = book_find_head(k->b, &head, types, k->may_add);
	return k->head != NONE;
}

static bool find_extras(struct packer *k)
{
	const struct profile *p = k->p;
	uint32_t strings[EXTRAS] = { p->drop_frames, p->keep_frames, p->doc_url };
	bool ok = true;

	for (int i = 0; i < EXTRAS; i++) {
		k->extras[i] = string_of(k, strings[i]);
		ok &= k->extras[i] != NONE;
	}
	for (uint32_t i = 0; ok && i < p->ncomments; i++) {
		k->comments[i] = string_of(k, p->comments[i]);
		ok = k->comments[i] != NONE;
	}
	return ok;
}

static bool find_layout(struct packer *k)
{
	uint32_t n = k->p->nmappings;
	struct placed *placed = arena_many(&k->arena, n, struct placed);

	for (uint32_t i = 0; i < n; i++) {
		placed[i].start = k->p->mappings[i].start;
		placed[i].id = k->p->mappings[i].id;
		placed[i].mapping = k->mapping_of[i];
	}
	k->layout = book_find_layout(k->b, placed, n, k->may_add);
	return k->layout != NONE;
}

/* A stack in the book's terms. */
static void name_frames(struct packer *k, uint32_t *to, const uint32_t *stack, uint32_t n)
{
	const uint32_t *location_of = k->location_of;
	const bool *has = k->locations.has;

	for (uint32_t i = 0; i < n; i++) {
		to[i] = location_of[stack[i]];
		if (!has[stack[i]])
			use(&k->locations, stack[i]);
	}
}

/* Stacks are what is new most often: it goes on with the one that was. */
static bool find_stacks(struct packer *k)
{
	for (; k->nstacks < k->p->nsamples; k->nstacks++) {
		const struct sample *s = &k->p->samples[k->nstacks];
		const uint32_t *stack = k->p->stacks + s->stack;
		uint32_t number;

		vec_reserve(&k->frames, (size_t)s->nstack + 1);
		name_frames(k, k->frames.at, stack, s->nstack);
		number = book_find_stack(k->b, k->frames.at, s->nstack, k->may_add);
		if (number == NONE)
			return false;
		k->stack_of[k->nstacks] = number;
	}
	return true;
}

/* What is done twice finds the same. */
bool packer_find(struct packer *k, struct book *b, const struct profile *p, bool may_add)
{
	if (k->p != p)
		packer_begin(k, b, p);
	k->may_add = may_add;
	if (may_add)
		book_index(b);
	else if (!book_is_at(b, &b->mapped))
		return false;
	if (!k->has_names)
		k->has_names = find_mappings(k) && find_functions(k) && find_locations(k) &&
			       find_labels(k) && find_head(k) && find_extras(k) && find_layout(k);
	if (!k->has_names || !find_stacks(k))
		return false;
	if (may_add)
		b->mapped = book_mark(b);
	return true;
}

uint32_t packer_head(const struct packer *k)
{
	return k->head;
}

/* ---- writing */

static void put_samples(struct packer *k)
{
	const struct profile *p = k->p;
	uint64_t *column = arena_many_raw(&k->arena, p->nsamples, uint64_t);

	put_rows(&k->body, &k->dense, k->stack_of, p->nsamples);
	for (uint32_t i = 0; i < p->nsamples; i++)
		column[i] = k->labels_of[p->samples[i].labels];
	put_column(&k->body, column, p->nsamples, true);
	for (uint32_t t = 0; t < p->ntypes; t++) {
		for (uint32_t i = 0; i < p->nsamples; i++)
			column[i] = (uint64_t)sample_values(p, &p->samples[i])[t];
		put_values(&k->body, column, p->nsamples, p->ntypes);
	}
}

static void put_extras(struct packer *k)
{
	for (int i = 0; i < EXTRAS; i++)
		put_number(&k->body, k->extras[i]);
	put_number(&k->body, k->p->ncomments);
	for (uint32_t i = 0; i < k->p->ncomments; i++)
		put_number(&k->body, k->comments[i]);
	put_number(&k->body, 1 + k->layout);
}

static bool is_order_of_use(const struct uses *u, uint32_t n)
{
	bool ok = u->n == n;

	for (uint32_t i = 0; ok && i < n; i++)
		ok = u->rows[i] == i;
	return ok;
}

/* Row i of the profile is `rows[i]` of the book. 0 is the next one of those used that is not there
 * yet. */
static void put_order(struct buf *out, const uint32_t *rows, uint32_t n, const struct uses *uses)
{
	bool is_given = !is_order_of_use(uses, n);
	uint32_t next = 0, last = 0;

	put_number(out, n);
	buf_char(out, is_given ? ORDER_GIVEN : ORDER_OF_USE);
	for (uint32_t i = 0; is_given && i < n; i++) {
		while (next < uses->n && uses->rows[next] < i)
			next++;
		if (next < uses->n && uses->rows[next] == i)
			put_number(out, 0);
		else
			put_number(out, 1 + zigzag((int64_t)rows[i] - last));
		last = rows[i];
	}
}

static void put_id(struct buf *out, uint64_t id, uint64_t *last)
{
	put_signed(out, (int64_t)(id - *last - 1));
	*last = id;
}

static void put_locations(struct packer *k)
{
	const struct profile *p = k->p;
	uint64_t last = 0;
	bool is_plain = true;

	put_order(&k->body, k->location_of, p->nlocations, &k->locations);
	for (uint32_t i = 0; i < p->nlocations; i++)
		is_plain &= p->locations[i].id == i + 1;
	buf_char(&k->body, is_plain ? IDS_FROM_1 : IDS_GIVEN);
	for (uint32_t i = 0; i < p->nlocations && !is_plain; i++)
		put_id(&k->body, p->locations[i].id, &last);
}

static void put_functions(struct packer *k)
{
	const struct profile *p = k->p;
	uint64_t last = 0;
	bool is_plain = true;

	put_order(&k->body, k->function_of, p->nfunctions, &k->functions);
	for (uint32_t i = 0; i < p->nfunctions; i++)
		is_plain &= p->functions[i].id == i + 1;
	buf_char(&k->body, is_plain ? IDS_FROM_1 : IDS_GIVEN);
	for (uint32_t i = 0; i < p->nfunctions && !is_plain; i++)
		put_id(&k->body, p->functions[i].id, &last);
}

static void put_stamps(struct packer *k)
{
	if (!k->stamps.of)
		return;
	put_number(&k->body, k->stamp_key);
	put_number(&k->body, k->stamp_unit);
	stamps_put(&k->body, &k->arena, &k->stamps, k->p);
}

void packer_write(struct packer *k, struct buf *out)
{
	struct book_head head = { .head = k->head,
				  .time = k->p->time_nanos,
				  .duration = k->p->duration_nanos,
				  .period = k->p->period,
				  .nsamples = k->p->nsamples };
	size_t begin;

	put_samples(k);
	put_extras(k);
	put_locations(k);
	put_functions(k);
	put_stamps(k);
	begin = seal_begin(out);
	put_head(out, &head);
	if (!k->zstd)
		k->zstd = ZSTD_createCCtx();
	seal_end(out, begin, buf_view(&k->body), buf_view(&k->dense), PACK_LEVEL, k->zstd);
	packer_end(k);
}

void book_pack(struct book *b, const struct profile *p, struct buf *out)
{
	struct packer *k = packer_new();

	packer_find(k, b, p, true);
	packer_write(k, out);
	packer_free(k);
}
