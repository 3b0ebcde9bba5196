/* sum.c - adds packed profiles: numbers of stacks and labels are looked up, nothing else. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/int.h"
#include "base/path.h"
#include "base/strings.h"
#include "store/naming.h"
#include "store/pack.h"

/* Values are summed as whole numbers, exactly, until somebody multiplies by a fraction. */
union value {
	int64_t whole;
	double real;
};

struct row {
	uint32_t stack, labels;
};

struct book_sum {
	const struct book *b;
	bool has_head;
	struct book_head head; /* time: the first; duration: of all; period: the longest */
	vec(struct row) rows;
	vec(union value) values; /* ntypes for each row */
	bool *is_real;		 /* of each type */
	struct map map;
	uint32_t *row_of; /* of a stack, that was used last, + 1 */
	size_t nrow_of;
	uint32_t extras[EXTRAS];
	uint32_t main; /* the mapping of the main binary, which stays first; or NONE */
	vec(uint32_t) comments;
	struct map comment_map;
	/* of the profile that is being added */
	uint64_t *columns;
	uint32_t *to; /* row of each sample */
	size_t nsamples, ncolumns;
	struct unpacker u;
};

struct book_sum *book_sum_new(const struct book *b)
{
	struct book_sum *s = xcalloc(1, sizeof(*s));

	s->b = s->u.b = b;
	s->main = NONE;
	return s;
}

void book_sum_free(struct book_sum *s)
{
	if (!s)
		return;
	vec_release(&s->rows);
	vec_release(&s->values);
	vec_release(&s->comments);
	map_release(&s->map);
	map_release(&s->comment_map);
	sealed_release(&s->u.s);
	free(s->is_real);
	free(s->row_of);
	free(s->columns);
	free(s->to);
	free(s);
}

static size_t map_bytes(const struct map *m)
{
	return m->slots ? ((size_t)m->mask + 1) * sizeof(*m->slots) : 0;
}

size_t book_sum_bytes(const struct book_sum *s)
{
	return sizeof(*s) + s->rows.cap * sizeof(*s->rows.at) +
	       s->values.cap * sizeof(*s->values.at) + s->comments.cap * sizeof(*s->comments.at) +
	       map_bytes(&s->map) + map_bytes(&s->comment_map) + s->u.s.room.cap +
	       s->nrow_of * sizeof(*s->row_of) + s->ncolumns * sizeof(*s->columns) +
	       s->nsamples * sizeof(*s->to);
}

struct str book_type_name(const struct book *b, uint32_t head, uint32_t type)
{
	return b->strings.at[b->types.at[b->heads.at[head].first + type].type];
}

struct str book_type_unit(const struct book *b, uint32_t head, uint32_t type)
{
	return b->strings.at[b->types.at[b->heads.at[head].first + type].unit];
}

struct str book_period_type(const struct book *b, uint32_t head)
{
	return b->strings.at[b->heads.at[head].period_type.type];
}

struct str book_period_unit(const struct book *b, uint32_t head)
{
	return b->strings.at[b->heads.at[head].period_type.unit];
}

uint32_t book_ntypes(const struct book *b, uint32_t head)
{
	return head < b->heads.n ? b->heads.at[head].n : 0;
}

uint32_t book_find_type(const struct book *b, uint32_t head, struct str name)
{
	const struct book_types *types;
	bool is_default = !name.n;

	if (head >= b->heads.n || !b->heads.at[head].n)
		return NONE;
	types = &b->heads.at[head];
	if (is_default)
		name = b->strings.at[types->default_type];
	for (uint32_t t = 0; t < types->n; t++)
		if (str_eq(book_type_name(b, head, t), name))
			return t;
	/* A default that names no type means the last one, as in pprof. */
	return is_default ? types->n - 1 : NONE;
}

bool book_no_type(const struct book *b, uint32_t head, struct str name, struct err *e)
{
	err_set(e, ERR_USAGE, "no profile has the sample type \"%.*s\", but there %s",
		STR_ARG(name), book_ntypes(b, head) == 1 ? "is" : "are");
	for (uint32_t t = 0; t < book_ntypes(b, head); t++) {
		size_t n = strlen(e->text);
		struct str type = book_type_name(b, head, t);

		snprintf(e->text + n, sizeof(e->text) - n, "%s %.*s", t ? "," : "", STR_ARG(type));
	}
	return false;
}

