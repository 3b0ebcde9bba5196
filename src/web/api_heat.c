/* api_heat.c - samples over time as a grid: a column is a second, or what fits, and a row a part of
 * it, so that what comes again and again within a second can be seen. */
#include "web/site.h"

#include "base/int.h"

#define MILLISECOND INT64_C(1000000)
enum {
	MOST_COLUMNS = 240,
	FEW_COLUMNS = 30,
	LEAST_TICKS = 4, /* in a column, on average */
	FINE_ROWS = 50,
	COARSE_ROWS = 20,
	FEW_ROWS = 10,
};

struct grid {
	int64_t step; /* of a column */
	int64_t ncolumns, nrows;
};

/* A second, if that makes a picture; else the first that is not too fine. */
static int64_t fit_step(int64_t span, size_t nticks)
{
	static const int64_t steps[] = { 1,	2,	5,	10,	20,	 50,	 100,
					 200,	500,	1000,	2000,	5000,	 10000,	 30000,
					 60000, 120000, 300000, 600000, 1800000, 3600000 };
	size_t i = 0, n = sizeof(steps) / sizeof(*steps);
	double least = (double)span * LEAST_TICKS / (double)nticks;

	if (span / (1000 * MILLISECOND) >= FEW_COLUMNS &&
	    span / (1000 * MILLISECOND) < MOST_COLUMNS)
		return 1000 * MILLISECOND;
	while (i + 1 < n && (span / (steps[i] * MILLISECOND) >= MOST_COLUMNS ||
			     (double)(steps[i] * MILLISECOND) < least))
		i++;
	/* Times of who knows what may be a century apart. */
	return span / (steps[i] * MILLISECOND) < MOST_COLUMNS ? steps[i] * MILLISECOND
							      : span / MOST_COLUMNS + 1;
}

static struct grid make_grid(int64_t span, size_t nticks)
{
	struct grid g = { .step = fit_step(span, nticks) };

	g.ncolumns = span / g.step + 1;
	g.nrows = nticks < (size_t)g.ncolumns * COARSE_ROWS ? FEW_ROWS
		  : g.step >= 1000 * MILLISECOND	    ? FINE_ROWS
							    : COARSE_ROWS;
	return g;
}

/* By row of values: is it that of a sample which the filters left? */
static bool *rows_left(struct arena *a, const struct profile *p, uint32_t *nrows)
{
	bool *is_left;

	*nrows = 0;
	for (uint32_t i = 0; i < p->nsamples; i++)
		if (p->samples[i].row >= *nrows)
			*nrows = p->samples[i].row + 1;
	is_left = arena_many(a, *nrows, bool);
	for (uint32_t i = 0; i < p->nsamples; i++)
		is_left[p->samples[i].row] = true;
	return is_left;
}

/* A step is at most INT64_MAX / MOST_COLUMNS, so this cannot overflow. */
static int64_t row_in(const struct grid *g, int64_t in_column)
{
	return in_column * g->nrows / g->step;
}

static int64_t *fill_grid(struct report_run *r, const struct grid *g)
{
	const struct profile_times *t = r->p->times;
	int64_t *cells = arena_many(r->a, (size_t)(g->ncolumns * g->nrows), int64_t);
	uint32_t nrows;
	const bool *is_left = rows_left(r->a, r->p, &nrows);

	for (size_t i = 0; i < t->n && !stop_asked_at(r->params->stop, i); i++) {
		const struct profile_tick *tick = &t->ticks[i];
		int64_t after = int_distance(t->ticks[0].at, tick->at);
		int64_t *cell;

		if (tick->row >= nrows || !is_left[tick->row])
			continue;
		cell = &cells[after / g->step * g->nrows + row_in(g, after % g->step)];
		*cell = int_add(*cell,
				t->values[(size_t)tick->values * r->p->ntypes + r->params->value]);
	}
	return cells;
}

static bool run_heat(struct buf *out, struct report_run *r, struct err *e)
{
	const struct profile_times *t = r->p->times;
	const int64_t *cells;
	struct grid g;
	int64_t span;

	if (!t || !r->p->ntypes)
		return err_set(e, ERR_NOTFOUND, "the samples of this profile have no times");
	span = int_distance(t->ticks[0].at, t->ticks[t->n - 1].at);
	g = make_grid(span, t->n);
	cells = fill_grid(r, &g);
	buf_char(out, '{');
	api_put_type(out, r);
	buf_printf(out, ",\"span\":%lld,\"step\":%lld,\"columns\":%lld,\"rows\":%lld,\"cells\":[",
		   (long long)span, (long long)g.step, (long long)g.ncolumns, (long long)g.nrows);
	for (int64_t i = 0; i < g.ncolumns * g.nrows; i++) {
		buf_puts(out, !i ? "" : i % g.nrows ? "," : ",\n");
		buf_int(out, cells[i]);
	}
	buf_char(out, ']');
	return true;
}

static const struct report report_heat = {
	.name = "heat",
	.flags = REPORT_NO_STACKS,
	.run = run_heat,
};

bool api_heat(struct api_call *q, struct buf *out, struct err *e)
{
	q->time = (struct time_range){ 0 }; /* the page shows it on the whole */
	if (!api_report(q, &q->profile->session, &report_heat, "", NULL, out, e))
		return false;
	api_put_warnings(q, out);
	buf_puts(out, "}\n");
	return true;
}
