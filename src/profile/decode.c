/* decode.c - profile.proto bytes to flat tables, in one pass over the samples.
 *
 * Samples come first in the file and make up nearly all of it, but they refer to tables that come
 * after. So the top level is split first, which only touches the head of each message; then the
 * small tables are read; then the samples, on all cores, straight into their final place.
 */
#include "profile/decode.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/vec.h"
#include "profile/build.h"
#include "profile/recycle.h"
#include "profile/varints.h"
#include "profile/wire.h"

/* Samples are handed out to threads in runs of this many. */
enum { RUN_SAMPLES = 1 << 12, PARALLEL_BYTES = 1 << 20, PARALLEL_LOCATIONS = 1 << 13 };

/* Where a message is in the file; files are smaller than 4 GB. */
struct span {
	uint32_t start, n;
};

typedef vec(struct span) messages;

struct run {
	struct wire bytes;    /* of the top level, from the run's first sample on */
	uint32_t first, last; /* samples */
};

/* Ids are mostly 1..n and then found in a table; others go through a hash map. */
struct id_index {
	uint32_t *dense; /* index + 1 */
	uint64_t ndense; /* a power of two */
	struct map sparse;
	char *rows; /* the table; a row starts with its id */
	size_t row_bytes;
};

struct decoder {
	struct profile *p;
	struct arena *a;
	const uint8_t *bytes, *end;
	messages types, mappings, locations, functions, texts, period_types;
	vec(struct run) runs;
	vec(uint64_t) comments;
	uint32_t nsamples;
	uint64_t drop_frames, keep_frames, default_type, doc_url;
	bool is_concatenated;
	struct err invalid;  /* the first rule that a table breaks */
	uint32_t *string_of; /* string_table index -> index in p->strings */
	struct id_index mapping_ids, function_ids, location_ids;
	const uint8_t *samples_start;
};

struct id_key {
	const struct id_index *x;
	uint64_t id;
};

static bool same_id(const void *ctx, uint32_t index)
{
	const struct id_key *k = ctx;
	uint64_t id;

	memcpy(&id, k->x->rows + index * k->x->row_bytes, sizeof(id));
	return id == k->id;
}

static void ids_init(struct id_index *x, struct arena *a, void *rows, size_t row_bytes, size_t n)
{
	*x = (struct id_index){ .ndense = 64, .rows = rows, .row_bytes = row_bytes };
	while (x->ndense < n * 2)
		x->ndense *= 2;
	x->dense = arena_many(a, x->ndense, uint32_t);
}

/* False if the id is there already. */
static bool ids_add(struct id_index *x, uint64_t id, uint32_t index)
{
	struct id_key key = { x, id };

	if (id < x->ndense) {
		if (x->dense[id])
			return false;
		x->dense[id] = index + 1;
		return true;
	}
	return map_put(&x->sparse, hash_mix(map_seed(), id), index, same_id, &key) == index;
}

static uint32_t ids_find(const struct id_index *x, uint64_t id)
{
	struct id_key key = { x, id };

	if (id < x->ndense)
		return x->dense[id] - 1; /* 0 - 1 is NONE */
	return map_get(&x->sparse, hash_mix(map_seed(), id), same_id, &key);
}

/* Enters an id into its index, and holds it to pprof's rules. */
static void enter_id(struct decoder *d, struct id_index *x, uint64_t id, uint32_t index,
		     const char *what)
{
	bool is_new = ids_add(x, id, index);

	if (d->invalid.kind != ERR_NONE)
		return;
	if (id == 0) /* the spelling of the reference */
		err_set(&d->invalid, ERR_FORMAT, "found %s with reserved %s=0", what,
			x == &d->location_ids ? "id" : "ID");
	else if (!is_new)
		err_set(&d->invalid, ERR_FORMAT, "multiple %ss with same id: %" PRIu64, what, id);
}

static bool set_number(const struct field *f, uint64_t *to)
{
	*to = f->value;
	return f->type == WIRE_VARINT;
}