/* ---- adding */

struct row_key {
	const struct book_sum *s;
	struct row row;
};

static bool same_row(const void *ctx, uint32_t index)
{
	const struct row_key *k = ctx;
	struct row r = k->s->rows.at[index];

	return r.stack == k->row.stack && r.labels == k->row.labels;
}

static uint32_t find_row(struct book_sum *s, struct row row)
{
	struct row_key key = { s, row };
	uint64_t hash = hash_mix(s->b->seed, (uint64_t)row.labels << 32 | row.stack);
	uint32_t i = map_put(&s->map, hash, s->rows.n, same_row, &key);

	if (i == s->rows.n) {
		size_t n = s->head.ntypes;

		vec_push(&s->rows, row);
		vec_reserve(&s->values, n);
		memset(s->values.at + s->values.n, 0, n * sizeof(*s->values.at));
		s->values.n += n;
	}
	s->row_of[row.stack] = i + 1;
	return i;
}

/* The book may have grown. */
static void reserve_stacks(struct book_sum *s)
{
	size_t n = s->b->stacks.n;

	if (n <= s->nrow_of)
		return;
	s->row_of = xrealloc(s->row_of, n * sizeof(*s->row_of));
	memset(s->row_of + s->nrow_of, 0, (n - s->nrow_of) * sizeof(*s->row_of));
	s->nrow_of = n;
}

/* Room for all columns: nothing is added before all of them are known to be whole. */
static void reserve_samples(struct book_sum *s, size_t n, size_t ntypes)
{
	size_t ncolumns = n * (ntypes + 1) + 1; /* never nothing to point at */

	if (n > s->nsamples) {
		s->to = xrealloc(s->to, n * sizeof(*s->to));
		s->nsamples = n;
	}
	if (ncolumns > s->ncolumns) {
		s->columns = xrealloc(s->columns, ncolumns * sizeof(*s->columns));
		s->ncolumns = ncolumns;
	}
}

static bool find_rows(struct book_sum *s, uint32_t n)
{
	struct reader *r = &s->u.s.body;

	get_rows(r, &s->u.s.dense, s->to, n);
	for (uint32_t i = 0; i < n; i++)
		if (s->to[i] >= s->nrow_of)
			return false;
	get_column(r, s->columns, n, true);
	for (uint32_t i = 0; i < n && !r->is_bad; i++) {
		struct row row = { s->to[i], (uint32_t)s->columns[i] };
		uint32_t guess = s->row_of[row.stack];

		if (s->columns[i] >= s->b->label_sets.n)
			return false;
		if (guess && s->rows.at[guess - 1].labels == row.labels)
			s->to[i] = guess - 1;
		else
			s->to[i] = find_row(s, row);
	}
	return !r->is_bad;
}

static void make_real(struct book_sum *s, uint32_t type)
{
	if (s->is_real[type])
		return;
	s->is_real[type] = true;
	for (size_t i = type; i < s->values.n; i += s->head.ntypes)
		s->values.at[i].real = (double)s->values.at[i].whole;
}

/* Whole numbers that a 64-bit product of plausible values can take. */
static bool is_whole(double factor)
{
	return factor == trunc(factor) && fabs(factor) < 0x1p31;
}

static void add_column(struct book_sum *s, uint32_t type, uint32_t n, double factor)
{
	size_t ntypes = s->head.ntypes;
	const uint64_t *column = s->columns + (size_t)type * n;
	union value *values;

	if (!is_whole(factor))
		make_real(s, type);
	if (!n)
		return;
	values = s->values.at + type;
	if (s->is_real[type])
		for (uint32_t i = 0; i < n; i++)
			values[s->to[i] * ntypes].real += factor * (double)(int64_t)column[i];
	else
		for (uint32_t i = 0; i < n; i++) {
			int64_t *sum = &values[s->to[i] * ntypes].whole;

			*sum = int_add(*sum, int_mul((int64_t)factor, (int64_t)column[i]));
		}
}

