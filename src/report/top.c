/* top.c - the table of nodes: -top and -text. */
#include "report/report.h"

static const char *inline_suffix(const struct graph *g, const struct node *n)
{
	uint32_t ninline = 0;

	for (uint32_t i = 0; i < n->nin; i++)
		ninline += g->edges[n->in[i]].is_inline;
	if (!ninline)
		return "";
	return ninline == n->nin ? " (inline)" : " (partial-inline)";
}

static bool run(struct buf *out, struct report_run *r, struct err *e)
{
	int64_t sum = 0;

	(void)e;
	report_labels(out, r, !r->params->compact_labels);
	buf_puts(out, "\n      flat  flat%   sum%        cum   cum%\n");
	for (uint32_t i = 0; i < r->g.norder; i++) {
		const struct node *n = &r->g.nodes[r->g.order[i]];

		sum = int_add(sum, node_flat(n));
		report_node_columns(out, r, n, sum);
		buf_puts(out, "  ");
		buf_str(out, n->text);
		buf_puts(out, inline_suffix(&r->g, n));
		buf_char(out, '\n');
	}
	return true;
}

const struct report report_top = {
	.name = "top",
	.flags = REPORT_GRAPH | REPORT_ALL_NODES | REPORT_INLINE_EDGES,
	.run = run,
};

const struct report report_text = {
	.name = "text",
	.flags = REPORT_GRAPH | REPORT_ALL_NODES | REPORT_INLINE_EDGES,
	.run = run,
};
