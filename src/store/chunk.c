/* chunk.c - what a book has learnt, as bytes and back.
 *
 * Column by column, since rows that follow each other are alike. Nothing that is read enters the
 * book before all of it has been checked.
 */
#include <stdlib.h>
#include <string.h>

#include "store/column.h"
#include "store/tables.h"

enum { LEVEL = 3, VERSION = 1 };

/* ---- writing */

static void put_mark(struct buf *out, const struct book_mark *m)
{
	const uint32_t counts[] = { m->nstrings,    m->nmappings,  m->nfunctions,
				    m->nlines,	    m->nlocations, m->nstacks,
				    m->nlabel_sets, m->nheads,	   m->nlayouts };

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		put_number(out, counts[i]);
}

static void put_strings(struct buf *out, const struct book *b, uint32_t from)
{
	put_number(out, b->strings.n - from);
	for (size_t i = from; i < b->strings.n; i++)
		put_number(out, b->strings.at[i].n);
	for (size_t i = from; i < b->strings.n; i++)
		buf_str(out, b->strings.at[i]);
}

static void put_mappings(struct buf *out, const struct book *b, uint32_t from)
{
	put_number(out, b->mappings.n - from);
	for (size_t i = from; i < b->mappings.n; i++) {
		const struct book_mapping *m = &b->mappings.at[i];

		put_number(out, m->start);
		put_number(out, m->size);
		put_number(out, m->offset);
		put_number(out, m->file);
		put_number(out, m->build_id);
		put_number(out, m->kernel_symbol);
		put_number(out, m->copy);
		put_number(out, m->flags);
	}
}

/* Strings of new rows are mostly new, and numbered in the same order. */
static void put_near(struct buf *out, uint32_t v, uint32_t *last)
{
	put_signed(out, (int64_t)v - *last);
	*last = v;
}

static void put_functions(struct buf *out, const struct book *b, uint32_t from)
{
	uint32_t last = 0;

	put_number(out, b->functions.n - from);
	for (size_t i = from; i < b->functions.n; i++)
		put_near(out, b->functions.at[i].name, &last);
	for (size_t i = from; i < b->functions.n; i++)
		put_signed(out, (int64_t)b->functions.at[i].system_name - b->functions.at[i].name);
	for (size_t i = from; i < b->functions.n; i++)
		put_near(out, b->functions.at[i].filename, &last);
	for (size_t i = from; i < b->functions.n; i++)
		put_signed(out, b->functions.at[i].start_line);
	for (size_t i = from; i < b->functions.n; i++)
		put_number(out, b->functions.at[i].copy);
}

static void put_lines(struct buf *out, const struct book *b, const struct book_location *l)
{
	for (uint32_t i = 0; i < l->nlines; i++) {
		const struct line *line = &b->lines.at[l->first_line + i];

		put_number(out, line->function == NONE ? 0 : (uint64_t)line->function + 1);
		put_signed(out, line->line);
		put_signed(out, line->column);
	}
}

static void put_locations(struct buf *out, const struct book *b, uint32_t from)
{
	uint64_t last = 0;

	put_number(out, b->locations.n - from);
	for (size_t i = from; i < b->locations.n; i++) {
		put_signed(out, (int64_t)(b->locations.at[i].address - last));
		last = b->locations.at[i].address;
	}
	for (size_t i = from; i < b->locations.n; i++) {
		const struct book_location *l = &b->locations.at[i];

		put_number(out, l->mapping == NONE ? 0 : (uint64_t)l->mapping + 1);
		put_number(out, l->variant);
		put_number(out, l->nlines);
	}
	for (size_t i = from; i < b->locations.n; i++)
		put_lines(out, b, &b->locations.at[i]);
}

/* Stacks that follow each other have their outermost frames in common. */
static uint32_t common_frames(const struct book *b, struct range x, struct range y)
{
	uint32_t n = 0;

	while (n < x.n && n < y.n &&
	       b->frames.at[x.first + x.n - 1 - n] == b->frames.at[y.first + y.n - 1 - n])
		n++;
	return n;
}

/* How many frames that many bytes of stacks may have in common: who reads them must know how much
 * memory they can ask for. */
static size_t may_copy(size_t bytes)
{
	return 256 * bytes + (1 << 16);
}

