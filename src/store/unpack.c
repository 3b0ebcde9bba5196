#include "store/pack.h"

#include <stdlib.h>
#include <string.h>

#include "store/stamps.h"

/* ---- heads */

void put_head(struct buf *out, const struct book_head *head)
{
	put_number(out, head->head);
	put_number(out, head->nsamples);
	put_signed(out, head->time);
	put_signed(out, head->duration);
	put_signed(out, head->period);
}

static bool read_head(struct unpacker *u, struct str packed, struct err *e)
{
	struct book_head *head = &u->head;
	struct reader *r = &u->s.head;

	if (!seal_open(&u->s, packed, e))
		return false;
	*head = (struct book_head){ .head = (uint32_t)get_below(r, u->b->heads.n) };
	head->nsamples = (uint32_t)get_below(r, UINT32_MAX);
	head->time = get_signed(r);
	head->duration = get_signed(r);
	head->period = get_signed(r);
	if (r->is_bad)
		return err_set(e, ERR_FORMAT, "head is broken, or of another book");
	head->ntypes = u->b->heads.at[head->head].n;
	return true;
}

bool book_read_head(const struct book *b, struct str packed, struct book_head *head, struct err *e)
{
	struct unpacker u = { .b = b };

	if (!read_head(&u, packed, e))
		return err_wrap(e, "packed profile");
	*head = u.head;
	return true;
}

bool unpacker_open(struct unpacker *u, struct str packed, struct err *e)
{
	size_t bytes;

	if (!read_head(u, packed, e) || !seal_unpack(&u->s, e))
		return false;
	bytes = (size_t)(u->s.body.end - u->s.body.p) + (size_t)(u->s.dense.end - u->s.dense.p);
	/* See put_rows and put_values. */
	if (u->head.nsamples / 8 > bytes ||
	    (uint64_t)u->head.nsamples * u->head.ntypes / (8 * SAME_TYPES) > bytes)
		return err_set(e, ERR_FORMAT, "%zu bytes for %u samples", bytes, u->head.nsamples);
	return true;
}

/* ---- values */

/* Times are multiples of a period, sizes of a page: 0 if all values are 0. */
static uint64_t divisor_of(const uint64_t *v, size_t n)
{
	uint64_t d = 0;

	for (size_t i = 0; i < n && d != 1; i++)
		if (v[i])
			d = common_divisor(v[i], d);
	return d;
}

void put_values(struct buf *out, uint64_t *column, size_t n, uint32_t ntypes)
{
	bool is_signed = false;
	uint64_t divisor;

	for (size_t i = 0; i < n; i++)
		is_signed |= (int64_t)column[i] < 0;
	if (is_signed)
		for (size_t i = 0; i < n; i++)
			column[i] = zigzag((int64_t)column[i]);
	divisor = is_signed ? 1 : divisor_of(column, n);
	if (divisor > 1)
		for (size_t i = 0; i < n; i++)
			column[i] /= divisor;
	put_number(out, is_signed ? 0 : divisor ? divisor : 1);
	put_column(out, column, n, ntypes <= SAME_TYPES);
}

void get_values(struct reader *r, uint64_t *column, size_t n, uint32_t ntypes)
{
	uint64_t divisor = get_number(r);

	get_column(r, column, n, ntypes <= SAME_TYPES);
	if (!divisor)
		for (size_t i = 0; i < n; i++)
			column[i] = (uint64_t)unzigzag(column[i]);
	else if (divisor > 1)
		for (size_t i = 0; i < n; i++)
			column[i] *= divisor;
}

/* ---- rows in order of use */

void used_init(struct used *u, size_t table_rows)
{
	*u = (struct used){ .bits = xcalloc(table_rows / 64 + 1, sizeof(*u->bits)) };
}

void used_release(struct used *u)
{
	free(u->bits);
	free(u->rows);
}

void used_rewind(struct used *u)
{
	for (size_t i = 0; i < u->n; i++)
		u->bits[u->rows[i] / 64] = 0;
}

