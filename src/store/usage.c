#include "store/usage.h"

#include <stdlib.h>

#include "store/pack.h"

struct book_usage {
	const struct book *b;
	bool *stacks, *label_sets;
	size_t nstacks, nlabel_sets;
	uint32_t *rows;
	uint64_t *column;
	size_t nrows;
	struct unpacker u;
};

struct book_usage *book_usage_new(const struct book *b)
{
	struct book_usage *x = xcalloc(1, sizeof(*x));

	x->b = x->u.b = b;
	x->nstacks = b->stacks.n;
	x->nlabel_sets = b->label_sets.n;
	x->stacks = xcalloc(x->nstacks + 1, sizeof(*x->stacks));
	x->label_sets = xcalloc(x->nlabel_sets + 1, sizeof(*x->label_sets));
	return x;
}

void book_usage_free(struct book_usage *x)
{
	sealed_release(&x->u.s);
	free(x->stacks);
	free(x->label_sets);
	free(x->rows);
	free(x->column);
	free(x);
}

static bool mark(struct book_usage *x, struct err *e)
{
	struct reader *r = &x->u.s.body;
	uint32_t n = x->u.head.nsamples;

	if (n >= x->nrows) {
		x->nrows = (size_t)n + 1;
		x->rows = xrealloc(x->rows, x->nrows * sizeof(*x->rows));
		x->column = xrealloc(x->column, x->nrows * sizeof(*x->column));
	}
	get_rows(r, &x->u.s.dense, x->rows, n);
	get_column(r, x->column, n, true);
	for (uint32_t i = 0; i < n && !r->is_bad; i++) {
		if (x->rows[i] < x->nstacks)
			x->stacks[x->rows[i]] = true;
		if (x->column[i] < x->nlabel_sets)
			x->label_sets[x->column[i]] = true;
	}
	return !r->is_bad || err_set(e, ERR_FORMAT, "samples are broken");
}

bool book_usage_add(struct book_usage *x, struct str packed, struct err *e)
{
	return unpacker_open(&x->u, packed, e) && mark(x, e);
}

static double share(const bool *at, size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++)
		used += at[i];
	return n ? (double)used / (double)n : 1;
}

double book_usage_share(const struct book_usage *x)
{
	double stacks = share(x->stacks, x->nstacks), labels = share(x->label_sets, x->nlabel_sets);

	/* One set, that of no labels, is always there and says nothing. */
	return x->nlabel_sets > 1 && labels < stacks ? labels : stacks;
}