static bool push_message(const struct decoder *d, const struct field *f, messages *to)
{
	struct span s = { (uint32_t)(f->bytes.p - d->bytes),
			  (uint32_t)(f->bytes.end - f->bytes.p) };

	if (f->type != WIRE_BYTES)
		return false;
	vec_push(to, s);
	return true;
}

static struct wire message(const struct decoder *d, const messages *m, size_t i)
{
	const uint8_t *start = d->bytes + m->at[i].start;

	return (struct wire){ start, start + m->at[i].n };
}

static bool push_numbers(const struct field *f, struct decoder *d)
{
	struct wire w = f->bytes;
	uint64_t v;

	if (f->type != WIRE_BYTES) {
		vec_push(&d->comments, f->value);
		return f->type == WIRE_VARINT;
	}
	while (w.p < w.end) {
		if (!wire_varint(&w, &v))
			return false;
		vec_push(&d->comments, v);
	}
	return true;
}

static bool push_text(const struct field *f, struct decoder *d)
{
	if (d->texts.n == 0 && f->type == WIRE_BYTES && f->bytes.p != f->bytes.end)
		return false; /* string_table[0] must be "" */
	return push_message(d, f, &d->texts);
}

static bool push_sample(const struct field *f, struct decoder *d, const uint8_t *start,
			const uint8_t *end)
{
	if (!d->samples_start)
		d->samples_start = start;
	if (d->nsamples % RUN_SAMPLES == 0) {
		struct run r = { { start, end }, d->nsamples, 0 };

		vec_push(&d->runs, r);
	}
	d->runs.at[d->runs.n - 1].last = ++d->nsamples;
	return f->type == WIRE_BYTES;
}

static bool top_field(struct decoder *d, const struct field *f, const uint8_t *start,
		      const uint8_t *end)
{
	uint64_t v = 0;

	switch (f->number) {
	case 1:
		return push_message(d, f, &d->types);
	case 2:
		return push_sample(f, d, start, end);
	case 3:
		return push_message(d, f, &d->mappings);
	case 4:
		return push_message(d, f, &d->locations);
	case 5:
		return push_message(d, f, &d->functions);
	case 6:
		return push_text(f, d);
	case 7:
		return set_number(f, &d->drop_frames);
	case 8:
		return set_number(f, &d->keep_frames);
	case 9:
		d->is_concatenated = d->p->time_nanos != 0;
		d->p->time_nanos = (int64_t)f->value;
		return f->type == WIRE_VARINT && !d->is_concatenated;
	case 10:
		d->p->duration_nanos = (int64_t)f->value;
		return f->type == WIRE_VARINT;
	case 11:
		return push_message(d, f, &d->period_types);
	case 12:
		if (!set_number(f, &v))
			return false;
		d->p->period = (int64_t)v;
		return true;
	case 13:
		return push_numbers(f, d);
	case 14:
		return set_number(f, &d->default_type);
	case 15:
		return set_number(f, &d->doc_url);
	default:
		return true;
	}
}

static bool split_top_level(struct decoder *d, struct wire w)
{
	while (w.p < w.end) {
		struct field f = { 0 };
		const uint8_t *start = w.p;

		if (!wire_next(&w, &f) || !top_field(d, &f, start, w.end))
			return false;
	}
	return true;
}

static void read_strings(struct decoder *d)
{
	for (size_t i = 0; i < d->texts.n; i++) {
		struct wire w = message(d, &d->texts, i);

		d->string_of[i] = strings_add(
			d->p->strings, (struct str){ (const char *)w.p, (size_t)(w.end - w.p) });
	}
}

static bool find_string(const struct decoder *d, uint64_t index, uint32_t *to)
{
	if (index >= d->texts.n)
		return false;
	*to = d->string_of[index];
	return true;
}

static bool set_string(const struct decoder *d, const struct field *f, uint32_t *to)
{
	return f->type == WIRE_VARINT && find_string(d, f->value, to);
}

static bool set_bool(const struct field *f, bool *to)
{
	*to = f->value != 0;
	return f->type == WIRE_VARINT;
}

