/* tree.c - every node with its callers above and its callees below: -tree and -peek. */
#include "report/report.h"

#include "base/unit.h"

#define SEPARATOR "----------------------------------------------------------+-------------\n"

static void edge_line(struct buf *out, const struct report_run *r, const struct edge *e,
		      const struct node *of, const struct node *other)
{
	report_value_cell(out, r, e->weight, 50);
	buf_char(out, ' ');
	percent_text(out, e->weight, node_cum(of));
	buf_puts(out, " |   ");
	buf_str(out, other->text);
	buf_puts(out, e->is_inline ? " (inline)\n" : "\n");
}

static void node_block(struct buf *out, const struct report_run *r, const struct node *n,
		       int64_t sum)
{
	const struct graph *g = &r->g;

	buf_puts(out, SEPARATOR);
	for (uint32_t i = 0; i < n->nin; i++) {
		const struct edge *e = &g->edges[n->in[i]];

		edge_line(out, r, e, n, &g->nodes[e->from]);
	}
	report_node_columns(out, r, n, sum);
	buf_puts(out, "                | ");
	buf_str(out, n->text);
	buf_char(out, '\n');
	for (uint32_t i = 0; i < n->nout; i++) {
		const struct edge *e = &g->edges[n->out[i]];

		edge_line(out, r, e, n, &g->nodes[e->to]);
	}
}

static bool run(struct buf *out, struct report_run *r, struct err *e)
{
	const struct graph *g = &r->g;
	int64_t sum = 0;

	(void)e;
	report_labels(out, r, !r->params->compact_labels);
	buf_puts(out, "\n" SEPARATOR "      flat  flat%   sum%        cum   cum%   calls calls% + "
		      "context \t \t \n");
	/* A node may have thousands of callers. */
	for (uint32_t i = 0; i < g->norder && !stop_asked(r->params->stop); i++) {
		const struct node *n = &g->nodes[g->order[i]];

		if (r->params->regex && !regex_match(r->params->regex, n->text))
			continue;
		sum = int_add(sum, node_flat(n));
		node_block(out, r, n, sum);
	}
	if (g->norder)
		buf_puts(out, SEPARATOR);
	return true;
}

static bool run_peek(struct buf *out, struct report_run *r, struct err *e)
{
	const struct graph *g = &r->g;

	for (uint32_t i = 0; i < g->norder; i++)
		if (regex_match(r->params->regex, g->nodes[g->order[i]].text))
			return run(out, r, e);
	return err_set(e, ERR_NOTFOUND, "no matches found for regexp: %s", r->params->argument);
}

const struct report report_tree = {
	.name = "tree",
	.flags = REPORT_GRAPH,
	.run = run,
};

const struct report report_peek = {
	.name = "peek",
	.flags = REPORT_GRAPH | REPORT_UNTRIMMED | REPORT_NEAR_EDGES,
	.run = run_peek,
};
