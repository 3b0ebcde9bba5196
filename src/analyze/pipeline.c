/* pipeline.c - from a profile to a report, in pprof's order: tag frames, filters, total,
 * aggregation. */
#include "analyze/analyze.h"

#include <stdlib.h>
#include <string.h>

#include "symbol/symbol.h"

/* A report in the making. */
struct pipeline {
	struct session *s;
	const struct analyze_request *q;
	struct analyze_options o; /* as the report overrides them */
	struct arena *a;
	struct profile p;
	struct label_units units;
	struct buf *warnings;
	/* compiled */
	struct regex *focus, *ignore, *hide, *show, *show_from, *prune_from, *tagshow, *taghide;
	struct tag_match *tagfocus, *tagignore;
	struct regex *argument;
	const char *filters[12];
	struct report_params params;
};

static void override_options(struct pipeline *x)
{
	unsigned flags = x->q->report->flags;
	struct analyze_options *o = &x->o;

	if (flags & REPORT_ADDRESSES)
		o->granularity = GRANULARITY_ADDRESSES;
	if (flags & REPORT_LINES)
		o->granularity = GRANULARITY_LINES;
	if (flags & REPORT_NOINLINES)
		o->noinlines = true;
	if ((flags & REPORT_FILES) && (!o->granularity || o->granularity == GRANULARITY_FUNCTIONS))
		o->granularity = GRANULARITY_FILEFUNCTIONS;
	if (x->q->report->node_fraction > 0 && o->nodefraction == analyze_defaults.nodefraction)
		o->nodefraction = x->q->report->node_fraction;
	if (o->nodecount == -1)
		o->nodecount = flags & REPORT_ALL_NODES ? 0 : 80;
	if ((flags & REPORT_UNTRIMMED) || !o->trim) {
		o->nodecount = 0;
		o->nodefraction = o->edgefraction = 0;
	}
}

static void add_tag_frames(struct pipeline *x)
{
	struct tag_frames t = { .root_keys = x->o.tagroot,
				.leaf_keys = x->o.tagleaf,
				.unit = str_of(x->o.unit) };

	profile_add_tag_frames(x->a, &x->p, &t);
	if (*x->o.tagroot && !t.has_root)
		buf_puts(x->warnings, "TagRoot expression matched no samples\n");
	if (*x->o.tagleaf && !t.has_leaf)
		buf_puts(x->warnings, "TagLeaf expression matched no samples\n");
}

/* ---- filters */

static bool compile(const char *name, const char *value, struct regex **re, struct err *e)
{
	if (!*value)
		return true;
	*re = regex_compile(str_of(value), e);
	return *re || err_wrap(e, "parsing %s regexp", name);
}

static bool compile_tag(struct pipeline *x, const char *name, const char *value,
			struct tag_match **m, struct err *e)
{
	if (!*value)
		return true;
	*m = tag_match_compile(name, value, x->warnings, e);
	return *m;
}

static bool compile_filters(struct pipeline *x, struct err *e)
{
	const struct analyze_options *o = &x->o;

	return compile("focus", o->focus, &x->focus, e) &&
	       compile("ignore", o->ignore, &x->ignore, e) &&
	       compile("hide", o->hide, &x->hide, e) && compile("show", o->show, &x->show, e) &&
	       compile("show_from", o->show_from, &x->show_from, e) &&
	       compile_tag(x, "tagfocus", o->tagfocus, &x->tagfocus, e) &&
	       compile_tag(x, "tagignore", o->tagignore, &x->tagignore, e) &&
	       compile("prune_from", o->prune_from, &x->prune_from, e) &&
	       compile("tagshow", o->tagshow, &x->tagshow, e) &&
	       compile("taghide", o->taghide, &x->taghide, e);
}

static bool apply_filters(struct pipeline *x, struct err *e)
{
	struct profile_filter f;

	if (!compile_filters(x, e))
		return false;
	f = (struct profile_filter){ x->focus,	   x->ignore,	  x->hide,     x->show,
				     x->show_from, x->prune_from, x->tagfocus, x->tagignore,
				     x->tagshow,   x->taghide,	  &x->units };
	profile_filter(x->a, &x->p, &f, x->warnings);
	return true;
}

static void free_filters(struct pipeline *x)
{
	regex_free(x->focus);
	regex_free(x->ignore);
	regex_free(x->hide);
	regex_free(x->show);
	regex_free(x->show_from);
	regex_free(x->prune_from);
	regex_free(x->tagshow);
	regex_free(x->taghide);
	regex_free(x->argument);
	tag_match_free(x->tagfocus);
	tag_match_free(x->tagignore);
}

/* The filters that a report's header lists. */
static void list_filters(struct pipeline *x)
{
	const struct analyze_options *o = &x->o;
	const struct {
		const char *name, *value;
	} all[] = { { "focus", o->focus },	   { "ignore", o->ignore },
		    { "hide", o->hide },	   { "show", o->show },
		    { "show_from", o->show_from }, { "tagfocus", o->tagfocus },
		    { "tagignore", o->tagignore }, { "tagshow", o->tagshow },
		    { "taghide", o->taghide } };
	size_t n = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct buf text = { 0 };

		if (!*all[i].value)
			continue;
		buf_printf(&text, "%s=%s", all[i].name, all[i].value);
		x->filters[n++] = str_dup(x->a, buf_view(&text));
		buf_release(&text);
	}
}

/* ---- totals */