static bool same_comment(const void *ctx, uint32_t index)
{
	const struct book_sum *s = ((const void *const *)ctx)[0];
	const uint32_t *comment = ((const void *const *)ctx)[1];

	return s->comments.at[index] == *comment;
}

static void add_comment(struct book_sum *s, uint32_t comment)
{
	const void *key[2] = { s, &comment };
	uint64_t hash = hash_mix(s->b->seed, comment);

	if (map_put(&s->comment_map, hash, s->comments.n, same_comment, key) == s->comments.n)
		vec_push(&s->comments, comment);
}

static void add_extras(struct book_sum *s, struct reader *r)
{
	uint32_t n;

	for (int i = 0; i < EXTRAS; i++) {
		uint32_t string = (uint32_t)get_below(r, s->b->strings.n);

		if (!s->extras[i])
			s->extras[i] = string;
	}
	n = get_count(r);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t comment = (uint32_t)get_below(r, s->b->strings.n);

		if (!r->is_bad)
			add_comment(s, comment);
	}
}

static void find_main(struct book_sum *s, struct reader *r)
{
	uint64_t layout = get_below(r, s->b->layouts.n + 1);

	if (s->main != NONE)
		return;
	if (!layout && get_count(r))
		s->main = (uint32_t)get_below(r, s->b->mappings.n);
	else if (layout && s->b->layouts.at[layout - 1].n)
		s->main = s->b->placed.at[s->b->layouts.at[layout - 1].first].mapping;
}

static void start_head(struct book_sum *s, const struct book_head *head)
{
	s->has_head = true;
	s->head = (struct book_head){ .head = head->head, .ntypes = head->ntypes };
	s->is_real = xcalloc((size_t)head->ntypes + 1, sizeof(*s->is_real));
}

/* What is only subtracted says when nothing that is left happened. */
static void add_head(struct book_sum *s, const struct book_head *head, const double *factors)
{
	bool is_added = head->ntypes == 0;

	for (uint32_t t = 0; t < head->ntypes; t++)
		is_added |= factors[t] > 0;
	if (!is_added)
		return;
	if (s->head.time == 0 || head->time < s->head.time)
		s->head.time = head->time;
	s->head.duration = int_add(s->head.duration, head->duration);
	if (s->head.period == 0 || s->head.period < head->period)
		s->head.period = head->period;
}

static bool add(struct book_sum *s, const double *factors, struct err *e)
{
	const struct book_head *head = &s->u.head;
	struct reader *r = &s->u.s.body;
	uint32_t n = head->nsamples;

	if (!s->has_head)
		start_head(s, head);
	if (head->head != s->head.head)
		return err_set(e, ERR_USAGE, "profiles of different types cannot be added");
	reserve_stacks(s);
	reserve_samples(s, n, head->ntypes);
	if (!find_rows(s, n))
		return err_set(e, ERR_FORMAT, "samples are broken, or of another book");
	for (uint32_t t = 0; t < head->ntypes; t++)
		get_values(r, s->columns + (size_t)t * n, n, head->ntypes);
	if (r->is_bad)
		return err_set(e, ERR_FORMAT, "values are broken");
	add_extras(s, r);
	find_main(s, r);
	if (r->is_bad)
		return err_set(e, ERR_FORMAT, "comments or mappings are broken");
	for (uint32_t t = 0; t < head->ntypes; t++)
		add_column(s, t, n, factors[t]);
	add_head(s, head, factors);
	return true;
}

bool book_sum_add(struct book_sum *s, struct str packed, const double *factors, struct err *e)
{
	bool ok = unpacker_open(&s->u, packed, e) && add(s, factors, e);

	return ok || err_wrap(e, "packed profile");
}

/* ---- results */

void book_sum_scale(struct book_sum *s, uint32_t type, double factor)
{
	make_real(s, type);
	for (size_t i = type; i < s->values.n; i += s->head.ntypes)
		s->values.at[i].real *= factor;
}