static bool set_int(const struct field *f, int64_t *to)
{
	*to = (int64_t)f->value;
	return f->type == WIRE_VARINT;
}

static bool read_value_type(const struct decoder *d, struct wire w, struct value_type *t)
{
	while (w.p < w.end) {
		struct field f = { 0 };

		if (!wire_next(&w, &f) || (f.number == 1 && !set_string(d, &f, &t->type)) ||
		    (f.number == 2 && !set_string(d, &f, &t->unit)))
			return false;
	}
	return true;
}

static bool mapping_field(const struct decoder *d, const struct field *f, struct mapping *m)
{
	switch (f->number) {
	case 2:
		return set_number(f, &m->start);
	case 3:
		return set_number(f, &m->limit);
	case 4:
		return set_number(f, &m->offset);
	case 5:
		return set_string(d, f, &m->file);
	case 6:
		return set_string(d, f, &m->build_id);
	case 7:
		return set_bool(f, &m->has_functions);
	case 8:
		return set_bool(f, &m->has_filenames);
	case 9:
		return set_bool(f, &m->has_line_numbers);
	case 10:
		return set_bool(f, &m->has_inline_frames);
	default:
		return true;
	}
}

static bool read_mapping(struct decoder *d, struct wire w, struct mapping *m)
{
	struct str kernel = STR("[kernel.kallsyms]"), file;

	while (w.p < w.end) {
		struct field f = { 0 };

		if (!wire_next(&w, &f) || !mapping_field(d, &f, m))
			return false;
	}
	file = profile_str(d->p, m->file);
	if (str_has_prefix(file, kernel))
		m->kernel_symbol = strings_add(d->p->strings, str_from(file, kernel.n));
	return true;
}

static bool read_function(const struct decoder *d, struct wire w, struct function *fn)
{
	while (w.p < w.end) {
		struct field f = { 0 };

		if (!wire_next(&w, &f) || (f.number == 2 && !set_string(d, &f, &fn->name)) ||
		    (f.number == 3 && !set_string(d, &f, &fn->system_name)) ||
		    (f.number == 4 && !set_string(d, &f, &fn->filename)) ||
		    (f.number == 5 && !set_int(&f, &fn->start_line)))
			return false;
	}
	return true;
}

static bool read_line(const struct decoder *d, struct wire w, struct line *line)
{
	uint64_t function = 0;

	*line = (struct line){ 0 };
	while (w.p < w.end) {
		struct field f = { 0 };

		if (!wire_next(&w, &f) || (f.number == 1 && !set_number(&f, &function)) ||
		    (f.number == 2 && !set_int(&f, &line->line)) ||
		    (f.number == 3 && !set_int(&f, &line->column)))
			return false;
	}
	line->function = ids_find(&d->function_ids, function);
	return true;
}

static bool read_location(struct decoder *d, struct wire w, struct location *loc)
{
	struct profile *p = d->p;
	uint64_t mapping = 0;

	loc->first_line = p->nlines;
	while (w.p < w.end) {
		struct field f = { 0 };

		if (!wire_next(&w, &f) || (f.number == 1 && !set_number(&f, &loc->id)) ||
		    (f.number == 2 && !set_number(&f, &mapping)) ||
		    (f.number == 3 && !set_number(&f, &loc->address)) ||
		    (f.number == 4 &&
		     (f.type != WIRE_BYTES || !read_line(d, f.bytes, &p->lines[p->nlines++]))) ||
		    (f.number == 5 && !set_bool(&f, &loc->is_folded)))
			return false;
	}
	loc->nlines = p->nlines - loc->first_line;
	loc->mapping = mapping ? ids_find(&d->mapping_ids, mapping) : NONE;
	return true;
}

static void check_lines(struct decoder *d, const struct location *loc)
{
	for (uint32_t i = 0; i < loc->nlines && d->invalid.kind == ERR_NONE; i++)
		if (d->p->lines[loc->first_line + i].function == NONE)
			err_set(&d->invalid, ERR_FORMAT,
				"location id: %" PRIu64 " has a line with nil function", loc->id);
}

