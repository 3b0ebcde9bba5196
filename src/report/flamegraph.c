/* flamegraph.c - one interactive SVG: a box per path, as wide as it is heavy, callers below
 * callees.
 *
 * The drawing is complete by itself; the script in assets/ adds zoom, search and details from the
 * data that is written beside it. In a comparison a box is as wide as the larger of old and new, so
 * that what has gone is still to be seen, and its color tells the change.
 */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>

#include "base/escape.h"
#include "base/path.h"
#include "base/unit.h"
#include "report/shorten.h"

enum {
	WIDTH = 1200,
	MARGIN = 10,
	HEAD = 68,
	ROW = 18,
	MIN_LABEL_PIXELS = 24,
	MIN_LETTER_PIXELS = 3
};

/* Boxes that are narrower than a tenth of a pixel are left out unless asked for. */
#define MIN_FRACTION (0.1 / (WIDTH - 2 * MARGIN))

static const unsigned char script[] = {
#include "report/assets/flamegraph.js.inc"
};

static const unsigned char style[] = {
#include "report/assets/flamegraph.css.inc"
};

struct box {
	double x;	 /* from the left, in the unit of widths */
	double next_x;	 /* where its next callee goes */
	uint32_t depth;	 /* 0 at the bottom */
	uint32_t number; /* in the order of the drawing */
};

struct flame {
	struct buf *out;
	struct report_run *r;
	struct path_tree tree;
	struct box *boxes; /* by path */
	uint32_t *order;   /* paths that are drawn: parents first, siblings by name */
	uint32_t norder, depth;
	struct str *names;   /* by frame */
	struct str *labels;  /* by frame: what is written into its boxes */
	uint32_t *rank;	     /* by frame: the order of their names */
	uint32_t *number_of; /* by frame: in the data, from 1; 0: not there */
};

/* ---- order and places */

static int wider_first(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x < y) - (x > y);
}

/* The width that a box must have, by -nodefraction and -nodecount. */
static double smallest_width(const struct flame *f)
{
	const struct report_params *o = f->r->params;
	double cut = f->tree.paths[0].width * o->node_fraction;
	uint32_t n = f->tree.npaths;
	double *widths;

	if (o->max_nodes <= 0 || o->max_nodes >= n)
		return cut;
	widths = arena_many(f->r->a, n, double);
	for (uint32_t i = 0; i < n; i++)
		widths[i] = f->tree.paths[i].width;
	qsort(widths, n, sizeof(*widths), wider_first);
	return fmax(cut, widths[o->max_nodes]); /* the first is that of the whole */
}

struct named {
	struct str name;
	uint32_t frame;
};

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order = str_cmp(x->name, y->name);

	return order ? order : (x->frame > y->frame) - (x->frame < y->frame);
}

static struct str keep(struct flame *f, struct str s)
{
	return (struct str){ arena_copy(f->r->a, s.p, s.n), s.n };
}

static void name_frames(struct flame *f)
{
	struct shortener *shortener = shortener_new();
	uint32_t n = f->tree.frames.nnodes;
	struct named *all = arena_many(f->r->a, n, struct named);

	f->names = arena_many(f->r->a, n, struct str);
	f->labels = arena_many(f->r->a, n, struct str);
	f->rank = arena_many(f->r->a, n, uint32_t);
	f->number_of = arena_many(f->r->a, n, uint32_t);
	for (uint32_t i = 0; i < n; i++) {
		struct node_info info;

		f->r->text->n = 0;
		frames_info(&f->tree.frames, f->r->p, i, &info);
		node_info_text(f->r->text, f->r->p, &info);
		f->names[i] = keep(f, buf_view(f->r->text));
		f->labels[i] = keep(f, shorten(shortener, f->names[i]));
		all[i] = (struct named){ f->names[i], i };
	}
	qsort(all, n, sizeof(*all), by_name);
	for (uint32_t i = 0; i < n; i++)
		f->rank[all[i].frame] = i;
	shortener_free(shortener);
}

static int by_parent_and_name(const void *a, const void *b, void *flame)
{
	const struct flame *f = flame;
	const struct path *x = &f->tree.paths[*(const uint32_t *)a];
	const struct path *y = &f->tree.paths[*(const uint32_t *)b];
	uint32_t rank_x = f->rank[x->frame], rank_y = f->rank[y->frame];

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return (rank_x > rank_y) - (rank_x < rank_y);
}

