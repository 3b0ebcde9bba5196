/* probe.c - how much of packed profiles one function has, or those that begin with some functions:
 * which stacks these are is found once for a book, and of a profile only the numbers of stacks and
 * the values of one type are read. */
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "store/naming.h"
#include "store/pack.h"

struct probed {
	struct str function;
	uint32_t name; /* its number, or NONE */
	uint32_t text; /* which of the functions is the first that is called so */
	bool may_be_binary;
};

/* Frames of a location by whoever has named it later; none: its own are to be used. */
struct later {
	uint32_t first, n;
	bool is_asked;
};

#define NOT_ASKED (NONE - 1)

struct book_probe {
	const struct book *b;
	enum probe_where where;
	struct probed *functions;
	size_t nfunctions;
	size_t nstrings;  /* among which they were looked for */
	vec(bool) stacks; /* have it; of those that there were when it was last looked */
	struct naming *naming;
	struct book_naming names;
	vec(struct later) later; /* of each location, if there are names from elsewhere */
	vec(uint32_t) texts;	 /* of their frames, as struct probed has it; NONE: of none */
	vec(uint32_t) readable;	 /* the same of each function, by its readable name */
	/* of the profile that is being read */
	uint32_t *rows;
	uint64_t *column;
	size_t nrows;
	struct unpacker u;
};

/* Which of the functions is called so first; NONE: none. */
static uint32_t find_text(const struct book_probe *p, struct str name)
{
	for (size_t i = 0; i < p->nfunctions; i++)
		if (str_eq(p->functions[i].function, name))
			return (uint32_t)i;
	return NONE;
}

struct book_probe *book_probe_new(const struct book *b, const struct str *functions, size_t n,
				  enum probe_where where, struct naming *naming)
{
	struct book_probe *p = xcalloc(1, sizeof(*p));

	p->b = p->u.b = b;
	p->naming = naming && naming->by ? naming : NULL;
	p->where = where;
	p->functions = xcalloc(n, sizeof(*p->functions));
	p->nfunctions = n;
	for (size_t i = 0; i < n; i++) {
		struct str f = functions[i];

		p->functions[i] = (struct probed){
			.function = f,
			.name = NONE,
			.may_be_binary = f.n && (f.p[0] == '[' || f.p[0] == '<'),
		};
		p->functions[i].text = find_text(p, f);
	}
	return p;
}

void book_probe_free(struct book_probe *p)
{
	if (!p)
		return;
	vec_release(&p->stacks);
	vec_release(&p->later);
	vec_release(&p->texts);
	vec_release(&p->readable);
	sealed_release(&p->u.s);
	free(p->functions);
	free(p->rows);
	free(p->column);
	free(p);
}

/* ---- which stacks */

/* Is this what frames of the mapping without a name are called? */
static bool is_binary(const struct book_probe *p, const struct probed *function, uint32_t mapping)
{
	struct str f = function->function, file = STR("");

	if (mapping != NONE)
		file = p->b->strings.at[p->b->mappings.at[mapping].file];
	if (!file.n)
		return str_eq(f, STR("<unknown>"));
	return f.n > 2 && f.p[0] == '[' && f.p[f.n - 1] == ']' &&
	       str_eq((struct str){ f.p + 1, f.n - 2 }, path_base(file));
}

static struct later later_names(struct book_probe *p, uint32_t location)
{
	const struct profile_frame *frames;
	struct later *l;

	if (!p->naming)
		return (struct later){ 0 };
	while (p->later.n <= location)
		vec_push(&p->later, (struct later){ 0 });
	l = &p->later.at[location];
	if (!l->is_asked) {
		*l = (struct later){ .first = (uint32_t)p->texts.n,
				     .n = book_naming_find(&p->names, location, &frames),
				     .is_asked = true };
		for (uint32_t i = 0; i < l->n; i++)
			vec_push(&p->texts, find_text(p, frames[i].name));
	}
	return *l;
}