static void put_stacks(struct buf *out, const struct book *b, uint32_t from)
{
	struct range last = { 0 };
	size_t start = out->n, copied = 0;
	uint32_t frame = 0;

	put_number(out, b->stacks.n - from);
	for (size_t i = from; i < b->stacks.n; i++) {
		struct range s = b->stacks.at[i];
		uint32_t common = common_frames(b, last, s);

		if (copied + common > may_copy(out->n - start))
			common = 0;
		copied += common;
		put_number(out, common);
		put_number(out, s.n - common);
		for (uint32_t k = s.n - common; k > 0; k--)
			put_near(out, b->frames.at[s.first + k - 1], &frame);
		last = s;
	}
}

static void put_label_sets(struct buf *out, const struct book *b, uint32_t from)
{
	put_number(out, b->label_sets.n - from);
	for (size_t i = from; i < b->label_sets.n; i++) {
		const struct label_set *s = &b->label_sets.at[i];

		put_number(out, s->nstrings);
		put_number(out, s->nnumbers);
		for (uint32_t k = 0; k < s->nstrings + s->nnumbers; k++) {
			const struct label *l = &b->labels.at[s->first + k];

			put_number(out, l->key);
			put_number(out, l->text);
			put_signed(out, l->number);
		}
	}
}

static void put_type(struct buf *out, struct value_type t)
{
	put_number(out, t.type);
	put_number(out, t.unit);
}

static void put_heads(struct buf *out, const struct book *b, uint32_t from)
{
	put_number(out, b->heads.n - from);
	for (size_t i = from; i < b->heads.n; i++) {
		const struct book_types *h = &b->heads.at[i];

		put_type(out, h->period_type);
		put_number(out, h->default_type);
		put_number(out, h->n);
		for (uint32_t k = 0; k < h->n; k++)
			put_type(out, b->types.at[h->first + k]);
	}
}

static void put_layouts(struct buf *out, const struct book *b, uint32_t from)
{
	put_number(out, b->layouts.n - from);
	for (size_t i = from; i < b->layouts.n; i++) {
		struct range l = b->layouts.at[i];
		uint64_t start = 0, id = 0;

		put_number(out, l.n);
		for (uint32_t k = 0; k < l.n; k++) {
			const struct placed *p = &b->placed.at[l.first + k];

			put_number(out, p->mapping);
			put_signed(out, (int64_t)(p->start - start));
			put_signed(out, (int64_t)(p->id - id));
			start = p->start;
			id = p->id;
		}
	}
}

void book_write_chunk(const struct book *b, const struct book_mark *from, struct buf *out)
{
	size_t begin = seal_begin(out);
	struct buf body = { 0 };

	put_number(out, VERSION);
	put_mark(out, from);
	put_strings(&body, b, from->nstrings);
	put_mappings(&body, b, from->nmappings);
	put_functions(&body, b, from->nfunctions);
	put_locations(&body, b, from->nlocations);
	put_stacks(&body, b, from->nstacks);
	put_label_sets(&body, b, from->nlabel_sets);
	put_heads(&body, b, from->nheads);
	put_layouts(&body, b, from->nlayouts);
	seal_end(out, begin, buf_view(&body), (struct str){ 0 }, LEVEL, NULL);
	buf_release(&body);
}

/* ---- reading: rows go to the ends of the tables, where nobody looks until all is well */

static uint32_t get_string(struct reader *r, const struct book *b)
{
	return (uint32_t)get_below(r, b->strings.n);
}

static uint32_t get_near(struct reader *r, size_t limit, uint32_t *last)
{
	uint64_t v = *last + (uint64_t)get_signed(r);

	if (v >= limit) {
		reader_fail(r);
		return 0;
	}
	return *last = (uint32_t)v;
}

static uint32_t get_or_none(struct reader *r, size_t limit)
{
	uint64_t v = get_below(r, (uint64_t)limit + 1);

	return v ? (uint32_t)v - 1 : NONE;
}

static void get_strings(struct reader *r, struct book *b)
{
	uint32_t n = get_count(r);
	size_t first = b->strings.n;

	vec_reserve(&b->strings, n);
	for (uint32_t i = 0; i < n; i++)
		b->strings.at[first + i] = (struct str){ NULL, get_count(r) };
	for (uint32_t i = 0; i < n && !r->is_bad; i++) {
		struct str *s = &b->strings.at[first + i];

		if (s->n > (size_t)(r->end - r->p)) {
			reader_fail(r);
			return;
		}
		s->p = arena_copy(&b->bytes, r->p, s->n);
		r->p += s->n;
		b->strings.n++;
	}
}