/* Callers have smaller indices than their callees, so they are placed before them. */
static void place(struct flame *f)
{
	double cut = smallest_width(f);

	f->boxes = arena_many(f->r->a, f->tree.npaths, struct box);
	f->order = arena_many(f->r->a, f->tree.npaths, uint32_t);
	for (uint32_t i = 1; i < f->tree.npaths; i++)
		if (f->tree.paths[i].width > 0 && f->tree.paths[i].width >= cut)
			f->order[f->norder++] = i;
	qsort_r(f->order, f->norder, sizeof(*f->order), by_parent_and_name, f);
	for (uint32_t i = 0; i < f->norder; i++) {
		const struct path *p = &f->tree.paths[f->order[i]];
		struct box *b = &f->boxes[f->order[i]], *caller = &f->boxes[p->parent];

		b->number = i + 1;
		b->depth = caller->depth + 1;
		b->x = b->next_x = caller->next_x;
		caller->next_x += p->width;
		f->depth = b->depth > f->depth ? b->depth : f->depth;
	}
}

/* ---- colors */

static void put_rgb(struct buf *out, double r, double g, double b)
{
	buf_printf(out, "#%02x%02x%02x", (unsigned)lround(r * 255), (unsigned)lround(g * 255),
		   (unsigned)lround(b * 255));
}

/* One channel of a color of the HSL model; `shift` is 0 for red, 8 for green, 4 for blue. */
static double hsl_channel(double shift, double hue, double saturation, double lightness)
{
	double k = fmod(shift + hue / 30, 12);

	return lightness -
	       saturation * fmin(lightness, 1 - lightness) * fmax(-1, fmin(fmin(k - 3, 9 - k), 1));
}

/* A hue for the package, a shade for the name; the same in every picture. */
static void put_name_color(struct buf *out, struct str name)
{
	struct str package = name_package(name);
	uint64_t of_package = hash_bytes(0, package.p, package.n);
	uint64_t of_name = hash_bytes(0, name.p, name.n);
	double hue = (double)(of_package % 360), lightness = 0.68 + (double)(of_name % 13) / 100;

	if (!package.n) /* as most of C: from red to yellow by the name */
		hue = 8 + (double)(of_name / 13 % 42);
	put_rgb(out, hsl_channel(0, hue, 0.62, lightness), hsl_channel(8, hue, 0.62, lightness),
		hsl_channel(4, hue, 0.62, lightness));
}

/* From blue for what has gone, over grey, to red for what is new. */
static void put_change_color(struct buf *out, const struct path *p)
{
	double larger = (double)(p->now > p->before ? p->now : p->before);
	double change = larger > 0 ? ((double)p->now - (double)p->before) / larger : 0;
	double strength = pow(fabs(change), 0.6), fade = 0.91 * (1 - strength);

	if (change < 0)
		put_rgb(out, fade + 0.36 * strength, fade + 0.56 * strength,
			fade + 0.95 * strength);
	else
		put_rgb(out, fade + 0.95 * strength, fade + 0.40 * strength,
			fade + 0.35 * strength);
}

/* ---- drawing */

static double percent_of_all(const struct flame *f, double width)
{
	double all = f->tree.paths[0].width;

	return all > 0 ? 100 * width / all : 100;
}

static void put_number(struct buf *out, double v)
{
	buf_printf(out, "%.4f", v);
	while (out->p[out->n - 1] == '0')
		out->n--;
	if (out->p[out->n - 1] == '.')
		out->n--;
}

/* No more of the name than could be seen. */
static void put_label(struct flame *f, struct str name, double percent)
{
	double pixels = percent * (WIDTH - 2 * MARGIN) / 100;
	size_t most = (size_t)(pixels / MIN_LETTER_PIXELS);

	if (pixels < MIN_LABEL_PIXELS)
		return;
	if (name.n > most) {
		name.n = most;
		while (name.n && (name.p[name.n] & 0xc0) == 0x80) /* not within a character */
			name.n--;
	}
	buf_puts(f->out, "<text x=\"3\" y=\"13\">");
	escape_xml(f->out, name);
	buf_puts(f->out, "</text>");
}

static void open_box(struct flame *f, uint32_t path, const char *class)
{
	const struct box *b = &f->boxes[path];

	buf_puts(f->out, "<svg x=\"");
	put_number(f->out, path ? percent_of_all(f, b->x) : 0);
	buf_printf(f->out, "%%\" y=\"%u\" width=\"", HEAD + (f->depth - b->depth) * ROW);
	put_number(f->out, percent_of_all(f, f->tree.paths[path].width));
	buf_printf(f->out, "%%\" height=\"%d\"%s><rect width=\"100%%\" height=\"100%%\" fill=\"",
		   ROW - 1, class);
}

