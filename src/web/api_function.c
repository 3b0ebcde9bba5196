/* api_function.c - one function: what calls it, what it calls, which labels its samples have. */
#include "web/names.h"

#include "base/unit.h"
#include "web/values.h"

enum { MOST_NEIGHBOURS = 5, MOST_VALUES = 5, MOST_KEYS = 20 };

struct inspected {
	struct api_call *q;
	uint32_t id;
	struct str text;
	bool is_found;
	struct buf *out;
};

/* ---- callers and callees */

static void put_neighbours(struct inspected *x, const struct report_run *r, const char *name,
			   const uint32_t *edges, uint32_t n, bool callers)
{
	const struct graph *g = &r->g;

	buf_printf(x->out, ",\"%s\":[", name);
	for (uint32_t i = 0; i < n && i < MOST_NEIGHBOURS; i++) {
		const struct edge *e = &g->edges[edges[i]];
		const struct node_info *info = &g->nodes[callers ? e->from : e->to].info;

		buf_printf(x->out, "%s[%u,%lld]", i ? "," : "",
			   name_number(x->q->site, x->q->profile, r, info),
			   (long long)edge_value(e));
	}
	buf_char(x->out, ']');
}

static void put_node(struct inspected *x, const struct report_run *r, const struct node *n)
{
	struct buf others = { 0 };

	buf_puts(x->out, ",\"function\":");
	name_put(x->out, x->q->profile, r, x->id, &n->info);
	buf_printf(x->out, ",\"flat\":%lld,\"cum\":%lld", (long long)node_flat(n),
		   (long long)node_cum(n));
	put_neighbours(x, r, "callers", n->in, n->nin, true);
	put_neighbours(x, r, "callees", n->out, n->nout, false);
	/* Names of the neighbours, as the page may not have met them. */
	for (uint32_t i = 0; i < n->nin + n->nout; i++) {
		bool is_in = i < n->nin;
		uint32_t at = is_in ? i : i - n->nin;
		const struct edge *e = &r->g.edges[is_in ? n->in[at] : n->out[at]];
		const struct node_info *info = &r->g.nodes[is_in ? e->from : e->to].info;

		if (at >= MOST_NEIGHBOURS)
			continue;
		buf_puts(&others, others.n ? "," : "");
		name_put(&others, x->q->profile, r, name_id(x->q->site, x->q->profile, r, info),
			 info);
	}
	buf_puts(x->out, ",\"functions\":[");
	buf_str(x->out, buf_view(&others));
	buf_char(x->out, ']');
	buf_release(&others);
}

static bool run_neighbours(struct buf *out, struct report_run *r, struct err *e)
{
	struct inspected *x = r->params->into;

	(void)out, (void)e;
	buf_char(x->out, '{');
	api_put_type(x->out, r);
	buf_printf(x->out, ",\"total\":%lld", (long long)r->params->total);
	for (uint32_t i = 0; i < r->g.norder && !x->is_found; i++) {
		const struct node *n = &r->g.nodes[r->g.order[i]];

		if (!str_eq(n->text, x->text))
			continue;
		x->is_found = true;
		put_node(x, r, n);
	}
	return true;
}

static const struct report report_neighbours = {
	.name = "function",
	.flags = REPORT_GRAPH | REPORT_ALL_NODES | REPORT_UNTRIMMED | REPORT_NEAR_EDGES,
	.run = run_neighbours,
};

/* ---- labels of its samples */

/* Weights of label sets, of samples that go through the function; their number is returned. */
static uint32_t weigh_sets(struct inspected *x, struct report_run *r, int64_t *weights,
			   uint32_t *counts)
{
	const struct profile *p = r->p;
	struct frames f;
	uint32_t *ids, n = 0;
	bool *has = arena_many(r->a, p->nlocations, bool);

	name_graph_frames(r, &f);
	ids = name_frames(x->q->site, x->q->profile, r, &f);
	for (uint32_t loc = 0; loc < p->nlocations; loc++)
		for (uint32_t i = f.first[loc]; i < f.first[loc + 1]; i++)
			has[loc] |= ids[f.lists[i] & FRAME_NODE] == x->id;
	for (uint32_t i = 0; i < p->nsamples; i++) {
		const struct sample *s = &p->samples[i];
		bool any = false;

		if (stop_asked_at(r->params->stop, i))
			break;
		for (uint32_t k = 0; k < s->nstack && !any; k++)
			any = has[p->stacks[s->stack + k]];
		if (!any)
			continue;
		weights[s->labels] = int_add(weights[s->labels], report_sample_value(r, s));
		counts[s->labels]++;
		n++;
	}
	return n;
}

static void put_values(struct inspected *x, struct report_run *r, const struct value_table *t)
{
	size_t end, nkeys = 0;

	buf_puts(x->out, ",\"labels\":[");
	for (size_t i = 0; i < t->rows.n && nkeys < MOST_KEYS; i = end, nkeys++) {
		buf_puts(x->out, i ? ",{\"key\":" : "{\"key\":");
		json_put(x->out, profile_str(r->p, t->rows.at[i].key));
		buf_puts(x->out, ",\"values\":[");
		for (end = i; end < t->rows.n && values_same_key(&t->rows.at[end], &t->rows.at[i]);
		     end++) {
			const struct value_row *row = &t->rows.at[end];

			if (end - i >= MOST_VALUES)
				continue;
			buf_puts(x->out, end > i ? ",[" : "[");
			r->text->n = 0;
			if (row->is_number)
				unit_label(r->text, row->number,
					   label_unit(r->p, r->params->units, row->key),
					   STR("auto"));
			else
				buf_str(r->text, profile_str(r->p, row->text));
			json_put(x->out, buf_view(r->text));
			buf_printf(x->out, ",%lld]", (long long)row->weight);
		}
		buf_puts(x->out, "]}");
	}
	buf_char(x->out, ']');
}

static bool run_labels(struct buf *out, struct report_run *r, struct err *e)
{
	struct inspected *x = r->params->into;
	int64_t *weights = arena_many(r->a, r->p->nlabel_sets, int64_t);
	uint32_t *counts = arena_many(r->a, r->p->nlabel_sets, uint32_t);
	uint32_t nsamples = weigh_sets(x, r, weights, counts);
	struct value_table t;

	(void)out, (void)e;
	values_collect(&t, r->p, weights, counts);
	put_values(x, r, &t);
	buf_printf(x->out, ",\"samples\":%u", nsamples);
	values_release(&t);
	return true;
}

static const struct report report_function_labels = {
	.name = "function",
	.flags = REPORT_ALL_NODES | REPORT_UNTRIMMED | REPORT_PATHS | REPORT_NO_STACKS,
	.run = run_labels,
};

bool api_function(struct api_call *q, struct buf *out, struct err *e)
{
	struct str what = api_param(q, "id");
	struct inspected x = { .q = q,
			       .id = functions_find(&q->site->functions, what),
			       .out = out };
	struct session *s = loaded_session(q->profile);

	x.text = functions_text(&q->site->functions, q->a, what);
	if (x.id && !api_report(q, s, &report_neighbours, api_quoted(q->a, x.text), &x, out, e))
		return false;
	if (!x.is_found) {
		q->status = 404;
		out->n = 0;
		return err_set(e, ERR_NOTFOUND, "there is no function %.*s in what is shown",
			       STR_ARG(x.text));
	}
	if (!api_report(q, s, &report_function_labels, "", &x, out, e))
		return false;
	q->warnings.n = 0; /* twice the same; the page has them with its tree */
	buf_puts(out, "}\n");
	return true;
}