/* What 100% is: of all samples, or, when there are any, of the base of a -diff_base. */
static int64_t total(const struct pipeline *x, uint32_t value)
{
	const struct profile *p = &x->p;
	bool *is_base = arena_many(x->a, p->nlabel_sets, bool);
	int64_t sum = 0, div = 0, base_sum = 0, base_div = 0;

	for (uint32_t s = 0; s < p->nlabel_sets; s++)
		is_base[s] = label_set_is_base(p, s);
	for (uint32_t i = 0; i < p->nsamples; i++) {
		const int64_t *v = sample_values(p, &p->samples[i]);
		int64_t weight = int_abs(v[value]), d = x->o.mean ? v[0] : 0;

		sum = int_add(sum, weight);
		div = int_add(div, d);
		if (is_base[p->samples[i].labels]) {
			base_sum = int_add(base_sum, weight);
			base_div = int_add(base_div, d);
		}
	}
	return base_sum > 0 ? divided(base_sum, base_div) : divided(sum, div);
}

static struct granularity granularity(const struct analyze_options *o)
{
	struct granularity g = { .inlines = !o->noinlines, .column = o->showcolumns };

	switch (o->granularity) {
	case GRANULARITY_FILES:
		g.filename = true;
		break;
	case GRANULARITY_FILEFUNCTIONS:
		g.function = g.filename = true;
		break;
	case GRANULARITY_LINES:
		g.function = g.filename = g.line = true;
		break;
	case GRANULARITY_ADDRESSES:
		g.function = g.filename = g.line = g.address = true;
		g.column |= g.inlines; /* as pprof has it */
		break;
	default:
		g.function = true;
	}
	return g;
}

static bool set_params(struct pipeline *x, struct err *e)
{
	const struct analyze_options *o = &x->o;
	uint32_t value;

	if (!profile_sample_index(&x->p, o->sample_index, &value, e))
		return false;
	if (o->divide_by == 0)
		return err_set(e, ERR_USAGE, "zero divisor specified");
	list_filters(x);
	x->params = (struct report_params){ .keep = granularity(o),
					    .value = value,
					    .mean = o->mean,
					    .compact_labels = o->compact_labels,
					    .call_tree = o->call_tree,
					    .drop_negative = o->drop_negative,
					    .is_cum_sorted = o->sort == SORT_CUM,
					    .max_nodes = o->nodecount,
					    .node_fraction = o->nodefraction,
					    .edge_fraction = o->edgefraction,
					    .divide_by = o->divide_by,
					    .unit = str_of(o->unit),
					    .filters = x->filters,
					    .argument = x->q->argument,
					    .trim_path = o->trim_path,
					    .source_path = o->source_path,
					    .intel_syntax = o->intel_syntax,
					    .units = &x->units,
					    .threads = x->s->threads,
					    .into = x->q->into };
	if (*x->q->argument) {
		x->argument = regex_compile(str_of(x->q->argument), e);
		if (!x->argument)
			return err_wrap(e, "parsing argument regexp %s", x->q->argument);
		x->params.regex = x->argument;
	}
	x->params.total = total(x, value);
	return true;
}

/* Graphs show source files without the build machine's part of their names. */
static void trim_paths(struct pipeline *x)
{
	struct profile *p = &x->p;
	const struct function *shared = p->functions;

	for (uint32_t i = 0; i < p->nfunctions; i++) {
		struct str name = profile_str(p, shared[i].filename);
		struct str trimmed = source_trim(name, x->o.trim_path, x->o.source_path);

		if (trimmed.n == name.n)
			continue;
		if (p->functions == shared)
			p->functions = arena_copy(x->a, shared, p->nfunctions * sizeof(*shared));
		p->functions[i].filename = strings_add(p->strings, trimmed);
	}
}

bool analyze_report(struct session *s, const struct analyze_request *q, struct buf *out,
		    struct buf *warnings, struct err *e)
{
	struct arena scratch = { 0 };
	struct pipeline x = { .s = s,
			      .q = q,
			      .o = *q->options,
			      .a = &scratch,
			      .p = s->profile,
			      .warnings = warnings };
	bool relative = q->options->relative_percentages, ok;

	profile_label_units(x.a, &x.p, &x.units, warnings);
	override_options(&x);
	add_tag_frames(&x);
	ok = (!relative || apply_filters(&x, e)) && set_params(&x, e) &&
	     (relative || apply_filters(&x, e));
	if (ok) {
		if (q->report->flags & REPORT_PROFILE)
			profile_aggregate(x.a, &x.p, &x.params.keep);
		if ((q->report->flags & (REPORT_GRAPH | REPORT_PATHS)) && x.params.keep.filename)
			trim_paths(&x);
		if (q->report->flags & REPORT_GRAPH)
			profile_remove_base_label(x.a, &x.p);
		ok = report_print(out, q->report, x.a, &x.p, &x.params, e);
	}
	free_filters(&x);
	arena_release(&scratch);
	return ok;
}

static bool greet(struct buf *out, struct report_run *r, struct err *e)
{
	(void)e;
	report_profile_labels(out, r);
	buf_char(out, '\n');
	if (!r->params->total && r->p->ntypes > 1)
		buf_puts(out, "No samples were found with the default sample value type.\n"
			      "Try \"sample_index\" command to analyze different sample values.\n");
	buf_puts(out,
		 "Entering interactive mode (type \"help\" for commands, \"o\" for options)\n");
	return true;
}

bool analyze_greet(struct session *s, const struct analyze_options *options, struct buf *out,
		   struct err *e)
{
	static const struct report greeting = { .name = "greeting", .run = greet };
	struct analyze_request q = { .report = &greeting, .argument = "", .options = options };
	struct buf ignored = { 0 };
	bool ok = analyze_report(s, &q, out, &ignored, e);

	buf_release(&ignored);
	return ok;
}
