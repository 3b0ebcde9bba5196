/* api_top.c - all functions with their weights. */
#include "web/names.h"

#include <stdlib.h>

#include "base/vec.h"

struct top_row {
	uint32_t id;
	int64_t flat[2], cum[2];
	bool has[2]; /* that side's */
	const char *inlined;
};

struct top {
	struct api_call *q;
	vec(struct top_row) rows;
	uint32_t *row_of; /* by id: the last one, from 1 */
	uint32_t nrow_of;
	struct buf head, functions;
	int64_t totals[2];
	int side;
};

static const char *inline_label(const struct graph *g, const struct node *n)
{
	uint32_t ninline = 0;

	for (uint32_t i = 0; i < n->nin; i++)
		ninline += g->edges[n->in[i]].is_inline;
	if (!ninline)
		return "";
	return ninline == n->nin ? "(inline)" : "(partial-inline)";
}

/* Nodes may differ in what is not shown, such as the line where a function of a file starts; then
 * there are several rows of the same name, as in -top. */
static struct top_row *find_row(struct top *t, uint32_t id, bool *is_new)
{
	if (id >= t->nrow_of) {
		uint32_t n = id * 2 + 1000;

		t->row_of = xrealloc(t->row_of, n * sizeof(*t->row_of));
		memset(t->row_of + t->nrow_of, 0, (n - t->nrow_of) * sizeof(*t->row_of));
		t->nrow_of = n;
	}
	*is_new = !t->row_of[id];
	if (*is_new || t->rows.at[t->row_of[id] - 1].has[t->side]) {
		vec_push(&t->rows, (struct top_row){ .id = id, .inlined = "" });
		t->row_of[id] = (uint32_t)t->rows.n;
	}
	return &t->rows.at[t->row_of[id] - 1];
}

static bool run_top(struct buf *out, struct report_run *r, struct err *e)
{
	struct top *t = r->params->into;
	struct loaded *l = t->side ? t->q->other : t->q->profile;

	(void)out, (void)e;
	if (!t->side)
		api_put_type(&t->head, r);
	t->totals[t->side] = r->params->total;
	for (uint32_t i = 0; i < r->g.norder && !stop_asked_at(r->params->stop, i); i++) {
		const struct node *n = &r->g.nodes[r->g.order[i]];
		uint32_t id = name_id(t->q->site, l, r, &n->info);
		bool is_new;
		struct top_row *row = find_row(t, id, &is_new);

		row->flat[t->side] = node_flat(n);
		row->cum[t->side] = node_cum(n);
		row->has[t->side] = true;
		if (!t->side || !row->has[0])
			row->inlined = inline_label(&r->g, n);
		if (!is_new)
			continue;
		buf_puts(&t->functions, t->functions.n ? ",\n" : "");
		name_put(&t->functions, l, r, id, &n->info);
	}
	return true;
}

static const struct report report_top_rows = {
	.name = "top",
	.flags = REPORT_GRAPH | REPORT_ALL_NODES | REPORT_UNTRIMMED | REPORT_INLINE_EDGES,
	.run = run_top,
};

static void put_top(struct top *t, struct buf *out)
{
	bool has_two = t->q->other;

	buf_char(out, '{');
	buf_str(out, buf_view(&t->head));
	buf_printf(out, ",\"total\":%lld", (long long)t->totals[0]);
	if (has_two)
		buf_printf(out, ",\"base_total\":%lld", (long long)t->totals[1]);
	buf_puts(out, ",\"rows\":[");
	for (size_t i = 0; i < t->rows.n; i++) {
		const struct top_row *row = &t->rows.at[i];

		buf_printf(out, "%s[%u,%lld,%lld,\"%s\"", i ? ",\n" : "",
			   functions_number(&t->q->site->functions, row->id),
			   (long long)row->flat[0], (long long)row->cum[0], row->inlined);
		if (has_two)
			buf_printf(out, ",%lld,%lld", (long long)row->flat[1],
				   (long long)row->cum[1]);
		buf_char(out, ']');
	}
	buf_puts(out, "],\"functions\":[");
	buf_str(out, buf_view(&t->functions));
	buf_char(out, ']');
	api_put_warnings(t->q, out);
	buf_puts(out, "}\n");
}

bool api_top(struct api_call *q, struct buf *out, struct err *e)
{
	struct top t = { .q = q };
	bool ok = api_report(q, loaded_session(q->profile), &report_top_rows, "", &t, out, e);

	if (ok && q->other) {
		t.side = 1;
		ok = api_report_other(q, &report_top_rows, &t, out, e);
	}
	if (ok)
		put_top(&t, out);
	vec_release(&t.rows);
	free(t.row_of);
	buf_release(&t.head);
	buf_release(&t.functions);
	return ok;
}