void used_add(struct used *u, uint32_t row)
{
	if (used_has(u, row))
		return;
	used_mark(u, row);
	if (u->n == u->cap)
		u->rows = vec_grow(u->rows, &u->cap, u->n + 1, sizeof(*u->rows));
	u->rows[u->n++] = row;
}

void used_add_stack(struct used *u, const struct book *b, uint32_t stack)
{
	struct range s = b->stacks.at[stack];

	for (uint32_t i = 0; i < s.n; i++)
		used_add(u, b->frames.at[s.first + i]);
}

void used_add_functions(struct used *u, const struct book *b, uint32_t location)
{
	const struct book_location *l = &b->locations.at[location];

	for (uint32_t i = 0; i < l->nlines; i++) {
		uint32_t function = b->lines.at[l->first_line + i].function;

		if (function != NONE)
			used_add(u, function);
	}
}

void used_add_mapping(struct used *u, const struct book *b, uint32_t location)
{
	uint32_t mapping = b->locations.at[location].mapping;

	if (mapping != NONE)
		used_add(u, mapping);
}

/* ---- the whole profile */

struct builder {
	struct unpacker u;
	struct profile *p;
	struct arena *a;
	uint32_t *string_of, *mapping_of, *function_of, *location_of, *labels_of, *stack_of; /* + 1
											      */
	struct used stacks;
	uint64_t *column;
	uint32_t *rows;
};

static uint32_t string_of(struct builder *x, uint32_t string)
{
	if (!string)
		return 0;
	if (!x->string_of[string])
		x->string_of[string] = 1 + strings_add(x->p->strings, x->u.b->strings.at[string]);
	return x->string_of[string] - 1;
}

static uint32_t get_string(struct builder *x)
{
	return string_of(x, (uint32_t)get_below(&x->u.s.body, x->u.b->strings.n));
}

static void build_types(struct builder *x)
{
	const struct book *b = x->u.b;
	const struct book_types *h = &b->heads.at[x->u.head.head];
	struct profile *p = x->p;

	p->ntypes = h->n;
	p->types = arena_many(x->a, h->n, struct value_type);
	for (uint32_t i = 0; i < h->n; i++) {
		p->types[i].type = string_of(x, b->types.at[h->first + i].type);
		p->types[i].unit = string_of(x, b->types.at[h->first + i].unit);
	}
	p->period_type.type = string_of(x, h->period_type.type);
	p->period_type.unit = string_of(x, h->period_type.unit);
	p->default_type = string_of(x, h->default_type);
	p->time_nanos = x->u.head.time;
	p->duration_nanos = x->u.head.duration;
	p->period = x->u.head.period;
}

/* Stacks in terms of the book; build_frames translates them. */
static void build_samples(struct builder *x)
{
	struct profile *p = x->p;
	struct reader *r = &x->u.s.body;
	const struct book *b = x->u.b;
	uint32_t n = x->u.head.nsamples;

	p->nsamples = n;
	p->samples = arena_many(x->a, n, struct sample);
	p->values = arena_many(x->a, (size_t)n * p->ntypes, int64_t);
	x->column = xcalloc((size_t)n + 1, sizeof(*x->column));
	x->rows = xcalloc((size_t)n + 1, sizeof(*x->rows));
	get_rows(r, &x->u.s.dense, x->rows, n);
	for (uint32_t i = 0; i < n; i++) {
		if (x->rows[i] >= b->stacks.n) {
			reader_fail(r);
			return;
		}
		p->samples[i].stack = x->rows[i];
		p->samples[i].row = i;
	}
	get_column(r, x->column, n, true);
	for (uint32_t i = 0; i < n; i++) {
		if (x->column[i] >= b->label_sets.n) {
			reader_fail(r);
			return;
		}
		p->samples[i].labels = (uint32_t)x->column[i];
	}
	for (uint32_t t = 0; t < p->ntypes; t++) {
		get_values(r, x->column, n, p->ntypes);
		for (uint32_t i = 0; i < n; i++)
			p->values[(size_t)i * p->ntypes + t] = (int64_t)x->column[i];
	}
}