/* The function by its own name, or by that which people read. */
static bool is_function(struct book_probe *p, const struct probed *f, uint32_t function)
{
	if (p->b->functions.at[function].name == f->name)
		return true;
	if (!p->naming)
		return false;
	while (p->readable.n <= function)
		vec_push(&p->readable, NOT_ASKED);
	if (p->readable.at[function] == NOT_ASKED) {
		struct str name = book_naming_readable(&p->names, function);

		p->readable.at[function] = name.p ? find_text(p, name) : NONE;
	}
	return p->readable.at[function] == f->text;
}

/* Frames of one location, innermost first. */
struct frames {
	struct later later;
	const struct book_location *l;
	uint32_t n; /* one of a location without lines */
};

static struct frames frames_of(struct book_probe *p, struct range stack, uint32_t i)
{
	uint32_t location = p->b->frames.at[stack.first + i];
	struct frames x = { .later = later_names(p, location), .l = &p->b->locations.at[location] };

	x.n = x.later.n ? x.later.n : x.l->nlines ? x.l->nlines : 1;
	return x;
}

static bool is_in(struct book_probe *p, const struct probed *f, const struct frames *x,
		  uint32_t frame)
{
	const struct book *b = p->b;
	const struct book_location *l = x->l;
	uint32_t function, name;

	if (x->later.n)
		return p->texts.at[x->later.first + frame] == f->text;
	function = l->nlines ? b->lines.at[l->first_line + frame].function : NONE;
	name = function == NONE ? NONE : b->functions.at[function].name;
	if (name != NONE && b->strings.at[name].n)
		return is_function(p, f, function);
	return f->may_be_binary && is_binary(p, f, l->mapping);
}

static bool has_function(struct book_probe *p, struct range stack)
{
	bool is_flat = p->where == PROBE_LEAF;
	uint32_t n = is_flat && stack.n ? 1 : stack.n;

	for (uint32_t i = 0; i < n; i++) {
		struct frames x = frames_of(p, stack, i);

		for (uint32_t frame = 0; frame < (is_flat ? 1 : x.n); frame++)
			if (is_in(p, p->functions, &x, frame))
				return true;
	}
	return false;
}

static bool begins_with_all(struct book_probe *p, struct range stack)
{
	size_t n = 0;

	for (uint32_t i = stack.n; i-- > 0 && n < p->nfunctions;) {
		struct frames x = frames_of(p, stack, i);

		for (uint32_t frame = x.n; frame-- > 0 && n < p->nfunctions; n++)
			if (!is_in(p, &p->functions[n], &x, frame))
				return false;
	}
	return n == p->nfunctions;
}

/* Is there one that no stack has? */
static bool has_nothing(const struct book_probe *p)
{
	for (size_t i = 0; i < p->nfunctions && !p->naming; i++)
		if (p->functions[i].name == NONE && !p->functions[i].may_be_binary)
			return true;
	return false;
}

static void look_for_names(struct book_probe *p)
{
	const struct book *b = p->b;
	size_t nmissing = 0;

	for (size_t i = 0; i < p->nfunctions; i++)
		nmissing += p->functions[i].name == NONE;
	for (; nmissing && p->nstrings < b->strings.n; p->nstrings++)
		for (size_t i = 0; i < p->nfunctions; i++)
			if (str_eq(b->strings.at[p->nstrings], p->functions[i].function)) {
				p->functions[i].name = (uint32_t)p->nstrings;
				nmissing--;
			}
}

/* The book may have grown. What was there before the names were has not got them. */
static void look(struct book_probe *p)
{
	bool is_none;

	if (p->stacks.n == p->b->stacks.n)
		return;
	look_for_names(p);
	is_none = has_nothing(p);
	book_naming_begin(&p->names, p->naming, p->b);
	while (p->stacks.n < p->b->stacks.n) {
		struct range stack = p->b->stacks.at[p->stacks.n];
		bool has = !is_none && (p->where == PROBE_ROOT ? begins_with_all(p, stack)
							       : has_function(p, stack));

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
		ok = has_nothing(p) || add_up(p, type, value, e);
	}
	return ok || err_wrap(e, "packed profile");
}