static double real_value(const struct book_sum *s, size_t row, uint32_t type)
{
	union value v = s->values.at[row * s->head.ntypes + type];

	return s->is_real[type] ? v.real : (double)v.whole;
}

static int64_t whole_value(const struct book_sum *s, size_t row, uint32_t type)
{
	union value v = s->values.at[row * s->head.ntypes + type];

	return s->is_real[type] ? int_from_double(round(v.real)) : v.whole;
}

double book_sum_total(const struct book_sum *s, uint32_t type)
{
	double total = 0;

	for (size_t i = 0; i < s->rows.n; i++)
		total += real_value(s, i, type);
	return total;
}

/* Rows that are not 0. */
static uint32_t *find_rows_left(const struct book_sum *s, uint32_t *n)
{
	uint32_t *left = xmalloc((s->rows.n + 1) * sizeof(*left));

	*n = 0;
	for (size_t i = 0; i < s->rows.n; i++) {
		bool is_zero = true;

		for (uint32_t t = 0; t < s->head.ntypes && is_zero; t++)
			is_zero = whole_value(s, i, t) == 0;
		if (!is_zero)
			left[(*n)++] = (uint32_t)i;
	}
	return left;
}

static void put_samples(const struct book_sum *s, struct buf *body, struct buf *dense,
			const uint32_t *left, uint32_t n)
{
	uint64_t *column = xcalloc((size_t)n + 1, sizeof(*column));
	uint32_t *stacks = xcalloc((size_t)n + 1, sizeof(*stacks));

	for (uint32_t i = 0; i < n; i++)
		stacks[i] = s->rows.at[left[i]].stack;
	put_rows(body, dense, stacks, n);
	for (uint32_t i = 0; i < n; i++)
		column[i] = s->rows.at[left[i]].labels;
	put_column(body, column, n, true);
	for (uint32_t t = 0; t < s->head.ntypes; t++) {
		for (uint32_t i = 0; i < n; i++)
			column[i] = (uint64_t)whole_value(s, left[i], t);
		put_values(body, column, n, s->head.ntypes);
	}
	free(column);
	free(stacks);
}

static void put_extras(const struct book_sum *s, struct buf *body)
{
	for (int i = 0; i < EXTRAS; i++)
		put_number(body, s->extras[i]);
	put_number(body, s->comments.n);
	for (size_t i = 0; i < s->comments.n; i++)
		put_number(body, s->comments.at[i]);
}

/* Locations in order of use, and their mappings and functions too. Mappings are where they were
 * first seen. */
static void put_tables(const struct book_sum *s, struct buf *body, const uint32_t *left, uint32_t n)
{
	const struct book *b = s->b;
	struct used locations, functions, mappings;

	used_init(&locations, b->locations.n);
	used_init(&functions, b->functions.n);
	used_init(&mappings, b->mappings.n);
	if (s->main != NONE)
		used_add(&mappings, s->main);
	for (uint32_t i = 0; i < n; i++)
		used_add_stack(&locations, b, s->rows.at[left[i]].stack);
	for (size_t i = 0; i < locations.n; i++) {
		used_add_functions(&functions, b, locations.rows[i]);
		used_add_mapping(&mappings, b, locations.rows[i]);
	}
	put_number(body, 0);
	put_number(body, mappings.n);
	for (size_t i = 0; i < mappings.n; i++) {
		put_number(body, mappings.rows[i]);
		put_number(body, b->mappings.at[mappings.rows[i]].start);
		put_number(body, i + 1);
	}
	put_number(body, locations.n);
	buf_char(body, ORDER_OF_USE);
	buf_char(body, IDS_FROM_1);
	put_number(body, functions.n);
	buf_char(body, ORDER_OF_USE);
	buf_char(body, IDS_FROM_1);
	used_release(&locations);
	used_release(&functions);
	used_release(&mappings);
}