static void build_extras(struct builder *x)
{
	struct profile *p = x->p;

	p->drop_frames = get_string(x);
	p->keep_frames = get_string(x);
	p->doc_url = get_string(x);
	p->ncomments = get_count(&x->u.s.body);
	p->comments = arena_many(x->a, p->ncomments, uint32_t);
	for (uint32_t i = 0; i < p->ncomments; i++)
		p->comments[i] = get_string(x);
}

static void build_labels(struct builder *x)
{
	const struct book *b = x->u.b;
	struct profile *p = x->p;
	vec(struct label_set) sets = { 0 };
	vec(struct label) labels = { 0 };

	x->labels_of = xcalloc(b->label_sets.n, sizeof(uint32_t));
	x->labels_of[0] = 1;
	vec_push(&sets, (struct label_set){ 0 });
	vec_reserve(&labels, 1);
	for (uint32_t i = 0; i < p->nsamples; i++) {
		uint32_t from = p->samples[i].labels;
		struct label_set s = b->label_sets.at[from];

		if (!x->labels_of[from]) {
			const struct label *l = b->labels.at + s.first;

			s.first = (uint32_t)labels.n;
			vec_push(&sets, s);
			for (uint32_t k = 0; k < s.nstrings + s.nnumbers; k++)
				vec_push(&labels,
					 (struct label){ string_of(x, l[k].key),
							 string_of(x, l[k].text), l[k].number });
			x->labels_of[from] = (uint32_t)sets.n;
		}
		p->samples[i].labels = x->labels_of[from] - 1;
	}
	p->nlabel_sets = (uint32_t)sets.n;
	p->label_sets = vec_adopt(x->a, &sets);
	p->labels = vec_adopt(x->a, &labels);
}

static struct placed get_placed(struct builder *x)
{
	struct reader *r = &x->u.s.body;
	struct placed p = { .mapping = (uint32_t)get_below(r, x->u.b->mappings.n) };

	p.start = get_number(r);
	p.id = get_number(r);
	return p;
}

static void build_mapping(struct builder *x, struct mapping *m, const struct placed *at)
{
	const struct book_mapping *row = &x->u.b->mappings.at[at->mapping];

	*m = (struct mapping){
		.id = at->id,
		.start = at->start,
		.limit = at->start + row->size,
		.offset = row->offset,
		.file = string_of(x, row->file),
		.build_id = string_of(x, row->build_id),
		.kernel_symbol = string_of(x, row->kernel_symbol),
		.has_functions = row->flags & 1,
		.has_filenames = row->flags >> 1 & 1,
		.has_line_numbers = row->flags >> 2 & 1,
		.has_inline_frames = row->flags >> 3 & 1,
	};
}

static void build_mappings(struct builder *x)
{
	const struct book *b = x->u.b;
	struct profile *p = x->p;
	uint64_t layout = get_below(&x->u.s.body, b->layouts.n + 1);
	struct range rows = { 0 };

	if (layout)
		rows = b->layouts.at[layout - 1];
	p->nmappings = layout ? rows.n : get_count(&x->u.s.body);
	p->mappings = arena_many(x->a, p->nmappings, struct mapping);
	x->mapping_of = xcalloc(b->mappings.n + 1, sizeof(uint32_t));
	for (uint32_t i = 0; i < p->nmappings && !x->u.s.body.is_bad; i++) {
		struct placed at = layout ? b->placed.at[rows.first + i] : get_placed(x);

		if (x->u.s.body.is_bad)
			return;
		build_mapping(x, &p->mappings[i], &at);
		x->mapping_of[at.mapping] = i + 1;
	}
}

