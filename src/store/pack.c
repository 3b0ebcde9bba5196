/* pack.c - a profile in terms of its book.
 *
 *	head: number of the head, of samples, time, duration, period
 *	body: columns of the samples (stack, labels, one for each type), then what the profile has
 *	      beyond its samples: comments and so on, layout, order and ids of locations and
 *	      functions
 *
 * Most programs list locations in the order in which samples use them first, and functions in the
 * order of locations, and number both from 1. An order like that takes a byte.
 */
#include "store/pack.h"

#include <stdlib.h>
#include <string.h>

/* Which rows of a table a profile has, to tell copies of one content apart. */
struct claims {
	uint64_t *bits;
	struct map map;
	vec(struct range) copies; /* of row `first` there are n */
};

static void claims_init(struct claims *c, size_t rows)
{
	*c = (struct claims){ .bits = xcalloc(rows / 64 + 1, sizeof(*c->bits)) };
}

static void claims_release(struct claims *c)
{
	free(c->bits);
	map_release(&c->map);
	vec_release(&c->copies);
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

struct packer {
	struct book *b;
	const struct profile *p;
	uint32_t *string_of; /* + 1 */
	uint32_t *mapping_of, *function_of, *location_of, *labels_of, *stack_of;
	uint64_t *column;
	bool has_locations_in_order, has_functions_in_order; /* of their first use, all of them */
	struct buf body, dense;
};

static uint32_t string_of(struct packer *k, uint32_t string)
{
	if (!string)
		return 0;
	if (!k->string_of[string])
		k->string_of[string] = 1 + book_add_string(k->b, profile_str(k->p, string));
	return k->string_of[string] - 1;
}

static void find_mappings(struct packer *k)
{
	struct claims claims;

	claims_init(&claims, k->b->mappings.n + k->p->nmappings);
	for (uint32_t i = 0; i < k->p->nmappings; i++) {
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

		k->mapping_of[i] = book_add_mapping(k->b, &row);
		row.copy = claim(&claims, k->mapping_of[i]);
		if (row.copy)
			k->mapping_of[i] = book_add_mapping(k->b, &row);
	}
	claims_release(&claims);
}

static void find_functions(struct packer *k)
{
	struct claims claims;

	claims_init(&claims, k->b->functions.n + k->p->nfunctions);
	for (uint32_t i = 0; i < k->p->nfunctions; i++) {
		const struct function *f = &k->p->functions[i];
		struct book_function row = {
			.start_line = f->start_line,
			.name = string_of(k, f->name),
			.system_name = string_of(k, f->system_name),
			.filename = string_of(k, f->filename),
		};

		k->function_of[i] = book_add_function(k->b, &row);
		row.copy = claim(&claims, k->function_of[i]);
		if (row.copy)
			k->function_of[i] = book_add_function(k->b, &row);
	}
	claims_release(&claims);
}

/* Are rows that come up in order the next one that is new, or one that has been? */
struct order {
	uint32_t next;
	bool is_kept;
};

static inline void order_see(struct order *o, uint32_t row)
{
	if (row >= o->next) {
		o->is_kept &= row == o->next;
		o->next++;
	}
}

static void fill_location(const struct packer *k, const struct location *l,
			  struct book_location *row, struct line *lines, struct order *order)
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
		order_see(order, from->function);
		lines[i].function = k->function_of[from->function];
	}
}

static void find_locations(struct packer *k)
{
	struct order order = { 0, true };
	struct claims claims;
	vec(struct line) lines = { 0 };

	claims_init(&claims, k->b->locations.n + k->p->nlocations);
	for (uint32_t i = 0; i < k->p->nlocations; i++) {
		const struct location *l = &k->p->locations[i];
		struct book_location row = { 0 };
		uint32_t copy;

		vec_reserve(&lines, (size_t)l->nlines + 1);
		fill_location(k, l, &row, lines.at, &order);
		k->location_of[i] = book_add_location(k->b, &row, lines.at);
		copy = claim(&claims, k->location_of[i]);
		if (copy) {
			row.variant += copy * 2;
			k->location_of[i] = book_add_location(k->b, &row, lines.at);
		}
	}
	k->has_functions_in_order = order.is_kept && order.next == k->p->nfunctions;
	vec_release(&lines);
	claims_release(&claims);
}

