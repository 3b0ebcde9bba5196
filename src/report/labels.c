#include "report/report.h"

#include <time.h>

#include "base/path.h"
#include "base/unit.h"

enum { MAX_FILTER = 80 };

static void label_line(struct buf *out, size_t start, const char *name, struct str value)
{
	if (out->n > start)
		buf_char(out, '\n');
	buf_puts(out, name);
	buf_str(out, value);
}

static void label_time(struct buf *out, size_t start, int64_t nanos)
{
	time_t seconds = (time_t)(nanos / 1000000000 - (nanos % 1000000000 < 0));
	struct tm tm;
	char text[100];
	size_t n;

	if (!localtime_r(&seconds, &tm))
		return;
	n = strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &tm);
	label_line(out, start, "Time: ", (struct str){ text, n });
}

static void label_duration(struct buf *out, size_t start, const struct report_run *r)
{
	int64_t duration = r->p->duration_nanos, total = r->params->total;
	struct str unit;
	double nanos = unit_scale(total, r->sample_unit, STR("nanoseconds"), &unit);

	label_line(out, start, "Duration: ", STR(""));
	unit_label(out, duration, STR("nanoseconds"), STR("auto"));
	buf_puts(out, ", Total samples = ");
	report_value(out, r, total);
	buf_char(out, ' ');
	if (str_eq(unit, STR("ns")) && nanos != 0) {
		buf_char(out, '(');
		percent_text(out, int_from_double(nanos), duration);
		buf_char(out, ')');
	}
}

void report_profile_labels(struct buf *out, const struct report_run *r)
{
	const struct profile *p = r->p;
	size_t start = out->n;

	if (p->nmappings && p->mappings[0].file)
		label_line(out, start, "File: ", path_base(profile_str(p, p->mappings[0].file)));
	if (p->nmappings && p->mappings[0].build_id)
		label_line(out, start, "Build ID: ", profile_str(p, p->mappings[0].build_id));
	for (uint32_t i = 0; i < p->ncomments; i++) {
		struct str comment = profile_str(p, p->comments[i]);

		if (!str_has_prefix(comment, STR("#")))
			label_line(out, start, "", comment);
	}
	if (p->ntypes) {
		struct str type = profile_str(p, p->types[r->params->value].type);

		if (type.n || r->params->mean)
			label_line(out, start, r->params->mean ? "Type: mean_" : "Type: ", type);
	}
	if (p->doc_url)
		label_line(out, start, "Doc: ", profile_str(p, p->doc_url));
	if (p->time_nanos)
		label_time(out, start, p->time_nanos);
	if (p->duration_nanos)
		label_duration(out, start, r);
}

static void label_filters(struct buf *out, size_t start, const char *const *filters)
{
	if (*filters)
		label_line(out, start, "Active filters:", STR(""));
	for (; *filters; filters++) {
		struct str f = str_of(*filters);
		bool is_cut = f.n > MAX_FILTER;

		if (is_cut)
			f.n = MAX_FILTER;
		label_line(out, start, "   ", f);
		if (is_cut)
			buf_puts(out, "…");
	}
}

static void label_dropped(struct buf *out, size_t start, const struct report_run *r, uint32_t n,
			  const char *what, double fraction, const char *measure)
{
	int64_t cut = int_abs(int_from_double((double)r->params->total * fraction));

	if (!n)
		return;
	label_line(out, start, "Dropped ", STR(""));
	buf_uint(out, n);
	buf_printf(out, " %s%s (%s <= ", what, n > 1 ? "s" : "", measure);
	report_value(out, r, cut);
	buf_char(out, ')');
}

void report_labels(struct buf *out, const struct report_run *r, bool is_full)
{
	const struct graph *g = &r->g;
	size_t start = out->n;
	int64_t flat = 0;

	if (is_full)
		report_profile_labels(out, r);
	label_filters(out, start, r->params->filters);
	for (uint32_t i = 0; i < g->norder; i++)
		flat = int_add(flat, node_flat(&g->nodes[g->order[i]]));
	label_line(out, start, "Showing nodes accounting for ", STR(""));
	report_value(out, r, flat);
	buf_puts(out, ", ");
	report_percent_trimmed(out, r, flat);
	buf_puts(out, " of ");
	report_value(out, r, r->params->total);
	buf_puts(out, " total");
	if (!r->params->total)
		return;
	label_dropped(out, start, r, g->dropped_nodes, "node", r->params->node_fraction, "cum");
	if (g->is_visual)
		label_dropped(out, start, r, g->dropped_edges, "edge", r->params->edge_fraction,
			      "freq");
	if (g->norder > 0 && g->norder < g->original_count) {
		label_line(out, start, "Showing top ", STR(""));
		buf_uint(out, g->norder);
		buf_puts(out, " nodes out of ");
		buf_uint(out, g->original_count);
	}
}
