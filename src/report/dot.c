/* dot.c - the graph in Graphviz' language: -dot, and what pictures are drawn from. */
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/unit.h"
#include "base/vec.h"
#include "report/shorten.h"

enum { MAX_NODELETS = 4, BASE_FONT = 8, MAX_FONT_GROWTH = 16, MAX_DRAWN_BYTES = 1000 };

struct dot_writer {
	struct buf *out;
	struct report_run *r;
	struct shortener *shortener;
	bool is_drawn;
	double max_flat;
	uint32_t *number; /* by node: from 1 in order of appearance; 0: not shown */
	bool *has_nodelets;
};

static void put_escaped(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\\')
			buf_puts(out, "\\\\");
		else if (s.p[i] == '"')
			buf_puts(out, "\\\"");
		else if (s.p[i] == '\n')
			buf_puts(out, "\\l");
		else
			buf_char(out, s.p[i]);
	}
}

/* Graphviz reads no string of more than 16384 bytes, and nobody a name of as many; in what it draws
 * they are cut, between two characters. */
static struct str drawn_part(const struct dot_writer *w, struct str s)
{
	if (w->is_drawn && s.n > MAX_DRAWN_BYTES) {
		s.n = MAX_DRAWN_BYTES;
		while (s.n && ((unsigned char)s.p[s.n] & 0xc0) == 0x80)
			s.n--;
	}
	return s;
}

/* pprof does not escape these, and so its graphs may end up broken. In ours for Graphviz what would
 * end the string is escaped: a quote that no backslash precedes, and a backslash at the end. */
static void put_raw(struct dot_writer *w, struct str s)
{
	bool is_escaped = false;

	s = drawn_part(w, s);
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '"' && !is_escaped && w->is_drawn)
			buf_char(w->out, '\\');
		buf_char(w->out, s.p[i]);
		is_escaped = s.p[i] == '\\' && !is_escaped;
	}
	if (is_escaped && w->is_drawn)
		buf_char(w->out, '\\');
}

/* ---- legend */

static struct str title(const struct profile *p)
{
	return p->nmappings && p->mappings[0].file ? path_base(profile_str(p, p->mappings[0].file))
						   : STR("");
}

/* The legend's first element. Only a comment has line ends of its own. */
static struct str first_label(const struct profile *p, struct str labels)
{
	bool has_name = p->nmappings && (p->mappings[0].file || p->mappings[0].build_id);

	for (uint32_t i = 0; i < p->ncomments && !has_name; i++)
		if (!str_has_prefix(profile_str(p, p->comments[i]), STR("#")))
			return profile_str(p, p->comments[i]);
	return str_cut(&labels, '\n');
}

static void put_legend(struct dot_writer *w)
{
	struct buf labels = { 0 };
	struct str name = title(w->r->p);

	report_labels(&labels, w->r, true);
	buf_puts(w->out, "subgraph cluster_L { \"");
	put_escaped(w->out, first_label(w->r->p, buf_view(&labels)));
	buf_puts(w->out, "\" [shape=box fontsize=16 label=\"");
	buf_puts(&labels, "\n\nSee https://git.io/JfYMW for how to read the graph\n");
	put_escaped(w->out, buf_view(&labels));
	buf_char(w->out, '"');
	if (name.n) {
		buf_puts(w->out, " tooltip=\"");
		put_raw(w, name);
		buf_char(w->out, '"');
	}
	buf_puts(w->out, "] }\n");
	buf_release(&labels);
}

/* ---- nodes */

