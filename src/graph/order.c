/* order.c - the order of nodes and edges. Ties go by name, so output never depends on hashing. */
#include "graph/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"

enum { PARALLEL_EDGES = 10000, PIECES = 64 };

/* ---- edges */

static int compare_edges(const void *x, const void *y, void *ctx)
{
	const struct graph *g = ctx;
	const struct edge *a = &g->edges[*(const uint32_t *)x],
			  *b = &g->edges[*(const uint32_t *)y];
	int c;

	if (a->weight != b->weight) {
		int64_t p = int_abs(a->weight), q = int_abs(b->weight);

		if (p != q)
			return p > q ? -1 : 1;
	}
	c = str_cmp(g->nodes[a->from].text, g->nodes[b->from].text);
	if (!c)
		c = str_cmp(g->nodes[a->to].text, g->nodes[b->to].text);
	if (!c) /* nodes that print alike */
		c = a->from != b->from ? (a->from < b->from ? -1 : 1)
				       : (a->to > b->to) - (a->to < b->to);
	return c;
}

void graph_sort_edges(struct graph *g, uint32_t *edges, size_t n)
{
	if (n > 1)
		qsort_r(edges, n, sizeof(*edges), compare_edges, g);
}

void graph_link(struct arena *a, struct graph *g)
{
	uint32_t *ends = arena_many(a, (size_t)g->nedges * 2, uint32_t);

	for (uint32_t i = 0; i < g->nnodes; i++)
		g->nodes[i].nin = g->nodes[i].nout = 0;
	for (uint32_t i = 0; i < g->nedges; i++) {
		g->nodes[g->edges[i].from].nout++;
		g->nodes[g->edges[i].to].nin++;
	}
	for (uint32_t i = 0; i < g->nnodes; i++) {
		struct node *n = &g->nodes[i];

		n->in = ends;
		n->out = ends + n->nin;
		ends = n->out + n->nout;
		n->nin = n->nout = 0;
	}
	for (uint32_t i = 0; i < g->nedges; i++) {
		struct node *from = &g->nodes[g->edges[i].from], *to = &g->nodes[g->edges[i].to];

		from->out[from->nout++] = i;
		to->in[to->nin++] = i;
	}
}

struct link_sort {
	struct graph *g;
	const atomic_bool *stop;
};

static void sort_links(void *ctx, size_t piece)
{
	const struct link_sort *x = ctx;
	struct graph *g = x->g;
	uint32_t end = (uint32_t)(g->nnodes * (piece + 1) / PIECES);

	for (uint32_t i = (uint32_t)(g->nnodes * piece / PIECES); i < end && !stop_asked(x->stop);
	     i++) {
		graph_sort_edges(g, g->nodes[i].in, g->nodes[i].nin);
		graph_sort_edges(g, g->nodes[i].out, g->nodes[i].nout);
	}
}

void graph_sort_links(struct graph *g, const struct graph_params *params)
{
	struct link_sort x = { g, params->stop };

	parallel_for(g->nedges > PARALLEL_EDGES ? params->threads : 1, PIECES, sort_links, &x);
}

/* ---- nodes */

struct sorter {
	const struct graph *g;
	const struct profile *p;
	int64_t *first, *second; /* weights by node, larger first */
};

static void raw_text(struct buf *out, const struct profile *p, const struct node_info *i)
{
	buf_char(out, '{');
	buf_str(out, profile_str(p, i->name));
	buf_printf(out, "  %llu ", (unsigned long long)i->address);
	buf_str(out, profile_str(p, i->file));
	buf_printf(out, " %lld %lld %lld ", (long long)i->start_line, (long long)i->line,
		   (long long)i->column);
	buf_str(out, profile_str(p, i->object));
	buf_char(out, '}');
}

static int compare_raw(const struct profile *p, const struct node_info *a,
		       const struct node_info *b)
{
	struct buf x = { 0 }, y = { 0 };
	int c;

	raw_text(&x, p, a);
	raw_text(&y, p, b);
	c = str_cmp(buf_view(&x), buf_view(&y));
	buf_release(&x);
	buf_release(&y);
	return c;
}

static int compare_text(const struct node *a, const struct node *b)
{
	if (memcmp(&a->info, &b->info, sizeof(a->info)) == 0)
		return 0;
	if (a->info.address && b->info.address && a->info.address != b->info.address)
		return a->info.address < b->info.address ? -1 : 1;
	return str_cmp(a->text, b->text);
}

static int compare_nodes(const void *x, const void *y, void *ctx)
{
	const struct sorter *s = ctx;
	uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
	const struct node *a = &s->g->nodes[i], *b = &s->g->nodes[k];
	int c;

	if (s->first[i] != s->first[k])
		return s->first[i] > s->first[k] ? -1 : 1;
	c = compare_text(a, b);
	if (!c && s->second[i] != s->second[k])
		return s->second[i] > s->second[k] ? -1 : 1;
	if (!c)
		c = compare_raw(s->p, &a->info, &b->info);
	return c ? c : (i > k) - (i < k);
}

/* Entropy of the edges' weights, with the node's own weight as one more. */
static double edge_entropy(const struct graph *g, const uint32_t *edges, uint32_t n, int64_t self)
{
	int64_t total = self;
	double entropy = 0;

	for (uint32_t i = 0; i < n; i++)
		if (g->edges[edges[i]].weight > 0)
			total = int_add(total, g->edges[edges[i]].weight);
	if (total == 0)
		return 0;
	/* Weights of 0 or against the total give NaN, as in the reference, and so a score of its
	 * own. */
	for (uint32_t i = 0; i < n; i++) {
		double f = (double)int_abs(g->edges[edges[i]].weight) / (double)total;

		entropy += -f * log2(f);
	}
	if (self > 0) {
		double f = (double)self / (double)total;

		entropy += -f * log2(f);
	}
	return entropy;
}

static int64_t entropy_score(const struct graph *g, const struct node *n)
{
	double score = n->nin ? edge_entropy(g, n->in, n->nin, 0) : 1;

	score += n->nout ? edge_entropy(g, n->out, n->nout, n->flat) : 1;
	return int_abs(int_add(int_from_double(score * (double)n->cum), n->flat));
}

void graph_sort(struct graph *g, const struct profile *p, const struct graph_params *params)
{
	struct arena scratch = { 0 };
	struct sorter s = { g, p, arena_many(&scratch, g->nnodes, int64_t),
			    arena_many(&scratch, g->nnodes, int64_t) };

	for (uint32_t i = 0; i < g->nnodes; i++) {
		const struct node *n = &g->nodes[i];
		bool by_cum = !params->visual && params->sort == GRAPH_SORT_CUM;

		s.first[i] =
			params->visual ? entropy_score(g, n) : int_abs(by_cum ? n->cum : n->flat);
		s.second[i] = int_abs(by_cum || params->visual ? n->flat : n->cum);
	}
	qsort_r(g->order, g->norder, sizeof(*g->order), compare_nodes, &s);
	arena_release(&scratch);
}