/* The rows of a table that the profile has, in its order; in malloc'ed memory. */
static uint32_t *get_order(struct reader *r, struct used *used, size_t table_rows, uint32_t *n)
{
	uint64_t count = get_number(r), kind = get_below(r, ORDER_GIVEN + 1);
	size_t next = 0;
	int64_t last = 0;
	uint32_t *rows = NULL;

	if (count > (kind == ORDER_OF_USE ? used->n : (size_t)(r->end - r->p)))
		reader_fail(r);
	*n = r->is_bad ? 0 : (uint32_t)count;
	rows = xcalloc((size_t)*n + 1, sizeof(*rows));
	if (kind == ORDER_OF_USE) {
		if (*n)
			memcpy(rows, used->rows, *n * sizeof(*rows));
		return rows;
	}
	used_rewind(used);
	for (uint32_t i = 0; i < *n; i++) {
		uint64_t code = get_number(r);

		while (next < used->n && used_has(used, used->rows[next]))
			next++;
		if (code)
			last = (int64_t)((uint64_t)last + (uint64_t)unzigzag(code - 1));
		else
			last = next < used->n ? (int64_t)used->rows[next] : -1;
		/* A row that came twice could ask for any amount of memory. */
		if (last < 0 || (uint64_t)last >= table_rows || used_has(used, (uint32_t)last)) {
			reader_fail(r);
			*n = 0;
			return rows;
		}
		rows[i] = (uint32_t)last;
		used_mark(used, rows[i]);
	}
	return rows;
}

static bool get_ids_kind(struct reader *r)
{
	return get_below(r, IDS_GIVEN + 1) == IDS_GIVEN;
}

static uint64_t get_id(struct reader *r, bool is_given, uint64_t last)
{
	return last + 1 + (is_given ? (uint64_t)get_signed(r) : 0);
}

static void build_location(struct builder *x, struct location *to, uint32_t row)
{
	const struct book_location *l = &x->u.b->locations.at[row];
	struct profile *p = x->p;

	to->address = l->address;
	to->mapping = NONE;
	if (l->mapping != NONE && x->mapping_of[l->mapping]) {
		to->mapping = x->mapping_of[l->mapping] - 1;
		to->address += p->mappings[to->mapping].start;
	} else if (l->mapping != NONE) {
		reader_fail(&x->u.s.body);
	}
	to->is_folded = l->variant & 1;
	to->first_line = p->nlines;
	to->nlines = l->nlines;
	if (l->nlines)
		memcpy(p->lines + p->nlines, x->u.b->lines.at + l->first_line,
		       l->nlines * sizeof(*p->lines));
	p->nlines += l->nlines;
}

static void build_locations(struct builder *x)
{
	const struct book *b = x->u.b;
	struct profile *p = x->p;
	struct reader *r = &x->u.s.body;
	struct used used;
	uint32_t *rows;
	uint64_t id = 0, nlines = 0;
	bool is_given;

	used_init(&used, b->locations.n);
	for (size_t i = 0; i < x->stacks.n; i++)
		used_add_stack(&used, b, x->stacks.rows[i]);
	rows = get_order(r, &used, b->locations.n, &p->nlocations);
	used_release(&used);
	is_given = get_ids_kind(r);
	for (uint32_t i = 0; i < p->nlocations; i++)
		nlines += b->locations.at[rows[i]].nlines;
	if (nlines >= UINT32_MAX)
		reader_fail(r);
	p->locations = arena_many(x->a, p->nlocations, struct location);
	p->lines = arena_many(x->a, r->is_bad ? 0 : nlines, struct line);
	x->location_of = xcalloc(b->locations.n + 1, sizeof(uint32_t));
	for (uint32_t i = 0; i < p->nlocations && !r->is_bad; i++) {
		build_location(x, &p->locations[i], rows[i]);
		p->locations[i].id = id = get_id(r, is_given, id);
		x->location_of[rows[i]] = i + 1;
	}
	free(rows);
}

static void build_function(struct builder *x, struct function *to, uint32_t row)
{
	const struct book_function *f = &x->u.b->functions.at[row];

	to->name = string_of(x, f->name);
	to->system_name = string_of(x, f->system_name);
	to->filename = string_of(x, f->filename);
	to->start_line = f->start_line;
}

static void build_functions(struct builder *x, const uint32_t *rows)
{
	struct profile *p = x->p;
	bool is_given = get_ids_kind(&x->u.s.body);
	uint64_t id = 0;

	p->functions = arena_many(x->a, p->nfunctions, struct function);
	x->function_of = xcalloc(x->u.b->functions.n + 1, sizeof(uint32_t));
	for (uint32_t i = 0; i < p->nfunctions; i++) {
		build_function(x, &p->functions[i], rows[i]);
		p->functions[i].id = id = get_id(&x->u.s.body, is_given, id);
		x->function_of[rows[i]] = i + 1;
	}
	for (uint32_t i = 0; i < p->nlines; i++) {
		uint32_t *function = &p->lines[i].function;

		if (*function == NONE)
			continue;
		if (!x->function_of[*function])
			reader_fail(&x->u.s.body);
		*function = x->function_of[*function] - 1;
	}
}