static void find_labels(struct packer *k)
{
	vec(struct label) labels = { 0 };

	for (uint32_t i = 0; i < k->p->nlabel_sets; i++) {
		struct label_set s = k->p->label_sets[i];
		const struct label *from = set_labels(k->p, i);
		uint32_t n = s.nstrings + s.nnumbers;

		vec_reserve(&labels, (size_t)n + 1);
		for (uint32_t j = 0; j < n; j++)
			labels.at[j] = (struct label){ string_of(k, from[j].key),
						       string_of(k, from[j].text), from[j].number };
		k->labels_of[i] = book_add_labels(k->b, labels.at, s.nstrings, s.nnumbers);
	}
	vec_release(&labels);
}

static void find_stacks(struct packer *k)
{
	struct order order = { 0, true };
	vec(uint32_t) frames = { 0 };

	for (uint32_t i = 0; i < k->p->nsamples; i++) {
		const struct sample *s = &k->p->samples[i];
		const uint32_t *stack = k->p->stacks + s->stack;

		vec_reserve(&frames, (size_t)s->nstack + 1);
		for (uint32_t j = 0; j < s->nstack; j++) {
			order_see(&order, stack[j]);
			frames.at[j] = k->location_of[stack[j]];
		}
		k->stack_of[i] = book_add_stack(k->b, frames.at, s->nstack);
	}
	k->has_locations_in_order = order.is_kept && order.next == k->p->nlocations;
	vec_release(&frames);
}

static uint32_t find_head(struct packer *k)
{
	const struct profile *p = k->p;
	struct book_types head = { .n = p->ntypes };
	struct value_type *types = xcalloc((size_t)p->ntypes + 1, sizeof(*types));
	uint32_t number;

	head.period_type.type = string_of(k, p->period_type.type);
	head.period_type.unit = string_of(k, p->period_type.unit);
	head.default_type = string_of(k, p->default_type);
	for (uint32_t i = 0; i < p->ntypes; i++) {
		types[i].type = string_of(k, p->types[i].type);
		types[i].unit = string_of(k, p->types[i].unit);
	}
	number = book_add_head(k->b, &head, types);
	free(types);
	return number;
}

/* ---- writing */

static void put_samples(struct packer *k)
{
	const struct profile *p = k->p;

	put_rows(&k->body, &k->dense, k->stack_of, p->nsamples);
	for (uint32_t i = 0; i < p->nsamples; i++)
		k->column[i] = k->labels_of[p->samples[i].labels];
	put_column(&k->body, k->column, p->nsamples, true);
	for (uint32_t t = 0; t < p->ntypes; t++) {
		for (uint32_t i = 0; i < p->nsamples; i++)
			k->column[i] = (uint64_t)sample_values(p, &p->samples[i])[t];
		put_values(&k->body, k->column, p->nsamples, p->ntypes);
	}
}

static void put_extras(struct packer *k)
{
	const struct profile *p = k->p;
	uint32_t strings[EXTRAS] = { p->drop_frames, p->keep_frames, p->doc_url };

	for (int i = 0; i < EXTRAS; i++)
		put_number(&k->body, string_of(k, strings[i]));
	put_number(&k->body, p->ncomments);
	for (uint32_t i = 0; i < p->ncomments; i++)
		put_number(&k->body, string_of(k, p->comments[i]));
}

static void put_layout(struct packer *k)
{
	uint32_t n = k->p->nmappings;
	struct placed *placed = xcalloc((size_t)n + 1, sizeof(*placed));

	for (uint32_t i = 0; i < n; i++) {
		placed[i].start = k->p->mappings[i].start;
		placed[i].id = k->p->mappings[i].id;
		placed[i].mapping = k->mapping_of[i];
	}
	put_number(&k->body, 1 + book_add_layout(k->b, placed, n));
	free(placed);
}

/* `rows` of a table, of which the profile uses `used` in that order. 0 is the next one of those
 * that is not there yet. */