static size_t total_bytes(const messages *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		n += m->at[i].n;
	return n;
}

static bool read_header(struct decoder *d)
{
	struct profile *p = d->p;

	for (; p->ntypes < d->types.n; p->ntypes++)
		if (!read_value_type(d, message(d, &d->types, p->ntypes), &p->types[p->ntypes]))
			return false;
	for (size_t i = 0; i < d->period_types.n; i++) {
		p->period_type = (struct value_type){ 0 };
		if (!read_value_type(d, message(d, &d->period_types, i), &p->period_type))
			return false;
	}
	for (; p->ncomments < d->comments.n; p->ncomments++)
		if (!find_string(d, d->comments.at[p->ncomments], &p->comments[p->ncomments]))
			return false;
	return find_string(d, d->drop_frames, &p->drop_frames) &&
	       find_string(d, d->keep_frames, &p->keep_frames) &&
	       find_string(d, d->default_type, &p->default_type) &&
	       find_string(d, d->doc_url, &p->doc_url);
}

static bool read_names(struct decoder *d)
{
	struct profile *p = d->p;

	read_strings(d);
	if (!read_header(d))
		return false;
	for (; p->nmappings < d->mappings.n; p->nmappings++)
		if (!read_mapping(d, message(d, &d->mappings, p->nmappings),
				  &p->mappings[p->nmappings]))
			return false;
	for (; p->nfunctions < d->functions.n; p->nfunctions++)
		if (!read_function(d, message(d, &d->functions, p->nfunctions),
				   &p->functions[p->nfunctions]))
			return false;
	return true;
}

/* The ids of mappings or functions: all that locations need of them. */
static bool read_ids(struct decoder *d, struct id_index *x, const messages *m, const char *what)
{
	for (size_t i = 0; i < m->n; i++) {
		struct wire w = message(d, m, i);
		uint64_t id = 0;

		while (w.p < w.end) {
			struct field f = { 0 };

			if (!wire_next(&w, &f) || (f.number == 1 && !set_number(&f, &id)))
				return false;
		}
		memcpy(x->rows + i * x->row_bytes, &id, sizeof(id));
		enter_id(d, x, id, (uint32_t)i, what);
	}
	return true;
}

static bool read_locations(struct decoder *d)
{
	struct profile *p = d->p;

	if (!read_ids(d, &d->mapping_ids, &d->mappings, "mapping") ||
	    !read_ids(d, &d->function_ids, &d->functions, "function"))
		return false;
	for (; p->nlocations < d->locations.n; p->nlocations++) {
		struct location *loc = &p->locations[p->nlocations];

		if (!read_location(d, message(d, &d->locations, p->nlocations), loc))
			return false;
		enter_id(d, &d->location_ids, loc->id, p->nlocations, "location");
		check_lines(d, loc);
	}
	return true;
}

static void reserve_tables(struct decoder *d)
{
	struct profile *p = d->p;

	d->string_of = arena_many_raw(d->a, d->texts.n, uint32_t);
	p->types = arena_many(d->a, d->types.n, struct value_type);
	p->comments = arena_many(d->a, d->comments.n, uint32_t);
	p->mappings = arena_many(d->a, d->mappings.n, struct mapping);
	p->functions = arena_many(d->a, d->functions.n, struct function);
	p->locations = arena_many(d->a, d->locations.n, struct location);
	/* A line takes two bytes or more. */
	p->lines = arena_many_raw(d->a, total_bytes(&d->locations) / 2, struct line);
	ids_init(&d->mapping_ids, d->a, p->mappings, sizeof(*p->mappings), d->mappings.n);
	ids_init(&d->function_ids, d->a, p->functions, sizeof(*p->functions), d->functions.n);
	ids_init(&d->location_ids, d->a, p->locations, sizeof(*p->locations), d->locations.n);
}

struct table_reader {
	struct decoder *d;
	bool (*read)(struct decoder *d);
	bool is_ok;
};