/* Red for growth, green for shrinkage, grey for little; `score` is the share of the total. */
static void put_color(struct buf *out, double score, bool is_background)
{
	double saturation = is_background ? 0.1 : 1.0, value = is_background ? 0.93 : 0.7;
	double r, g, b;

	score = score < -1 ? -1 : score > 1 ? 1 : score;
	if (fabs(score) < 0.2)
		saturation *= fabs(score) / 0.2;
	if (score > 0)
		score = pow(score, 0.3);
	else if (score < 0)
		score = -pow(-score, 0.3);
	if (score < 0) {
		g = value;
		r = value * (1 + saturation * score);
	} else {
		r = value;
		g = value * (1 - saturation * score);
	}
	b = value * (1 - saturation);
	buf_printf(out, "\"#%02x%02x%02x\"", (unsigned)(r * 255), (unsigned)(g * 255),
		   (unsigned)(b * 255));
}

static double share(const struct report_run *r, int64_t v)
{
	int64_t total = int_abs(r->params->total);

	return total ? (double)v / (double)total : (v > 0) - (v < 0);
}

/* Breaks a name into lines at its scopes. */
static void put_scopes(struct buf *out, struct str name)
{
	for (size_t i = 0; i < name.n; i++) {
		struct str rest = str_from(name, i);

		if (str_has_prefix(rest, STR("::"))) {
			buf_puts(out, "\\n");
			i++;
		} else if (str_has_prefix(rest, STR("[...]"))) { /* Go's type parameters */
			buf_puts(out, "[…]");
			i += 4;
		} else if (name.p[i] == '.') {
			buf_puts(out, "\\n");
		} else {
			buf_char(out, name.p[i]);
		}
	}
}

static void put_name(struct dot_writer *w, const struct node_info *i)
{
	const struct profile *p = w->r->p;
	struct buf escaped = { 0 };

	if (i->address)
		buf_printf(w->out, "%016llx\\n", (unsigned long long)i->address);
	if (i->name) {
		put_escaped(&escaped,
			    drawn_part(w, shorten(w->shortener, profile_str(p, i->name))));
		put_scopes(w->out, buf_view(&escaped));
		buf_puts(w->out, "\\n");
		buf_release(&escaped);
	}
	if (i->line || i->file) {
		if (i->file)
			put_raw(w, path_base(profile_str(p, i->file)));
		if (i->line)
			buf_printf(w->out, ":%lld", (long long)i->line);
		if (i->line && i->column)
			buf_printf(w->out, ":%lld", (long long)i->column);
		buf_puts(w->out, "\\n");
	} else if (!i->name && i->object) {
		buf_char(w->out, '[');
		put_raw(w, path_base(profile_str(p, i->object)));
		buf_puts(w->out, "]\\n");
	} else if (!i->name) {
		buf_puts(w->out, "<unknown>\\n");
	}
}

static void put_share(struct dot_writer *w, int64_t v)
{
	report_value(w->out, w->r, v);
	buf_puts(w->out, " (");
	report_percent_trimmed(w->out, w->r, v);
	buf_char(w->out, ')');
}

static int font_size(const struct dot_writer *w, int64_t flat)
{
	double v = fabs((double)flat);

	if (w->max_flat == 0 || flat == 0)
		return BASE_FONT;
	return BASE_FONT + (int)ceil(MAX_FONT_GROWTH * sqrt(v / w->max_flat));
}

static void put_node(struct dot_writer *w, const struct node *n, uint32_t number)
{
	int64_t flat = node_flat(n), cum = node_cum(n);

	buf_printf(w->out, "N%u [label=\"", number);
	put_name(w, &n->info);
	if (flat)
		put_share(w, flat);
	else
		buf_char(w->out, '0');
	if (cum != flat) {
		buf_puts(w->out, flat ? "\\nof " : " of ");
		put_share(w, cum);
	}
	buf_printf(w->out, "\" id=\"node%u\" fontsize=%d shape=box tooltip=\"", number,
		   font_size(w, flat));
	put_escaped(w->out, drawn_part(w, n->text));
	buf_puts(w->out, " (");
	report_value(w->out, w->r, cum);
	buf_puts(w->out, ")\" color=");
	put_color(w->out, share(w->r, cum), false);
	buf_puts(w->out, " fillcolor=");
	put_color(w->out, share(w->r, cum), true);
	buf_puts(w->out, "]\n");
}