static void get_mappings(struct reader *r, struct book *b)
{
	uint32_t n = get_count(r);

	vec_reserve(&b->mappings, n);
	for (uint32_t i = 0; i < n; i++) {
		struct book_mapping *m = &b->mappings.at[b->mappings.n++];

		*m = (struct book_mapping){ .start = get_number(r) };
		m->size = get_number(r);
		m->offset = get_number(r);
		m->file = get_string(r, b);
		m->build_id = get_string(r, b);
		m->kernel_symbol = get_string(r, b);
		m->copy = (uint32_t)get_below(r, UINT32_MAX);
		m->flags = (uint32_t)get_below(r, 16);
	}
}

static void get_functions(struct reader *r, struct book *b)
{
	uint32_t n = get_count(r), last = 0;
	struct book_function *f;

	vec_reserve(&b->functions, (size_t)n + 1);
	f = b->functions.at + b->functions.n;
	for (uint32_t i = 0; i < n; i++)
		f[i].name = get_near(r, b->strings.n, &last);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t name = f[i].name;

		f[i].system_name = get_near(r, b->strings.n, &name);
	}
	for (uint32_t i = 0; i < n; i++)
		f[i].filename = get_near(r, b->strings.n, &last);
	for (uint32_t i = 0; i < n; i++)
		f[i].start_line = get_signed(r);
	for (uint32_t i = 0; i < n; i++)
		f[i].copy = (uint32_t)get_below(r, UINT32_MAX);
	b->functions.n += n;
}

static void get_lines(struct reader *r, struct book *b, struct book_location *l)
{
	l->first_line = (uint32_t)b->lines.n;
	vec_reserve(&b->lines, l->nlines);
	for (uint32_t i = 0; i < l->nlines; i++) {
		struct line *line = &b->lines.at[b->lines.n++];

		*line = (struct line){ .function = get_or_none(r, b->functions.n) };
		line->line = get_signed(r);
		line->column = get_signed(r);
	}
}

static void get_locations(struct reader *r, struct book *b)
{
	uint32_t n = get_count(r);
	uint64_t last = 0;
	struct book_location *l;

	vec_reserve(&b->locations, (size_t)n + 1);
	l = b->locations.at + b->locations.n;
	for (uint32_t i = 0; i < n; i++)
		l[i] = (struct book_location){ .address = last += (uint64_t)get_signed(r) };
	for (uint32_t i = 0; i < n; i++) {
		l[i].mapping = get_or_none(r, b->mappings.n);
		l[i].variant = (uint32_t)get_below(r, UINT32_MAX);
		l[i].nlines = get_count(r);
	}
	/* Each line takes a byte or more, so that no more are asked for than can be there. */
	for (uint32_t i = 0; i < n && !r->is_bad; i++) {
		if (l[i].nlines > (size_t)(r->end - r->p))
			reader_fail(r);
		else
			get_lines(r, b, &l[i]);
	}
	b->locations.n += n;
}

/* Returns how many frames it has of the one before, `most` at most. */
static uint32_t get_stack(struct reader *r, struct book *b, struct range *last, uint32_t *frame,
			  size_t most)
{
	uint32_t common = (uint32_t)get_below(r, (uint64_t)last->n + 1), fresh = get_count(r);
	struct range s = { (uint32_t)b->frames.n, common + fresh };
	uint32_t *to;

	if (common > most || (uint64_t)b->frames.n + common + fresh >= UINT32_MAX)
		reader_fail(r);
	if (r->is_bad)
		return 0;
	vec_reserve(&b->frames, (size_t)s.n + 1);
	to = b->frames.at + s.first;
	memcpy(to + fresh, b->frames.at + last->first + last->n - common, common * sizeof(*to));
	for (uint32_t k = fresh; k > 0; k--)
		to[k - 1] = get_near(r, b->locations.n, frame);
	b->frames.n += s.n;
	vec_push(&b->stacks, s);
	*last = s;
	return common;
}

static void get_stacks(struct reader *r, struct book *b)
{
	const uint8_t *start = r->p;
	uint32_t n = get_count(r), frame = 0;
	struct range last = { 0 };
	size_t copied = 0;

	for (uint32_t i = 0; i < n && !r->is_bad; i++) {
		size_t most = may_copy((size_t)(r->p - start)) - copied;

		copied += get_stack(r, b, &last, &frame, most);
	}
}