static void read_table(void *ctx, size_t i)
{
	struct table_reader *r = (struct table_reader *)ctx + i;

	r->is_ok = r->read(r->d);
}

/* Names on one core, what refers to functions by number only on another. */
static bool read_tables(struct decoder *d, int threads)
{
	struct table_reader readers[] = { { d, read_locations, false }, { d, read_names, false } };

	reserve_tables(d);
	parallel_for(d->locations.n > PARALLEL_LOCATIONS ? threads : 1, 2, read_table, readers);
	return readers[0].is_ok && readers[1].is_ok;
}

/* ---- samples */

/* What one thread has made of its runs. */
struct sample_reader {
	const struct decoder *d;
	uint32_t first_run, last_run;
	struct label_table labels;
	vec(struct label_input) label_scratch;
	uint32_t nstack; /* end of what is used of p->stacks */
	bool may_discard;
	bool has_no_rows; /* too few bytes for all values: some sample lacks one */
	bool is_malformed;
	struct err invalid; /* of the first sample that breaks a rule */
};

static void fail_sample(struct sample_reader *r, const char *text)
{
	if (r->invalid.kind == ERR_NONE)
		err_set(&r->invalid, ERR_FORMAT, "%s", text);
}

static uint32_t lack_location(struct sample_reader *r)
{
	fail_sample(r, "sample has nil location");
	return 0;
}

static uint32_t find_location(struct sample_reader *r, uint64_t id)
{
	uint32_t loc = ids_find(&r->d->location_ids, id);

	return loc == NONE ? lack_location(r) : loc;
}

/* Are all of them for the table? None is larger than the bits of all together. */
static inline bool are_dense(const struct id_index *ids, const uint32_t *stack, uint32_t n)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < n; i++)
		bits |= stack[i];
	return bits < ids->ndense;
}

/* Turns ids into indices. */
static void find_locations(struct sample_reader *r, uint32_t *stack, uint32_t n)
{
	const struct id_index *ids = &r->d->location_ids;
	uint32_t bits = 0; /* the top one is of NONE only */

	if (!are_dense(ids, stack, n)) {
		for (uint32_t i = 0; i < n; i++)
			stack[i] = find_location(r, stack[i]);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		stack[i] = ids->dense[stack[i]] - 1;
		bits |= stack[i];
	}
	for (uint32_t i = 0; bits >> 31 && i < n; i++)
		if (stack[i] == NONE)
			stack[i] = lack_location(r);
}

static bool read_stack(struct sample_reader *r, const struct field *f)
{
	uint32_t *stacks = r->d->p->stacks;
	struct wire w = f->bytes;
	uint64_t id;

	if (f->type != WIRE_BYTES) {
		stacks[r->nstack++] = find_location(r, f->value);
		return f->type == WIRE_VARINT;
	}
	while (w.p < w.end) {
		/* A stack has four bytes of heads before it, so there is room for three more. */
		uint32_t n = read_varints(&w, r->d->end, stacks + r->nstack);

		find_locations(r, stacks + r->nstack, n);
		r->nstack += n;
		if (w.p < w.end) {
			if (!wire_varint(&w, &id))
				return false;
			stacks[r->nstack++] = find_location(r, id);
		}
	}
	return true;
}

static bool read_values(const struct sample_reader *r, const struct field *f, int64_t *row,
			uint32_t *nvalues)
{
	uint32_t ntypes = r->d->p->ntypes;
	struct wire w = f->bytes;
	uint64_t v;

	if (f->type != WIRE_BYTES) {
		if (*nvalues < ntypes)
			row[*nvalues] = (int64_t)f->value;
		++*nvalues;
		return f->type == WIRE_VARINT;
	}
	while (w.p < w.end) {
		if (!wire_varint(&w, &v))
			return false;
		if (*nvalues < ntypes)
			row[*nvalues] = (int64_t)v;
		++*nvalues;
	}
	return true;
}

