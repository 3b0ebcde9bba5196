#include "report/report.h"

#include <string.h>

#include "base/unit.h"

#define REPORT(name, flags, help) extern const struct report report_##name;
#include "report/reports.def"

static const struct report *const reports[] = {
#define REPORT(name, flags, help) &report_##name,
#include "report/reports.def"
};

const struct report *report_find(const char *name)
{
	for (size_t i = 0; i < sizeof(reports) / sizeof(*reports); i++)
		if (strcmp(reports[i]->name, name) == 0)
			return reports[i];
	return NULL;
}

/* The smallest value that the report shows, and the total, decide on one unit for all. */
static void choose_unit(struct report_run *r, bool is_undivided)
{
	const struct graph *g = &r->g;
	int64_t min = 0, max = r->params->total;
	struct str unit, max_unit, to = STR("minimum");

	if (!str_eq(r->unit, to) || !g->norder)
		return;
	for (uint32_t i = 0; i < g->norder; i++) {
		const struct node *n = &g->nodes[g->order[i]];
		int64_t v = int_abs(node_flat(n));

		if (v == 0)
			v = int_abs(node_cum(n));
		if (v > 0 && (min == 0 || v < min))
			min = v;
	}
	if (min == 0)
		min = max;
	min = report_divided(r, min);
	max = report_divided(r, max);
	unit_scale(min, r->sample_unit, to, &unit);
	unit_scale(max, r->sample_unit, to, &max_unit);
	if (!str_eq(unit, max_unit) && int_mul(min, 100) < max && !is_undivided)
		unit_scale(int_mul(100, min), r->sample_unit, to, &unit);
	r->unit = unit.n ? unit : r->sample_unit;
}

static void build_graph(struct report_run *r, unsigned flags)
{
	const struct report_params *o = r->params;

	graph_build(r->a, &r->g, r->p,
		    &(struct graph_params){
			    .keep = o->keep,
			    .value = o->value,
			    .mean = o->mean,
			    .call_tree = o->call_tree && (flags & REPORT_TREE),
			    .drop_negative = o->drop_negative,
			    .with_objects = flags & REPORT_OBJECTS,
			    .without_edges = flags & REPORT_NO_EDGES,
			    .only_inline = flags & REPORT_INLINE_EDGES,
			    .visual = flags & REPORT_VISUAL,
			    .sort = flags & REPORT_UNSORTED ? GRAPH_SORT_NONE
				    : o->is_cum_sorted	    ? GRAPH_SORT_CUM
							    : GRAPH_SORT_FLAT,
			    .max_nodes = o->max_nodes,
			    .node_fraction = o->node_fraction,
			    .edge_fraction = o->edge_fraction,
			    .tag_unit = o->unit,
			    .units = o->units,
			    .near = flags & REPORT_NEAR_EDGES ? o->regex : NULL,
			    .only = flags & REPORT_ONLY_NAMED ? o->regex : NULL,
			    .memo = o->memo,
			    .threads = o->threads,
			    .stop = o->stop,
		    });
}

bool report_print(struct buf *out, const struct report *report, struct arena *a,
		  const struct profile *p, const struct report_params *params, struct err *e)
{
	struct buf text = { 0 };
	struct report_run r = {
		.a = a, .p = p, .params = params, .unit = params->unit, .text = &text
	};
	bool ok;

	if (p->ntypes)
		r.sample_unit = profile_str(p, p->types[params->value].unit);
	if (report->flags & REPORT_GRAPH) {
		build_graph(&r, report->flags);
		if (!(report->flags & REPORT_OWN_UNITS))
			choose_unit(&r, report->flags & REPORT_UNDIVIDED);
	}
	if (stop_asked(params->stop))
		ok = err_set(e, ERR_IO, "stopped");
	else
		ok = report->run(out, &r, e);
	buf_release(&text);
	return ok;
}
