/* api_graph.c - the call graph as Graphviz draws it, and what its boxes and arrows are. */
#include "web/names.h"

#include "base/vec.h"

enum { MAX_SECONDS = 10 };

struct drawn {
	struct api_call *q;
	struct buf *out;
	struct buf dot;
};

/* The page shows the legend elsewhere. */
static void drop_legend(struct buf *dot)
{
	struct str rest = buf_view(dot);
	size_t n = 0;

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		if (str_has_prefix(line, STR("subgraph cluster_L ")))
			continue;
		memmove(dot->p + n, line.p, line.n);
		n += line.n;
		dot->p[n++] = '\n';
	}
	dot->n = n;
}

static void put_nodes(struct drawn *x, const struct report_run *r)
{
	struct buf functions = { 0 };
	const struct graph *g = &r->g;

	buf_puts(x->out, "{\"nodes\":[");
	for (uint32_t i = 0; i < g->norder; i++) {
		const struct node *n = &g->nodes[g->order[i]];
		uint32_t id = name_id(x->q->site, x->q->profile, r, &n->info);

		buf_printf(x->out, "%s[%u,%lld,%lld]", i ? "," : "",
			   functions_number(&x->q->site->functions, id), (long long)node_flat(n),
			   (long long)node_cum(n));
		buf_puts(&functions, i ? ",\n" : "");
		name_put(&functions, x->q->profile, r, id, &n->info);
	}
	buf_printf(x->out, "],\"shown\":%u,\"functions\":[", g->norder);
	buf_str(x->out, buf_view(&functions));
	buf_puts(x->out, "],");
	api_put_type(x->out, r);
	buf_printf(x->out, ",\"total\":%lld", (long long)r->params->total);
	buf_release(&functions);
}

/* Those that nodes have kept, between nodes that are shown; `to` and `from` are places in nodes. */
static void put_edges(struct drawn *x, const struct report_run *r)
{
	const struct graph *g = &r->g;
	uint32_t *place = arena_many(r->a, g->nnodes, uint32_t); /* from 1; 0: not shown */
	bool more = false;

	for (uint32_t i = 0; i < g->norder; i++)
		place[g->order[i]] = i + 1;
	buf_puts(x->out, ",\"edges\":[");
	for (uint32_t i = 0; i < g->norder; i++) {
		const struct node *n = &g->nodes[g->order[i]];

		for (uint32_t k = 0; k < n->nout; k++) {
			const struct edge *e = &g->edges[n->out[k]];

			if (!place[e->to])
				continue;
			buf_printf(x->out, "%s[%u,%u,%lld,%d,%d]", more ? "," : "",
				   place[e->from] - 1, place[e->to] - 1, (long long)edge_value(e),
				   e->is_inline, e->is_residual);
			more = true;
		}
	}
	buf_char(x->out, ']');
}

static void put_legend(struct drawn *x, const struct report_run *r)
{
	struct buf labels = { 0 };
	struct str rest;

	report_labels(&labels, r, true);
	rest = buf_view(&labels);
	buf_puts(x->out, ",\"legend\":[");
	for (bool more = false; rest.n; more = true) {
		buf_puts(x->out, more ? "," : "");
		json_put(x->out, str_cut(&rest, '\n'));
	}
	buf_char(x->out, ']');
	buf_release(&labels);
}

static bool run_graph(struct buf *out, struct report_run *r, struct err *e)
{
	struct drawn *x = r->params->into;

	(void)out;
	if (!report_drawing.run(&x->dot, r, e))
		return false;
	drop_legend(&x->dot);
	put_nodes(x, r);
	put_edges(x, r);
	put_legend(x, r);
	return true;
}

static const struct report report_graph = {
	.name = "graph",
	.flags = REPORT_GRAPH | REPORT_VISUAL | REPORT_TREE,
	.run = run_graph,
};

static bool draw(struct api_call *q, struct str dot, struct buf *svg, struct err *e)
{
	struct buf raw = { 0 };
	bool ok = picture_draw(
		&raw, dot, &(struct picture_params){ "svg", MAX_SECONDS, q->http->abandoned }, e);

	if (ok) {
		size_t start = str_find(buf_view(&raw), STR("<svg"));

		picture_clean(svg, str_from(buf_view(&raw), start == STR_NONE ? 0 : start));
	} else if (e->kind == ERR_NOTFOUND) {
		q->status = 501;
		err_set(e, ERR_NOTFOUND, "Could not execute dot; may need to install graphviz.");
	} else {
		q->status = e->kind == ERR_LIMIT ? 504 : 500;
	}
	buf_release(&raw);
	return ok;
}

bool api_graph(struct api_call *q, struct buf *out, struct err *e)
{
	struct drawn x = { .q = q, .out = out };
	struct buf svg = { 0 };
	bool ok = api_report(q, &q->profile->session, &report_graph, "", &x, out, e);

	api_unlock(q); /* Graphviz takes long */
	ok = ok && draw(q, buf_view(&x.dot), &svg, e);
	if (ok) {
		buf_puts(out, ",\"svg\":");
		json_put(out, buf_view(&svg));
		api_put_warnings(q, out);
		buf_puts(out, "}\n");
	}
	buf_release(&x.dot);
	buf_release(&svg);
	return ok;
}