static void put_order(struct buf *out, const uint32_t *rows, size_t n, struct used *used)
{
	size_t next = 0;
	uint32_t last = 0;

	used_rewind(used);
	put_number(out, n);
	buf_char(out, ORDER_GIVEN);
	for (size_t i = 0; i < n; i++) {
		while (next < used->n && used_has(used, used->rows[next]))
			next++;
		if (next < used->n && used->rows[next] == rows[i])
			put_number(out, 0);
		else
			put_number(out, 1 + zigzag((int64_t)rows[i] - last));
		used_mark(used, rows[i]);
		last = rows[i];
	}
}

static void put_order_of_use(struct buf *out, size_t n)
{
	put_number(out, n);
	buf_char(out, ORDER_OF_USE);
}

static void put_order_of_locations(struct packer *k)
{
	struct used used;

	if (k->has_locations_in_order) {
		put_order_of_use(&k->body, k->p->nlocations);
		return;
	}
	used_init(&used, k->b->locations.n);
	for (uint32_t i = 0; i < k->p->nsamples; i++)
		used_add_stack(&used, k->b, k->stack_of[i]);
	put_order(&k->body, k->location_of, k->p->nlocations, &used);
	used_release(&used);
}

static void put_order_of_functions(struct packer *k)
{
	struct used used;

	if (k->has_functions_in_order) {
		put_order_of_use(&k->body, k->p->nfunctions);
		return;
	}
	used_init(&used, k->b->functions.n);
	for (uint32_t i = 0; i < k->p->nlocations; i++)
		used_add_functions(&used, k->b, k->location_of[i]);
	put_order(&k->body, k->function_of, k->p->nfunctions, &used);
	used_release(&used);
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

	put_order_of_locations(k);
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

	put_order_of_functions(k);
	for (uint32_t i = 0; i < p->nfunctions; i++)
		is_plain &= p->functions[i].id == i + 1;
	buf_char(&k->body, is_plain ? IDS_FROM_1 : IDS_GIVEN);
	for (uint32_t i = 0; i < p->nfunctions && !is_plain; i++)
		put_id(&k->body, p->functions[i].id, &last);
}

static void packer_init(struct packer *k, struct book *b, const struct profile *p)
{
	*k = (struct packer){ .b = b, .p = p };
	k->string_of = xcalloc(p->strings->n, sizeof(uint32_t));
	k->mapping_of = xcalloc((size_t)p->nmappings + 1, sizeof(uint32_t));
	k->function_of = xcalloc((size_t)p->nfunctions + 1, sizeof(uint32_t));
	k->location_of = xcalloc((size_t)p->nlocations + 1, sizeof(uint32_t));
	k->labels_of = xcalloc((size_t)p->nlabel_sets + 1, sizeof(uint32_t));
	k->stack_of = xcalloc((size_t)p->nsamples + 1, sizeof(uint32_t));
	k->column = xcalloc((size_t)p->nsamples + 1, sizeof(uint64_t));
}

static void packer_release(struct packer *k)
{
	free(k->string_of);
	free(k->mapping_of);
	free(k->function_of);
	free(k->location_of);
	free(k->labels_of);
	free(k->stack_of);
	free(k->column);
	buf_release(&k->body);
	buf_release(&k->dense);
}

void book_pack(struct book *b, const struct profile *p, struct buf *out)
{
	struct packer k;
	struct book_head head = { .time = p->time_nanos,
				  .duration = p->duration_nanos,
				  .period = p->period,
				  .nsamples = p->nsamples };
	size_t begin;

	book_index(b);
	packer_init(&k, b, p);
	find_mappings(&k);
	find_functions(&k);
	find_locations(&k);
	find_labels(&k);
	find_stacks(&k);
	head.head = find_head(&k);
	put_samples(&k);
	put_extras(&k);
	put_layout(&k);
	put_locations(&k);
	put_functions(&k);
	begin = seal_begin(out);
	put_head(out, &head);
	seal_end(out, begin, buf_view(&k.body), buf_view(&k.dense), PACK_LEVEL);
	packer_release(&k);
	b->mapped = book_mark(b);
}