static bool read_label(struct sample_reader *r, const struct field *label)
{
	struct wire w = label->bytes;
	uint64_t key = 0, text = 0, number = 0, unit = 0;
	struct label_input in = { 0 };

	if (label->type != WIRE_BYTES)
		return false;
	while (w.p < w.end) {
		struct field f = { 0 };

		if (!wire_next(&w, &f) || (f.number == 1 && !set_number(&f, &key)) ||
		    (f.number == 2 && !set_number(&f, &text)) ||
		    (f.number == 3 && !set_number(&f, &number)) ||
		    (f.number == 4 && !set_number(&f, &unit)))
			return false;
	}
	if (!find_string(r->d, key, &in.label.key))
		return false;
	if (!text && !number && !unit)
		return true; /* pprof drops these */
	in.is_number = !text;
	in.label.number = text ? 0 : (int64_t)number;
	if (!find_string(r->d, text ? text : unit, &in.label.text))
		return false;
	vec_push(&r->label_scratch, in);
	return true;
}

static bool read_sample(struct sample_reader *r, struct wire w, uint32_t index)
{
	struct profile *p = r->d->p;
	struct sample *s = &p->samples[index];
	int64_t *row = p->values + (r->has_no_rows ? 0 : (size_t)index * p->ntypes);
	uint32_t nvalues = 0;

	s->stack = r->nstack;
	s->row = index;
	r->label_scratch.n = 0;
	while (w.p < w.end) {
		struct field f = { 0 };

		if (!wire_next(&w, &f) || (f.number == 1 && !read_stack(r, &f)) ||
		    (f.number == 2 && !read_values(r, &f, row, &nvalues)) ||
		    (f.number == 3 && !read_label(r, &f)))
			return false;
	}
	s->nstack = r->nstack - s->stack;
	if (nvalues != p->ntypes && r->invalid.kind == ERR_NONE)
		err_set(&r->invalid, ERR_FORMAT, "mismatch: sample has %u values vs. %u types",
			nvalues, p->ntypes);
	s->labels =
		label_table_add(&r->labels, p->strings, r->label_scratch.at, r->label_scratch.n);
	return true;
}

static void read_runs(void *ctx, size_t i)
{
	struct sample_reader *r = (struct sample_reader *)ctx + i;
	const struct decoder *d = r->d;
	struct wire w = d->runs.at[r->first_run].bytes;
	const uint8_t *end = r->last_run < d->runs.n ? d->runs.at[r->last_run].bytes.p : w.end;
	uint32_t index = d->runs.at[r->first_run].first, last = d->runs.at[r->last_run - 1].last;
	uint32_t *stacks = d->p->stacks;
	struct recycler pages;

	/* A location id takes a byte or more, so places counted in bytes never overlap. */
	r->nstack = (uint32_t)(w.p - d->samples_start);
	recycler_init(&pages, w.p, stacks + r->nstack, stacks + (end - d->samples_start));
	while (index < last) {
		struct field f = { 0 };

		if (!wire_next(&w, &f))
			break;
		if (f.number != 2)
			continue;
		if (!read_sample(r, f.bytes, index++)) {
			r->is_malformed = true;
			break;
		}
		if (r->may_discard && index % RUN_SAMPLES == 0)
			recycle(&pages, w.p, stacks + r->nstack);
	}
	recycler_finish(&pages, stacks + r->nstack);
}

/* Brings the label sets of all readers into one table. */
static void join_labels(struct decoder *d, struct sample_reader *readers, int n)
{
	struct profile *p = d->p;
	struct label_table *all = &readers[0].labels;

	for (int i = 1; i < n; i++) {
		struct label_table *t = &readers[i].labels;
		uint32_t *to = xmalloc(t->sets.n * sizeof(*to));

		for (size_t k = 0; k < t->sets.n; k++)
			to[k] = label_table_add_set(all, t->labels.at + t->sets.at[k].first,
						    t->sets.at[k].nstrings, t->sets.at[k].nnumbers);
		for (uint32_t s = d->runs.at[readers[i].first_run].first;
		     s < d->runs.at[readers[i].last_run - 1].last; s++)
			p->samples[s].labels = to[p->samples[s].labels];
		free(to);
	}
	p->nlabel_sets = (uint32_t)all->sets.n;
	p->label_sets = vec_adopt(d->a, &all->sets);
	p->labels = vec_adopt(d->a, &all->labels);
}