void book_sum_pack(const struct book_sum *s, struct buf *out)
{
	struct book_head head = s->head;
	struct buf body = { 0 }, dense = { 0 };
	uint32_t *left = find_rows_left(s, &head.nsamples);
	size_t begin = seal_begin(out);

	put_samples(s, &body, &dense, left, head.nsamples);
	put_extras(s, &body);
	put_tables(s, &body, left, head.nsamples);
	put_head(out, &head);
	seal_end(out, begin, buf_view(&body), buf_view(&dense), PACK_LEVEL, NULL);
	buf_release(&body);
	buf_release(&dense);
	free(left);
}

/* ---- by function */

struct weight {
	uint32_t name, file; /* name NONE: the file is a binary, of which no names are known */
	uint32_t mapping;    /* of the first place it was met at, or NONE */
	uint32_t seen_by;    /* the last row that had it, + 1: recursion counts once */
	double flat, cum;
};

/* Numbers of strings that the book does not have follow those that it has. */
struct weights {
	const struct book *b;
	struct book_naming naming;
	struct strings names; /* that were found later */
	struct range *found;  /* of each location: in `later`; NULL if nobody has names */
	bool *is_asked;
	vec(uint32_t) later; /* weights */
	uint32_t *of;	     /* function -> weight + 1 */
	uint32_t *of_binary; /* mapping -> weight + 1; the last one is for no mapping */
	vec(struct weight) at;
	struct map map;
};

static bool same_weight(const void *ctx, uint32_t index)
{
	const struct weights *w = ((const void *const *)ctx)[0];
	const struct weight *k = ((const void *const *)ctx)[1];

	return w->at.at[index].name == k->name && w->at.at[index].file == k->file;
}

static struct weight *find_weight(struct weights *w, uint32_t *number, uint32_t name, uint32_t file,
				  uint32_t mapping)
{
	struct weight key = { .name = name, .file = file, .mapping = mapping };
	const void *both[2] = { w, &key };

	if (!*number) {
		uint64_t hash = hash_mix(w->b->seed, (uint64_t)name << 32 | file);
		uint32_t i = map_put(&w->map, hash, w->at.n, same_weight, both);

		if (i == w->at.n)
			vec_push(&w->at, key);
		*number = i + 1;
	}
	return &w->at.at[*number - 1];
}

static uint32_t later_string(struct weights *w, struct str text)
{
	return (uint32_t)w->b->strings.n + strings_add(&w->names, text);
}

/* Functions that differ in their first line only are one: so a build more or less does not matter.
 */
static struct weight *weight_of(struct weights *w, uint32_t function, uint32_t mapping)
{
	const struct book_function *f = &w->b->functions.at[function];
	struct str readable = { 0 };

	if (!w->of[function])
		readable = book_naming_readable(&w->naming, function);
	return find_weight(w, &w->of[function], readable.p ? later_string(w, readable) : f->name,
			   f->filename, mapping);
}

/* What has no name is told by its binary, as in pprof. */
static struct weight *weight_of_binary(struct weights *w, uint32_t mapping)
{
	const struct book *b = w->b;
	size_t i = mapping == NONE ? b->mappings.n : mapping;

	return find_weight(w, &w->of_binary[i], NONE,
			   mapping == NONE ? 0 : b->mappings.at[mapping].file, mapping);
}

static void weigh(struct weight *weight, uint32_t number, bool is_leaf, double value)
{
	if (is_leaf)
		weight->flat += value;
	if (weight->seen_by != number)
		weight->cum += value;
	weight->seen_by = number;
}

static struct str text_of(const struct weights *w, uint32_t string)
{
	return string < w->b->strings.n ? w->b->strings.at[string]
					: w->names.at[string - w->b->strings.n];
}

/* Weights of a location whose names were not pushed with it; none if there are no such names. */
static struct range later_names(struct weights *w, uint32_t location)
{
	const struct profile_frame *frames;
	uint32_t n;

	if (!w->found || w->is_asked[location])
		return w->found ? w->found[location] : (struct range){ 0 };
	w->is_asked[location] = true;
	n = book_naming_find(&w->naming, location, &frames);
	w->found[location] = (struct range){ (uint32_t)w->later.n, n };
	for (uint32_t i = 0; i < n; i++) {
		uint32_t weight = 0;

		find_weight(w, &weight, later_string(w, frames[i].name),
			    later_string(w, frames[i].file), w->b->locations.at[location].mapping);
		vec_push(&w->later, weight - 1);
	}
	return w->found[location];
}