static void build_all_functions(struct builder *x)
{
	const struct book *b = x->u.b;
	struct profile *p = x->p;
	struct used used;
	uint32_t *rows;

	used_init(&used, b->functions.n);
	for (uint32_t i = 0; i < p->nlines; i++)
		if (p->lines[i].function != NONE)
			used_add(&used, p->lines[i].function);
	rows = get_order(&x->u.s.body, &used, b->functions.n, &p->nfunctions);
	used_release(&used);
	build_functions(x, rows);
	free(rows);
}

/* The stacks that samples use; each once, however many samples share it: that is what bounds the
 * memory. */
static void find_stacks(struct builder *x)
{
	used_init(&x->stacks, x->u.b->stacks.n);
	for (uint32_t i = 0; i < x->p->nsamples; i++)
		used_add(&x->stacks, x->p->samples[i].stack);
}

static void build_frames(struct builder *x)
{
	const struct book *b = x->u.b;
	struct profile *p = x->p;
	size_t n = 0;

	for (size_t i = 0; i < x->stacks.n; i++)
		n += b->stacks.at[x->stacks.rows[i]].n;
	p->stacks = arena_many_raw(x->a, n, uint32_t);
	x->stack_of = xmalloc((b->stacks.n + 1) * sizeof(uint32_t));
	n = 0;
	for (size_t i = 0; i < x->stacks.n; i++) {
		struct range s = b->stacks.at[x->stacks.rows[i]];

		x->stack_of[x->stacks.rows[i]] = (uint32_t)n;
		for (uint32_t k = 0; k < s.n; k++) {
			uint32_t location = x->location_of[b->frames.at[s.first + k]];

			if (!location)
				reader_fail(&x->u.s.body);
			p->stacks[n++] = location - 1;
		}
	}
	for (uint32_t i = 0; i < p->nsamples; i++) {
		uint32_t stack = p->samples[i].stack;

		p->samples[i].nstack = b->stacks.at[stack].n;
		p->samples[i].stack = x->stack_of[stack];
	}
}

/* Most profiles end before them. */
static void build_stamps(struct builder *x)
{
	struct reader *r = &x->u.s.body;
	struct label like = { 0 };

	if (r->p == r->end)
		return;
	like.key = get_string(x);
	like.text = get_string(x);
	stamps_get(r, x->a, &like, x->p);
}

static bool build(struct builder *x, struct err *e)
{
	static void (*const steps[])(struct builder *) = {
		build_types,	build_samples,	 build_extras,	      find_stacks,  build_labels,
		build_mappings, build_locations, build_all_functions, build_frames, build_stamps,
	};

	x->string_of = xcalloc(x->u.b->strings.n, sizeof(uint32_t));
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		steps[i](x);
		if (x->u.s.body.is_bad)
			return err_set(e, ERR_FORMAT, "body is broken, or of another book");
	}
	if (x->u.s.body.p != x->u.s.body.end)
		return err_set(e, ERR_FORMAT, "%zu bytes too many",
			       (size_t)(x->u.s.body.end - x->u.s.body.p));
	return true;
}

bool book_unpack(const struct book *b, struct str packed, struct arena *a, struct strings *strings,
		 struct profile *p, struct err *e)
{
	struct builder x = { .u.b = b, .p = p, .a = a };
	bool ok;

	*p = (struct profile){ .strings = strings };
	ok = unpacker_open(&x.u, packed, e) && build(&x, e);
	sealed_release(&x.u.s);
	used_release(&x.stacks);
	free(x.string_of);
	free(x.mapping_of);
	free(x.function_of);
	free(x.location_of);
	free(x.labels_of);
	free(x.stack_of);
	free(x.column);
	free(x.rows);
	return ok || err_wrap(e, "packed profile");
}