static void get_label_sets(struct reader *r, struct book *b)
{
	uint32_t n = get_count(r);

	for (uint32_t i = 0; i < n && !r->is_bad; i++) {
		struct label_set s = { .first = (uint32_t)b->labels.n };

		s.nstrings = get_count(r);
		s.nnumbers = get_count(r);
		if ((uint64_t)s.nstrings + s.nnumbers > (size_t)(r->end - r->p))
			reader_fail(r);
		vec_push(&b->label_sets, s);
		for (uint32_t k = 0; k < s.nstrings + s.nnumbers && !r->is_bad; k++) {
			struct label l = { .key = get_string(r, b) };

			l.text = get_string(r, b);
			l.number = get_signed(r);
			vec_push(&b->labels, l);
		}
	}
}

static struct value_type get_type(struct reader *r, const struct book *b)
{
	struct value_type t = { .type = get_string(r, b) };

	t.unit = get_string(r, b);
	return t;
}

static void get_heads(struct reader *r, struct book *b)
{
	uint32_t n = get_count(r);

	for (uint32_t i = 0; i < n && !r->is_bad; i++) {
		struct book_types h = { .first = (uint32_t)b->types.n };

		h.period_type = get_type(r, b);
		h.default_type = get_string(r, b);
		h.n = get_count(r);
		vec_push(&b->heads, h);
		for (uint32_t k = 0; k < h.n; k++)
			vec_push(&b->types, get_type(r, b));
	}
}

static void get_layouts(struct reader *r, struct book *b)
{
	uint32_t n = get_count(r);

	for (uint32_t i = 0; i < n && !r->is_bad; i++) {
		struct range l = { (uint32_t)b->placed.n, get_count(r) };
		uint64_t start = 0, id = 0;

		vec_push(&b->layouts, l);
		for (uint32_t k = 0; k < l.n; k++) {
			struct placed p = { .mapping = (uint32_t)get_below(r, b->mappings.n) };

			p.start = start += (uint64_t)get_signed(r);
			p.id = id += (uint64_t)get_signed(r);
			vec_push(&b->placed, p);
		}
	}
}

static bool get_mark(struct reader *r, const struct book *b, struct err *e)
{
	struct book_mark m = { 0 };
	uint32_t *const counts[] = { &m.nstrings,    &m.nmappings,  &m.nfunctions,
				     &m.nlines,	     &m.nlocations, &m.nstacks,
				     &m.nlabel_sets, &m.nheads,	    &m.nlayouts };

	if (get_number(r) != VERSION)
		return err_set(e, ERR_FORMAT, "written by a newer kiln");
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		*counts[i] = (uint32_t)get_number(r);
	return book_is_at(b, &m) || err_set(e, ERR_FORMAT, "another chunk belongs before this one");
}

/* What get_mark does not know of. */
struct ends {
	struct book_mark mark;
	size_t nframes, nlabels, ntypes, nplaced;
};

static void take_back(struct book *b, const struct ends *to)
{
	b->strings.n = to->mark.nstrings;
	b->mappings.n = to->mark.nmappings;
	b->functions.n = to->mark.nfunctions;
	b->lines.n = to->mark.nlines;
	b->locations.n = to->mark.nlocations;
	b->stacks.n = to->mark.nstacks;
	b->label_sets.n = to->mark.nlabel_sets;
	b->heads.n = to->mark.nheads;
	b->layouts.n = to->mark.nlayouts;
	b->frames.n = to->nframes;
	b->labels.n = to->nlabels;
	b->types.n = to->ntypes;
	b->placed.n = to->nplaced;
}

static bool get_tables(struct reader *r, struct book *b, struct err *e)
{
	static const struct {
		void (*get)(struct reader *r, struct book *b);
		const char *what;
	} tables[] = {
		{ get_strings, "strings" },	{ get_mappings, "mappings" },
		{ get_functions, "functions" }, { get_locations, "locations" },
		{ get_stacks, "stacks" },	{ get_label_sets, "label sets" },
		{ get_heads, "heads" },		{ get_layouts, "layouts" },
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		tables[i].get(r, b);
		if (r->is_bad)
			return err_set(e, ERR_FORMAT, "%s are broken", tables[i].what);
	}
	return r->p == r->end ||
	       err_set(e, ERR_FORMAT, "%zu bytes too many", (size_t)(r->end - r->p));
}

bool book_read_chunk(struct book *b, struct str chunk, struct err *e)
{
	struct ends ends = { book_mark(b), b->frames.n, b->labels.n, b->types.n, b->placed.n };
	struct sealed s = { 0 };
	bool ok = seal_open(&s, chunk, e) && get_mark(&s.head, b, e) && seal_unpack(&s, e);

	if (ok && !get_tables(&s.body, b, e)) {
		take_back(b, &ends);
		ok = false;
	}
	sealed_release(&s);
	return ok || err_wrap(e, "chunk of a book");
}