/* Numbers of strings that are not the book's may be others next time. */
static uint64_t id_of(const struct weights *w, const struct weight *x)
{
	size_t n = w->b->strings.n;

	return (x->name == NONE || x->name < n) && x->file < n ? (uint64_t)x->name << 32 | x->file
							       : UINT64_MAX;
}

static void weigh_row(struct weights *w, struct range stack, uint32_t number, double value)
{
	const struct book *b = w->b;

	for (uint32_t i = 0; i < stack.n; i++) {
		uint32_t location = b->frames.at[stack.first + i];
		const struct book_location *l = &b->locations.at[location];
		struct range later = later_names(w, location);

		for (uint32_t k = 0; k < later.n; k++)
			weigh(&w->at.at[w->later.at[later.first + k]], number, i == 0 && k == 0,
			      value);
		if (later.n)
			continue;
		if (!l->nlines)
			weigh(weight_of_binary(w, l->mapping), number, i == 0, value);
		for (uint32_t k = 0; k < l->nlines; k++) {
			uint32_t function = b->lines.at[l->first_line + k].function;
			bool has_name =
				function != NONE && b->strings.at[b->functions.at[function].name].n;

			weigh(has_name ? weight_of(w, function, l->mapping)
				       : weight_of_binary(w, l->mapping),
			      number, i == 0 && k == 0, value);
		}
	}
}

/* "[libc.so.6]", or "<unknown>". */
static struct str binary_name(struct buf *out, struct str file)
{
	out->n = 0;
	if (file.n)
		buf_printf(out, "[%.*s]", STR_ARG(path_base(file)));
	else
		buf_puts(out, "<unknown>");
	return buf_view(out);
}

static void weights_init(struct weights *w, const struct book *b, struct naming *naming)
{
	*w = (struct weights){ .b = b,
			       .of = xcalloc(b->functions.n + 1, sizeof(uint32_t)),
			       .of_binary = xcalloc(b->mappings.n + 1, sizeof(uint32_t)) };
	strings_init(&w->names);
	book_naming_begin(&w->naming, naming, b);
	if (w->naming.n) {
		w->found = xcalloc(b->locations.n + 1, sizeof(*w->found));
		w->is_asked = xcalloc(b->locations.n + 1, sizeof(*w->is_asked));
	}
}

static void weights_release(struct weights *w)
{
	book_naming_end(&w->naming);
	strings_release(&w->names);
	free(w->found);
	free(w->is_asked);
	vec_release(&w->later);
	free(w->of);
	free(w->of_binary);
	vec_release(&w->at);
	map_release(&w->map);
}

void book_sum_functions(const struct book_sum *s, uint32_t type, struct naming *naming,
			void (*each)(void *ctx, const struct book_function_sum *f), void *ctx)
{
	const struct book *b = s->b;
	struct weights w;
	struct buf scratch = { 0 };

	weights_init(&w, b, naming);
	for (size_t i = 0; i < s->rows.n; i++) {
		double value = real_value(s, i, type);

		if (value != 0)
			weigh_row(&w, b->stacks.at[s->rows.at[i].stack], (uint32_t)i + 1, value);
	}
	for (size_t i = 0; i < w.at.n; i++) {
		const struct weight *x = &w.at.at[i];
		struct book_function_sum f = { .file = text_of(&w, x->file),
					       .flat = x->flat,
					       .cum = x->cum,
					       .is_unnamed = x->name == NONE,
					       .id = id_of(&w, x) };

		if (x->mapping != NONE)
			f.module = b->strings.at[b->mappings.at[x->mapping].file];
		f.name = f.is_unnamed ? binary_name(&scratch, f.file) : text_of(&w, x->name);
		if (f.is_unnamed)
			f.file = STR("");
		each(ctx, &f);
	}
	buf_release(&scratch);
	weights_release(&w);
}
