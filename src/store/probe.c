/* probe.c - how much of packed profiles one function has: which stacks have it is found once for
 * a book, and of a profile only the numbers of stacks and the values of one type are read. */
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "store/naming.h"
#include "store/pack.h"

struct book_probe {
	const struct book *b;
	struct str function;
	bool is_flat, may_be_binary;
	uint32_t name;	  /* its number, or NONE */
	size_t nstrings;  /* among which it was looked for */
	vec(bool) stacks; /* have it; of those that there were when it was last looked */
	struct naming *naming;
	struct book_naming names;
	vec(uint8_t) later;    /* enum later of each location, if there are names from elsewhere */
	vec(uint8_t) readable; /* the same of each function, by its readable name */
	/* of the profile that is being read */
	uint32_t *rows;
	uint64_t *column;
	size_t nrows;
	struct unpacker u;
};

enum later { NOT_ASKED, NO_NAMES, HAS_IT, HAS_OTHERS };

struct book_probe *book_probe_new(const struct book *b, struct str function, bool is_flat,
				  struct naming *naming)
{
	struct book_probe *p = xcalloc(1, sizeof(*p));

	p->b = p->u.b = b;
	p->naming = naming && naming->by ? naming : NULL;
	p->function = function;
	p->is_flat = is_flat;
	p->name = NONE;
	p->may_be_binary = function.n && (function.p[0] == '[' || function.p[0] == '<');
	return p;
}

void book_probe_free(struct book_probe *p)
{
	if (!p)
		return;
	vec_release(&p->stacks);
	vec_release(&p->later);
	vec_release(&p->readable);
	sealed_release(&p->u.s);
	free(p->rows);
	free(p->column);
	free(p);
}

/* ---- which stacks */

/* Is this what frames of the mapping without a name are called? */
static bool is_binary(const struct book_probe *p, uint32_t mapping)
{
	struct str f = p->function, file = STR("");

	if (mapping != NONE)
		file = p->b->strings.at[p->b->mappings.at[mapping].file];
	if (!file.n)
		return str_eq(f, STR("<unknown>"));
	return f.n > 2 && f.p[0] == '[' && f.p[f.n - 1] == ']' &&
	       str_eq((struct str){ f.p + 1, f.n - 2 }, path_base(file));
}

/* What is said of a location by whoever has named it later. */
static enum later later_names(struct book_probe *p, uint32_t location)
{
	const struct profile_frame *frames;
	uint32_t n;

	while (p->later.n <= location)
		vec_push(&p->later, NOT_ASKED);
	if (p->later.at[location] != NOT_ASKED)
		return p->later.at[location];
	n = book_naming_find(&p->names, location, &frames);
	p->later.at[location] = n ? HAS_OTHERS : NO_NAMES;
	if (p->is_flat && n > 1)
		n = 1;
	for (uint32_t i = 0; i < n; i++)
		if (str_eq(frames[i].name, p->function))
			p->later.at[location] = HAS_IT;
	return p->later.at[location];
}

/* The function by its own name, or by that which people read. */
static bool is_function(struct book_probe *p, uint32_t function)
{
	if (p->b->functions.at[function].name == p->name)
		return true;
	if (!p->naming)
		return false;
	while (p->readable.n <= function)
		vec_push(&p->readable, NOT_ASKED);
	if (p->readable.at[function] == NOT_ASKED)
		p->readable.at[function] =
			str_eq(book_naming_readable(&p->names, function), p->function) ? HAS_IT
										       : NO_NAMES;
	return p->readable.at[function] == HAS_IT;
}

static bool has_function(struct book_probe *p, uint32_t location)
{
	enum later later = p->naming ? later_names(p, location) : NO_NAMES;
	const struct book *b = p->b;
	const struct book_location *l = &b->locations.at[location];
	uint32_t nlines = p->is_flat && l->nlines ? 1 : l->nlines;

	if (later != NO_NAMES)
		return later == HAS_IT;
	if (!l->nlines)
		return p->may_be_binary && is_binary(p, l->mapping);
	for (uint32_t i = 0; i < nlines; i++) {
		uint32_t function = b->lines.at[l->first_line + i].function;
		uint32_t name = function == NONE ? NONE : b->functions.at[function].name;

		if (name != NONE && b->strings.at[name].n
			    ? is_function(p, function)
			    : p->may_be_binary && is_binary(p, l->mapping))
			return true;
	}
	return false;
}

static bool stack_has_function(struct book_probe *p, struct range stack)
{
	uint32_t n = p->is_flat && stack.n ? 1 : stack.n;

	for (uint32_t i = 0; i < n; i++)
		if (has_function(p, p->b->frames.at[stack.first + i]))
			return true;
	return false;
}

/* The book may have grown. What was there before the name was has not got it. */
static void look(struct book_probe *p)
{
	const struct book *b = p->b;

	if (p->stacks.n == b->stacks.n)
		return;
	for (; p->name == NONE && p->nstrings < b->strings.n; p->nstrings++)
		if (str_eq(b->strings.at[p->nstrings], p->function))
			p->name = (uint32_t)p->nstrings;
	book_naming_begin(&p->names, p->naming, b);
	while (p->stacks.n < b->stacks.n) {
		bool has = (p->name != NONE || p->may_be_binary || p->naming) &&
			   stack_has_function(p, b->stacks.at[p->stacks.n]);

		vec_push(&p->stacks, has);
	}
	book_naming_end(&p->names);
}

/* ---- profiles */

static void reserve(struct book_probe *p, size_t n)
{
	if (n <= p->nrows)
		return;
	p->rows = xrealloc(p->rows, n * sizeof(*p->rows));
	p->column = xrealloc(p->column, n * sizeof(*p->column));
	p->nrows = n;
}

static bool add_up(struct book_probe *p, uint32_t type, double *value, struct err *e)
{
	struct reader *r = &p->u.s.body;
	uint32_t n = p->u.head.nsamples;

	reserve(p, (size_t)n + 1);
	get_rows(r, &p->u.s.dense, p->rows, n);
	get_column(r, p->column, n, true); /* labels */
	for (uint32_t t = 0; t <= type; t++)
		get_values(r, p->column, n, p->u.head.ntypes);
	for (uint32_t i = 0; i < n && !r->is_bad; i++) {
		if (p->rows[i] >= p->stacks.n)
			return err_set(e, ERR_FORMAT, "samples are of another book");
		/* No branch: nobody can guess which stacks have it. */
		*value += (double)((int64_t)p->column[i] & -(int64_t)p->stacks.at[p->rows[i]]);
	}
	return !r->is_bad || err_set(e, ERR_FORMAT, "samples are broken");
}

bool book_probe_read(struct book_probe *p, struct str packed, uint32_t head, uint32_t type,
		     double *value, struct err *e)
{
	bool ok = unpacker_open(&p->u, packed, e);

	*value = 0;
	if (ok && (p->u.head.head != head || type >= p->u.head.ntypes))
		ok = err_set(e, ERR_FORMAT, "its sample types are not those that are noted");
	if (ok) {
		look(p);
		ok = (p->name == NONE && !p->may_be_binary && !p->naming) ||
		     add_up(p, type, value, e);
	}
	return ok || err_wrap(e, "packed profile");
}