/* ---- nodelets */

/* `id` is without the N that every nodelet's name starts with; `source` is the whole name. */
static void put_nodelet(struct dot_writer *w, const char *source, const char *id, struct str name,
			int64_t weight, const char *style)
{
	struct buf text = { 0 };
	struct str v;

	report_value(&text, w->r, weight);
	v = buf_view(&text);
	buf_printf(w->out, "N%s [label = \"", id);
	put_raw(w, name);
	buf_printf(w->out, "\" id=\"N%s\" fontsize=8 shape=box3d tooltip=\"", id);
	buf_str(w->out, v);
	buf_printf(w->out, "\"]\n%s -> N%s [label=\" ", source, id);
	buf_str(w->out, v);
	buf_puts(w->out, "\" weight=100 tooltip=\"");
	buf_str(w->out, v);
	buf_puts(w->out, "\" labeltooltip=\"");
	buf_str(w->out, v);
	buf_printf(w->out, "\"%s]\n", style);
	buf_release(&text);
}

static double tag_distance(const struct node_tag *t, const struct node_tag *seed)
{
	struct str unit;

	return fabs(unit_scale(seed->value, seed->unit, t->unit, &unit) - (double)t->value);
}

struct tag_cluster {
	struct node_tag sum;
	struct node_tag min, max, seed;
	size_t n;
};

static void join_cluster(struct tag_cluster *c, const struct node_tag *t)
{
	struct str unit;

	if (int_from_double(unit_scale(t->value, t->unit, c->min.unit, &unit)) < c->min.value)
		c->min = *t;
	if (int_from_double(unit_scale(t->value, t->unit, c->max.unit, &unit)) > c->max.value)
		c->max = *t;
	c->sum.flat = int_add(c->sum.flat, t->flat);
	c->sum.flat_div = int_add(c->sum.flat_div, t->flat_div);
	c->sum.cum = int_add(c->sum.cum, t->cum);
	c->sum.cum_div = int_add(c->sum.cum_div, t->cum_div);
	c->n++;
}

static struct node_tag cluster_tag(struct arena *a, const struct tag_cluster *c)
{
	struct node_tag t = { .flat = divided(c->sum.flat, c->sum.flat_div),
			      .cum = divided(c->sum.cum, c->sum.cum_div) };
	struct buf text = { 0 };

	unit_label(&text, c->min.value, c->min.unit, STR("auto"));
	if (c->n > 1) {
		buf_puts(&text, "..");
		unit_label(&text, c->max.value, c->max.unit, STR("auto"));
	}
	t.name = (struct str){ arena_copy(a, text.p, text.n), text.n };
	buf_release(&text);
	return t;
}

/* Makes at most four of the tags: each but the four heaviest joins the nearest of those. */
static size_t collapse(struct arena *a, struct node_tag *tags, size_t n, bool by_flat,
		       struct node_tag *out)
{
	struct tag_cluster clusters[MAX_NODELETS];

	node_tags_sort(tags, n, by_flat);
	for (size_t i = 0; i < n && i < MAX_NODELETS; i++) {
		clusters[i] = (struct tag_cluster){ tags[i], tags[i], tags[i], tags[i], 1 };
		out[i] = tags[i];
	}
	if (n <= MAX_NODELETS)
		return n;
	for (size_t i = MAX_NODELETS; i < n; i++) {
		size_t nearest = 0;

		for (size_t k = 1; k < MAX_NODELETS; k++)
			if (tag_distance(&tags[i], &clusters[k].seed) <
			    tag_distance(&tags[i], &clusters[nearest].seed))
				nearest = k;
		join_cluster(&clusters[nearest], &tags[i]);
	}
	for (size_t i = 0; i < MAX_NODELETS; i++)
		out[i] = cluster_tag(a, &clusters[i]);
	node_tags_sort(out, MAX_NODELETS, by_flat);
	return MAX_NODELETS;
}