static enum decode_result samples_result(struct decoder *d, const struct sample_reader *readers,
					 int n, struct err *e)
{
	enum decode_result result = DECODE_OK;

	*e = d->invalid;
	for (int i = n - 1; i >= 0; i--)
		if (readers[i].invalid.kind != ERR_NONE)
			*e = readers[i].invalid;
	if (d->nsamples && !d->p->ntypes)
		err_set(e, ERR_FORMAT, "missing sample type information");
	if (e->kind != ERR_NONE)
		result = DECODE_INVALID;
	for (int i = 0; i < n; i++)
		if (readers[i].is_malformed)
			result = DECODE_MALFORMED;
	return result;
}

static enum decode_result read_samples(struct decoder *d, const struct parse_params *params,
				       struct err *e)
{
	struct profile *p = d->p;
	enum decode_result result;
	size_t bytes = d->runs.n ? (size_t)(d->runs.at[0].bytes.end - d->samples_start) : 0;
	size_t nvalues = (size_t)d->nsamples * p->ntypes;
	bool has_no_rows = nvalues > bytes;
	struct sample_reader *readers;
	int n = bytes > PARALLEL_BYTES && !has_no_rows ? params->threads : 1;

	if (n < 1 || d->runs.n <= 1)
		n = 1;
	else if ((size_t)n > d->runs.n)
		n = (int)d->runs.n;
	p->nsamples = d->nsamples;
	p->samples = arena_many_raw(d->a, d->nsamples, struct sample);
	p->stacks = arena_many_raw(d->a, bytes, uint32_t);
	p->values = arena_many_raw(d->a, has_no_rows ? p->ntypes : nvalues, int64_t);
	readers = arena_many(d->a, (size_t)n, struct sample_reader);
	for (int i = 0; i < n; i++) {
		readers[i].d = d;
		readers[i].has_no_rows = has_no_rows;
		readers[i].may_discard = params->may_discard;
		readers[i].first_run = (uint32_t)(d->runs.n * (size_t)i / (size_t)n);
		readers[i].last_run = (uint32_t)(d->runs.n * (size_t)(i + 1) / (size_t)n);
		label_table_init(&readers[i].labels);
	}
	if (d->runs.n)
		parallel_for(n, (size_t)n, read_runs, readers);
	result = samples_result(d, readers, n, e);
	if (result == DECODE_OK)
		join_labels(d, readers, n);
	for (int i = 0; i < n; i++) {
		label_table_release(&readers[i].labels);
		vec_release(&readers[i].label_scratch);
	}
	return result;
}

static void decoder_release(struct decoder *d)
{
	vec_release(&d->types);
	vec_release(&d->mappings);
	vec_release(&d->locations);
	vec_release(&d->functions);
	vec_release(&d->texts);
	vec_release(&d->period_types);
	vec_release(&d->runs);
	vec_release(&d->comments);
	map_release(&d->mapping_ids.sparse);
	map_release(&d->function_ids.sparse);
	map_release(&d->location_ids.sparse);
}

enum decode_result proto_decode(struct profile *p, struct arena *a, struct strings *strings,
				struct str data, const struct parse_params *params, struct err *e)
{
	const uint8_t *bytes = (const uint8_t *)data.p;
	struct decoder d = { .p = p, .a = a, .bytes = bytes, .end = bytes + data.n };
	enum decode_result result;

	*p = (struct profile){ .strings = strings };
	if (!split_top_level(&d, (struct wire){ bytes, bytes + data.n }))
		result = d.is_concatenated ? DECODE_CONCATENATED : DECODE_MALFORMED;
	else if (!read_tables(&d, params->threads))
		result = DECODE_MALFORMED;
	else
		result = read_samples(&d, params, e);
	decoder_release(&d);
	return result;
}