static void put_box(struct flame *f, uint32_t path)
{
	const struct path *p = &f->tree.paths[path];
	struct str name = f->names[p->frame];

	open_box(f, path, p->inlined == 100 ? " class=\"inlined\"" : "");
	if (f->tree.has_base)
		put_change_color(f->out, p);
	else
		put_name_color(f->out, name);
	buf_puts(f->out, "\"/>");
	put_label(f, f->labels[p->frame], percent_of_all(f, p->width));
	buf_puts(f->out, "</svg>\n");
}

static void put_boxes(struct flame *f, unsigned height)
{
	buf_printf(f->out, "<svg id=\"frames\" x=\"%d\" width=\"%d\" height=\"%u\">\n", MARGIN,
		   WIDTH - 2 * MARGIN, height);
	open_box(f, 0, "");
	buf_puts(f->out, "#d8dee4\"/>");
	put_label(f, STR("all"), 100);
	buf_puts(f->out, "</svg>\n");
	for (uint32_t i = 0; i < f->norder; i++)
		put_box(f, f->order[i]);
	buf_puts(f->out, "</svg>\n");
}

/* ---- the head: what this is a profile of */

static void put_title(struct flame *f)
{
	const struct profile *p = f->r->p;

	if (p->nmappings && p->mappings[0].file)
		escape_xml(f->out, path_base(profile_str(p, p->mappings[0].file)));
	else
		buf_puts(f->out, "Flame graph");
	if (p->ntypes) {
		buf_puts(f->out, f->r->params->mean ? ": mean " : ": ");
		escape_xml(f->out, profile_str(p, p->types[f->r->params->value].type));
	}
	if (f->tree.has_base)
		buf_puts(f->out, ", compared");
}

/* Everything that text reports say at their top, on one line. */
static void put_about(struct flame *f)
{
	struct buf labels = { 0 };
	struct str rest;

	if (!f->r->params->compact_labels)
		report_profile_labels(&labels, f->r);
	for (const char *const *filter = f->r->params->filters; *filter; filter++)
		buf_printf(&labels, "%s%s", labels.n ? "\n" : "", *filter);
	for (rest = buf_view(&labels); rest.n;) {
		escape_xml(f->out, str_cut(&rest, '\n'));
		if (rest.n)
			buf_puts(f->out, " · ");
	}
	buf_release(&labels);
}

static void put_head(struct flame *f)
{
	buf_printf(f->out, "<g id=\"head\"><rect width=\"100%%\" height=\"%d\"/>", HEAD - 2);
	buf_printf(f->out, "<line x2=\"100%%\" y1=\"%d\" y2=\"%d\"/>\n", HEAD - 3, HEAD - 3);
	buf_printf(f->out, "<text class=\"name\" x=\"%d\" y=\"23\">", MARGIN);
	put_title(f);
	buf_printf(f->out, "</text>\n<text class=\"about\" x=\"%d\" y=\"41\">", MARGIN);
	put_about(f);
	buf_puts(f->out, "</text>\n");
	if (f->tree.has_base)
		buf_printf(f->out,
			   "<text class=\"legend\" x=\"%d\" y=\"58\">width: the larger of old and "
			   "new · <tspan fill=\"#3a6fd8\">blue: less</tspan> · <tspan "
			   "fill=\"#cf3a2e\">red: more</tspan></text>\n",
			   WIDTH - MARGIN);
	buf_printf(f->out, "<text id=\"details\" x=\"%d\" y=\"58\"></text></g>\n", MARGIN);
}

/* ---- data for the script */

/* Factors from the values' unit to those that they may be shown in. */
static void put_units(struct flame *f)
{
	const struct unit_family *family = unit_family_of(f->r->sample_unit);
	bool is_free = str_eq(f->r->unit, STR("minimum")) || str_eq(f->r->unit, STR("auto"));
	size_t n = family && is_free ? family->nunits : 1;
	const int64_t many = 1 << 30;

	buf_puts(f->out, ",\"units\":[");
	for (size_t i = 0; i < n; i++) {
		struct str to = family && is_free ? family->units[i].name : f->r->unit, name;
		double factor = unit_scale(many, f->r->sample_unit, to, &name) / (double)many;

		buf_printf(f->out, "%s[%.17g,\"", i ? "," : "", factor);
		escape_json(f->out, name);
		buf_puts(f->out, "\"]");
	}
	buf_puts(f->out, "]");
}