static bool put_numbers(struct dot_writer *w, const struct tag_group *g, bool by_flat,
			const char *source)
{
	struct node_tag tags[MAX_NODELETS];
	size_t n = collapse(w->r->a, g->tags, g->ntags, by_flat, tags);
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		int64_t flat = divided(tags[i].flat, tags[i].flat_div);
		int64_t cum = divided(tags[i].cum, tags[i].cum_div);
		bool is_flat = by_flat || flat == cum;
		char id[80];

		if (!(is_flat ? flat : cum))
			continue;
		snprintf(id, sizeof(id), "%s_%zu", source, i);
		put_nodelet(w, source, id, tags[i].name, is_flat ? flat : cum,
			    is_flat ? "" : " style=\"dotted\"");
		any = true;
	}
	return any;
}

static const struct tag_group *find_group(const struct node *n, struct str label)
{
	for (size_t i = 0; i < n->ngroups; i++)
		if (str_eq(n->groups[i].label, label))
			return &n->groups[i];
	return NULL;
}

/* Inner nodes show what is their own; leaves show all, since what was below may have been cut. */
static bool put_nodelets(struct dot_writer *w, const struct node *n, uint32_t number)
{
	bool by_flat = n->nout > 0, any = false;
	const struct tag_group *group;
	char source[40], id[40];

	node_tags_sort(n->labels, n->nlabels, by_flat);
	for (size_t i = 0; i < n->nlabels && i < MAX_NODELETS; i++) {
		const struct node_tag *t = &n->labels[i];
		int64_t v = by_flat ? divided(t->flat, t->flat_div) : divided(t->cum, t->cum_div);

		if (!v)
			continue;
		any = true;
		snprintf(source, sizeof(source), "N%u", number);
		snprintf(id, sizeof(id), "%u_%zu", number, i);
		put_nodelet(w, source, id, t->name, v, "");
		snprintf(source, sizeof(source), "N%u_%zu", number, i);
		group = find_group(n, t->name);
		if (group)
			put_numbers(w, group, by_flat, source);
	}
	snprintf(source, sizeof(source), "N%u", number);
	group = find_group(n, STR(""));
	if (group)
		any |= put_numbers(w, group, by_flat, source);
	return any;
}

/* ---- edges */

static void put_edge_tooltip(struct dot_writer *w, const struct edge *e)
{
	const struct graph *g = &w->r->g;

	put_escaped(w->out, drawn_part(w, g->nodes[e->from].text));
	buf_puts(w->out, e->is_residual ? " ... " : " -> ");
	put_escaped(w->out, drawn_part(w, g->nodes[e->to].text));
	buf_puts(w->out, " (");
	report_value(w->out, w->r, edge_value(e));
	buf_char(w->out, ')');
}

static void put_edge_weight(struct dot_writer *w, int64_t v)
{
	int64_t total = w->r->params->total, weight, width;

	if (!total)
		return;
	weight = int_abs(int_div(int_mul(v, 100), total));
	width = int_abs(int_div(int_mul(v, 5), total));
	weight = 1 + (weight < 100 ? weight : 100);
	width = 1 + (width < 5 ? width : 5);
	if (weight > 1)
		buf_printf(w->out, " weight=%lld", (long long)weight);
	if (width > 1)
		buf_printf(w->out, " penwidth=%lld", (long long)width);
	buf_puts(w->out, " color=");
	put_color(w->out, share(w->r, v), false);
}

static void put_edge(struct dot_writer *w, const struct edge *e)
{
	buf_printf(w->out, "N%u -> N%u [label=\" ", w->number[e->from], w->number[e->to]);
	report_value(w->out, w->r, edge_value(e));
	buf_puts(w->out, e->is_inline ? "\\n (inline)\"" : "\"");
	put_edge_weight(w, edge_value(e));
	buf_puts(w->out, " tooltip=\"");
	put_edge_tooltip(w, e);
	buf_puts(w->out, "\" labeltooltip=\"");
	put_edge_tooltip(w, e);
	buf_char(w->out, '"');
	if (e->is_residual)
		buf_puts(w->out, " style=\"dotted\"");
	if (w->has_nodelets[e->from])
		buf_puts(w->out, " minlen=2");
	buf_puts(w->out, "]\n");
}

