/* querier_series.c - values over time. */
#include "server/querier.h"

#include <math.h>
#include <stdlib.h>

#include "base/int.h"
#include "profile/wire.h"

#define SECOND INT64_C(1000000000)
enum { MAX_POINTS = 11000, MAX_GROUPS = 16 };

static bool read_step(const struct ask_series *ask, const struct store_query *query, int64_t *step,
		      struct err *e)
{
	int64_t window = int_distance(query->from, query->to);

	if (!(ask->step >= 0.001 && ask->step <= 1e9))
		return err_set(e, ERR_USAGE, "step: %g is not between 0.001 and 1e9 seconds",
			       ask->step);
	*step = llround(ask->step * 1e9);
	return window / *step <= MAX_POINTS ||
	       err_set(e, ERR_USAGE,
		       "step: that would be %lld points of each series, and at most %d are made; "
		       "use a longer step",
		       (long long)(window / *step), MAX_POINTS);
}

/* Names of the store with NULs between them. What the profile type says is the same for all. */
static bool read_groups(const struct querier *q, const struct ask_series *ask,
			const struct selection *s, struct str *by, struct err *e)
{
	const struct str *names = ask->group_by.at;
	struct buf text = { 0 };

	if (ask->group_by.n > MAX_GROUPS)
		return err_set(e, ERR_USAGE,
			       "group_by: there are %zu labels, and at most %d are taken",
			       ask->group_by.n, MAX_GROUPS);
	for (size_t i = 0; i < ask->group_by.n; i++) {
		if (!names[i].n)
			return err_set(e, ERR_USAGE, "group_by: there is a label without a name");
		if (profile_type_label(q->a, &s->id, names[i]).p)
			continue;
		if (text.n)
			buf_char(&text, '\0');
		buf_str(&text, store_label_name(names[i]));
	}
	*by = (struct str){ arena_copy(q->a, text.p, text.n), text.n };
	buf_release(&text);
	return true;
}

static double height(const struct store_line *line)
{
	double sum = 0;

	for (size_t i = 0; i < line->n; i++)
		sum += line->points[i].value;
	return sum;
}

static int higher_first(const void *a, const void *b)
{
	double x = height(a), y = height(b);

	if (x != y)
		return x < y ? 1 : -1;
	return str_cmp(((const struct store_line *)a)->name, ((const struct store_line *)b)->name);
}

static bool find_lines(const struct querier *q, const struct ask_series *ask,
		       const struct selection *s, struct series_made *made, struct err *e)
{
	struct store_left_out left_out = { 0 };
	struct store_series_params params = {
		.sample_type = s->id.sample,
		.unit = s->id.unit,
		.left_out = &left_out,
		/* As Pyroscope has it, but what is measured at one moment is not added up. */
		.how = ask->aggregation == AGGREGATION_AVERAGE ? STORE_MEAN : STORE_AS_TYPE
	};
	struct str *call_site = NULL;

	if (ask->aggregation != AGGREGATION_SUM && ask->aggregation != AGGREGATION_AVERAGE)
		return err_set(e, ERR_USAGE, "aggregation: there is no %lld",
			       (long long)ask->aggregation);
	if (!selection_query(s, q, ask->start, ask->end, true, &params.query, e) ||
	    !read_step(ask, &params.query, &params.step, e) ||
	    !read_groups(q, ask, s, &params.by, e) ||
	    !querier_call_site(q->a, ask->stack_trace_selector, &call_site, &params.ncall_site, e))
		return false;
	params.call_site = call_site;
	made->step = params.step;
	if (!store_series(q->store, &params, q->a, &made->lines, &made->n, e))
		return false;
	reply_left_out(q->c, &left_out);
	return true;
}

bool querier_series(const struct querier *q, const struct ask_series *ask, struct series_made *made,
		    struct err *e)
{
	struct selection s = { 0 };
	bool ok = (selection_add(&s, q->a, ask->label_selector, e) ||
		   err_wrap(e, "label_selector")) &&
		  selection_set_type(&s, q->a, ask->profile_typeID, e);

	*made = (struct series_made){ 0 };
	ok = ok && find_lines(q, ask, &s, made, e);
	selection_release(&s);
	if (!ok)
		return e->kind == ERR_NOTFOUND;
	if (ask->limit > 0 && made->n > (uint64_t)ask->limit) {
		qsort(made->lines, made->n, sizeof(*made->lines), higher_first);
		made->n = (size_t)ask->limit;
	}
	return true;
}

/* ---- the call */

static void put_label(struct buf *out, struct str name, struct str value)
{
	struct buf label = { 0 };

	if (!value.n)
		return;
	put_utf8(&label, 1, name);
	put_utf8(&label, 2, value);
	put_message(out, 1, &label);
	buf_release(&label);
}

static void put_labels(const struct querier *q, const struct ask_series *ask,
		       const struct store_line *line, struct buf *out)
{
	const struct str *names = ask->group_by.at;
	struct str values = line->name;
	struct profile_type_id id;

	profile_type_parse_id(ask->profile_typeID, &id);
	for (size_t i = 0; i < ask->group_by.n; i++) {
		struct str own = profile_type_label(q->a, &id, names[i]);

		put_label(out, names[i], own.p ? own : str_cut(&values, '\0'));
	}
}

static void put_points(const struct store_line *line, struct buf *out)
{
	struct buf point = { 0 };

	for (size_t i = 0; i < line->n; i++) {
		if (line->points[i].value != 0)
			put_double(&point, 1, line->points[i].value);
		put_nonzero(&point, 2, (uint64_t)(line->points[i].time / 1000000));
		put_message(out, 2, &point);
	}
	buf_release(&point);
}

bool querier_select_series(const struct querier *q, const void *request, struct buf *out,
			   struct err *e)
{
	struct series_made made;
	struct buf line = { 0 };

	if (!querier_series(q, request, &made, e))
		return false;
	for (size_t i = 0; i < made.n && !stop_asked(q->stop); i++) {
		put_labels(q, request, &made.lines[i], &line);
		put_points(&made.lines[i], &line);
		put_message(out, 1, &line);
	}
	buf_release(&line);
	return true;
}