/* Names of what is drawn, and below them what is written into boxes, where that is shorter. */
static void put_names(struct flame *f)
{
	struct buf labels = { 0 };
	uint32_t n = 0;

	buf_puts(f->out, ",\n\"names\":[\"all\"");
	for (uint32_t i = 0; i < f->norder; i++) {
		uint32_t frame = f->tree.paths[f->order[i]].frame;
		struct str name = f->names[frame], label = f->labels[frame];

		if (f->number_of[frame])
			continue;
		f->number_of[frame] = ++n;
		buf_puts(f->out, ",\n\"");
		escape_json(f->out, name);
		buf_char(f->out, '"');
		buf_puts(&labels, ",\"");
		if (!str_eq(label, name))
			escape_json(&labels, label);
		buf_char(&labels, '"');
	}
	buf_puts(f->out, "],\n\"labels\":[\"\"");
	buf_str(f->out, buf_view(&labels));
	buf_puts(f->out, "]");
	buf_release(&labels);
}

static void put_frame(struct flame *f, uint32_t name, uint32_t parent, const struct path *p)
{
	buf_printf(f->out, "%u,%u,%lld", name, parent, (long long)report_divided(f->r, p->now));
	if (f->tree.has_base)
		buf_printf(f->out, ",%lld", (long long)report_divided(f->r, p->before));
}

/* What 100% is. Means of samples do not add up to the mean of all, but to this. */
static int64_t total(const struct flame *f)
{
	const struct path *all = &f->tree.paths[0];

	if (f->r->params->mean)
		return f->tree.has_base ? all->before : all->now;
	return f->r->params->total;
}

static void put_data(struct flame *f)
{
	buf_puts(f->out, "<script id=\"data\" type=\"application/json\"><![CDATA[\n");
	buf_printf(f->out, "{\"diff\":%s,\"total\":%lld", f->tree.has_base ? "true" : "false",
		   (long long)report_divided(f->r, total(f)));
	put_units(f);
	put_names(f);
	buf_puts(f->out, ",\n\"frames\":[");
	put_frame(f, 0, 0, &f->tree.paths[0]);
	for (uint32_t i = 0; i < f->norder; i++) {
		const struct path *p = &f->tree.paths[f->order[i]];

		buf_puts(f->out, ",\n");
		put_frame(f, f->number_of[p->frame], f->boxes[p->parent].number, p);
	}
	buf_puts(f->out, "]}\n]]></script>\n");
}

static void put_document(struct flame *f)
{
	unsigned height = HEAD + (f->depth + 1) * ROW + MARGIN;

	buf_printf(f->out,
		   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
		   "viewBox=\"0 0 %d %u\">\n<title>",
		   WIDTH, height, WIDTH, height);
	put_title(f);
	buf_puts(f->out, "</title>\n<style><![CDATA[\n");
	buf_add(f->out, style, sizeof(style));
	buf_puts(f->out, "]]></style>\n<rect id=\"paper\" width=\"100%\" height=\"100%\"/>\n");
	put_boxes(f, height);
	put_head(f);
	put_data(f);
	buf_puts(f->out, "<script><![CDATA[\n");
	buf_add(f->out, script, sizeof(script));
	buf_puts(f->out, "]]></script>\n</svg>\n");
}

static bool run(struct buf *out, struct report_run *r, struct err *e)
{
	const struct report_params *o = r->params;
	struct flame f = { .out = out, .r = r };

	(void)e;
	path_tree_build(r->a, &f.tree, r->p,
			&(struct graph_params){ .keep = o->keep,
						.value = o->value,
						.mean = o->mean,
						.drop_negative = o->drop_negative,
						.node_fraction = o->node_fraction,
						.threads = o->threads,
						.stop = o->stop });
	if (stop_asked(o->stop))
		return true;
	name_frames(&f);
	place(&f);
	put_document(&f);
	return true;
}

const struct report report_flamegraph = {
	.name = "flamegraph",
	.flags = REPORT_ALL_NODES | REPORT_BINARY | REPORT_PATHS,
	.extension = "svg",
	.node_fraction = MIN_FRACTION,
	.run = run,
};