/* All edges out of shown nodes, heaviest first. */
static void put_edges(struct dot_writer *w)
{
	struct graph *g = &w->r->g;
	uint32_t *edges = arena_many(w->r->a, g->nedges, uint32_t), n = 0;

	for (uint32_t i = 0; i < g->norder; i++) {
		const struct node *node = &g->nodes[g->order[i]];

		for (uint32_t k = 0; k < node->nout; k++)
			edges[n++] = node->out[k];
	}
	graph_sort_edges(g, edges, n);
	for (uint32_t i = 0; i < n; i++)
		put_edge(w, &g->edges[edges[i]]);
}

/* Graphviz takes NUL for the end; and what makes text run from right to left (U+200E, U+200F,
 * U+202A to U+202E, U+2066 to U+2069) could make a name look like another. */
static void tame(struct buf *out)
{
	unsigned char *p = (unsigned char *)out->p;

	for (size_t i = 0; i < out->n; i++) {
		if (p[i] < ' ' && p[i] != '\n')
			p[i] = ' ';
		if (p[i] != 0xe2 || i + 2 >= out->n)
			continue;
		if ((p[i + 1] == 0x80 && (p[i + 2] == 0x8e || p[i + 2] == 0x8f ||
					  (p[i + 2] >= 0xaa && p[i + 2] <= 0xae))) ||
		    (p[i + 1] == 0x81 && p[i + 2] >= 0xa6 && p[i + 2] <= 0xa9))
			memcpy(p + i, "\xef\xbf\xbd", 3); /* U+FFFD */
	}
}

static void write_graph(struct buf *out, struct report_run *r, bool is_drawn)
{
	const struct graph *g = &r->g;
	struct dot_writer w = { .out = out, .r = r, .is_drawn = is_drawn };
	struct str name = title(r->p);

	w.shortener = shortener_new();
	w.number = arena_many(r->a, g->nnodes, uint32_t);
	w.has_nodelets = arena_many(r->a, g->nnodes, bool);
	for (uint32_t i = 0; i < g->norder; i++) {
		double flat = fabs((double)node_flat(&g->nodes[g->order[i]]));

		w.number[g->order[i]] = i + 1;
		w.max_flat = flat > w.max_flat ? flat : w.max_flat;
	}
	buf_puts(out, "digraph \"");
	put_raw(&w, name.n ? name : STR("unnamed"));
	buf_puts(out, "\" {\nnode [style=filled fillcolor=\"#f8f8f8\"]\n");
	put_legend(&w);
	for (uint32_t i = 0; i < g->norder; i++) {
		const struct node *n = &g->nodes[g->order[i]];

		put_node(&w, n, i + 1);
		w.has_nodelets[g->order[i]] = put_nodelets(&w, n, i + 1);
	}
	put_edges(&w);
	buf_puts(out, "}\n");
	if (is_drawn)
		tame(out);
	shortener_free(w.shortener);
}

static bool run(struct buf *out, struct report_run *r, struct err *e)
{
	(void)e;
	write_graph(out, r, false);
	return true;
}

static bool run_drawing(struct buf *out, struct report_run *r, struct err *e)
{
	(void)e;
	write_graph(out, r, true);
	return true;
}

const struct report report_dot = {
	.name = "dot",
	.flags = REPORT_GRAPH | REPORT_VISUAL | REPORT_TREE,
	.run = run,
};

const struct report report_drawing = {
	.name = "drawing",
	.flags = REPORT_GRAPH | REPORT_VISUAL | REPORT_TREE,
	.run = run_drawing,
};
