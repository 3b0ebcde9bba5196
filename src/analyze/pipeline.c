/* pipeline.c - from a profile to a report, in pprof's order: tag frames, filters, total,
 * aggregation. */
#include "analyze/analyze.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/symbolize.h"
#include "symbol/symbol.h"

/* A report in the making. */
struct pipeline {
	struct session *s;
	const struct analyze_request *q;
	struct analyze_options o; /* as the report overrides them */
	struct arena *a;
	struct cache *cache;
	struct slice *all;   /* before filters */
	struct slice *slice; /* after them */
	struct profile p;    /* the report's own */
	struct buf *warnings;
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

/* False once nobody wants the report any more. */
static bool goes_on(const struct pipeline *x, struct err *e)
{
	return !stop_asked(x->q->stop) || err_set(e, ERR_IO, "stopped");
}

/* ---- before filters */

static void add_tag_frames(const struct pipeline *x, struct slice *slice)
{
	const struct analyze_options *o = &x->o;
	struct tag_frames t = { .root_keys = o->tagroot,
				.leaf_keys = o->tagleaf,
				.unit = str_of(o->unit),
				.stop = x->q->stop };

	profile_add_tag_frames(&slice->arena, &slice->p, &t);
	if (*o->tagroot && !t.has_root)
		buf_puts(&slice->warnings, "TagRoot expression matched no samples\n");
	if (*o->tagleaf && !t.has_leaf)
		buf_puts(&slice->warnings, "TagLeaf expression matched no samples\n");
}

/* Values of options, so that different ones make different keys. */
static const char *make_key(struct arena *a, const char *const *values, size_t n)
{
	struct buf key = { 0 };
	const char *text;

	for (size_t i = 0; i < n; i++)
		buf_printf(&key, "%zu:%s", strlen(values[i]), values[i]);
	text = str_dup(a, buf_view(&key));
	buf_release(&key);
	return text;
}

static void use_slice(struct pipeline *x, struct slice *slice)
{
	buf_str(x->warnings, buf_view(&slice->warnings));
	x->slice = slice;
	x->p = slice->p;
}

static const char *time_key(struct arena *a, struct time_range time)
{
	char text[64];

	snprintf(text, sizeof(text), "%" PRId64 " %" PRId64, time.from, time.to);
	return str_dup(a, str_of(text));
}

static bool open_unfiltered(struct pipeline *x, struct err *e)
{
	const struct analyze_options *o = &x->o;
	bool has_tags = *o->tagroot || *o->tagleaf;
	struct time_range time = x->s->profile.times ? x->q->time : (struct time_range){ 0 };
	/* Graphs that are kept with the slice have file names as the two paths leave them. */
	const char *values[] = { o->tagroot,   o->tagleaf,     has_tags ? o->unit : "",
				 o->trim_path, o->source_path, time_key(x->a, time) };
	const char *key = make_key(x->a, values, sizeof(values) / sizeof(*values));
	struct slice *slice = cache_find(x->cache, key);

	if (!slice) {
		slice = slice_new(key);
		slice->p = x->s->profile;
		if (time.to)
			profile_take_times(&slice->arena, &slice->p, time.from, time.to,
					   x->q->stop);
		profile_label_units(&slice->arena, &slice->p, &slice->units, &slice->warnings);
		add_tag_frames(x, slice);
		if (!goes_on(x, e)) {
			slice_free(slice);
			return false;
		}
		slice->graphs = graph_memo_new(NULL, NULL, MEMO_OTHER);
		cache_add(x->cache, slice);
	}
	x->all = slice;
	use_slice(x, slice);
	return true;
}

/* ---- filters */

static bool compile(const char *name, const char *value, struct regex **re, struct err *e)
{
	if (!*value)
		return true;
	*re = regex_compile(str_of(value), e);
	return *re || err_wrap(e, "parsing %s regexp", name);
}

static bool compile_tag(const char *name, const char *value, struct tag_match **m,
			struct buf *warnings, struct err *e)
{
	if (!*value)
		return true;
	*m = tag_match_compile(name, value, warnings, e);
	return *m;
}

struct filters {
	struct regex *focus, *ignore, *hide, *show, *show_from, *prune_from, *tagshow, *taghide;
	struct tag_match *tagfocus, *tagignore;
};

static bool compile_filters(struct filters *f, const struct analyze_options *o,
			    struct buf *warnings, struct err *e)
{
	return compile("focus", o->focus, &f->focus, e) &&
	       compile("ignore", o->ignore, &f->ignore, e) &&
	       compile("hide", o->hide, &f->hide, e) && compile("show", o->show, &f->show, e) &&
	       compile("show_from", o->show_from, &f->show_from, e) &&
	       compile_tag("tagfocus", o->tagfocus, &f->tagfocus, warnings, e) &&
	       compile_tag("tagignore", o->tagignore, &f->tagignore, warnings, e) &&
	       compile("prune_from", o->prune_from, &f->prune_from, e) &&
	       compile("tagshow", o->tagshow, &f->tagshow, e) &&
	       compile("taghide", o->taghide, &f->taghide, e);
}

static void free_filters(struct filters *f)
{
	regex_free(f->focus);
	regex_free(f->ignore);
	regex_free(f->hide);
	regex_free(f->show);
	regex_free(f->show_from);
	regex_free(f->prune_from);
	regex_free(f->tagshow);
	regex_free(f->taghide);
	tag_match_free(f->tagfocus);
	tag_match_free(f->tagignore);
}

static bool filter_slice(const struct pipeline *x, struct slice *slice, struct err *e)
{
	struct filters f = { 0 };
	bool ok = compile_filters(&f, &x->o, &slice->warnings, e);

	if (ok)
		profile_filter(&slice->arena, &slice->p,
			       &(struct profile_filter){
				       f.focus, f.ignore, f.hide, f.show, f.show_from, f.prune_from,
				       f.tagfocus, f.tagignore, f.tagshow, f.taghide,
				       &x->all->units, x->s->threads, x->q->stop },
			       &slice->warnings);
	free_filters(&f);
	return ok && goes_on(x, e);
}

static enum memo_kind kind_of(const struct analyze_options *o)
{
	bool hides = *o->hide || *o->show, cuts = *o->show_from || *o->prune_from;
	bool selects = *o->focus || *o->ignore || *o->tagfocus || *o->tagignore;

	if (!hides && !cuts)
		return MEMO_SELECTS;
	return cuts || selects ? MEMO_OTHER : MEMO_HIDES;
}

static bool apply_filters(struct pipeline *x, struct err *e)
{
	const struct analyze_options *o = &x->o;
	const char *values[] = { x->all->key, o->focus,	    o->ignore,	  o->hide,
				 o->show,     o->show_from, o->tagfocus,  o->tagignore,
				 o->tagshow,  o->taghide,   o->prune_from };
	const char *none[] = { x->all->key, "", "", "", "", "", "", "", "", "", "" };
	const char *key = make_key(x->a, values, sizeof(values) / sizeof(*values));
	struct slice *slice;

	if (strcmp(key, make_key(x->a, none, sizeof(none) / sizeof(*none))) == 0)
		return true;
	slice = cache_find(x->cache, key);
	if (!slice) {
		slice = slice_new(key);
		slice->p = x->all->p;
		slice->parent = x->all;
		if (!filter_slice(x, slice, e)) {
			buf_str(x->warnings, buf_view(&slice->warnings));
			slice_free(slice);
			return false;
		}
		slice->graphs = graph_memo_new(x->all->graphs, &x->all->p, kind_of(o));
		cache_add(x->cache, slice);
	}
	use_slice(x, slice);
	return true;
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
static int64_t count_total(const struct profile *p, uint32_t value, bool mean)
{
	bool *is_base = xcalloc(p->nlabel_sets, sizeof(*is_base));
	int64_t sum = 0, div = 0, base_sum = 0, base_div = 0;

	for (uint32_t s = 0; s < p->nlabel_sets; s++)
		is_base[s] = label_set_is_base(p, s);
	for (uint32_t i = 0; i < p->nsamples; i++) {
		const int64_t *v = sample_values(p, &p->samples[i]);
		int64_t weight = int_abs(v[value]), d = mean ? v[0] : 0;

		sum = int_add(sum, weight);
		div = int_add(div, d);
		if (is_base[p->samples[i].labels]) {
			base_sum = int_add(base_sum, weight);
			base_div = int_add(base_div, d);
		}
	}
	free(is_base);
	return base_sum > 0 ? divided(base_sum, base_div) : divided(sum, div);
}

static int64_t total(struct slice *slice, uint32_t value, bool mean)
{
	struct slice_total t = { value, mean, 0 };

	for (size_t i = 0; i < slice->totals.n; i++)
		if (slice->totals.at[i].value == value && slice->totals.at[i].mean == mean)
			return slice->totals.at[i].total;
	t.total = count_total(&slice->p, value, mean);
	vec_push(&slice->totals, t);
	return t.total;
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
					    .asm_style = asm_style(o),
					    .units = &x->all->units,
					    .threads = x->s->threads,
					    .stop = x->q->stop,
					    .into = x->q->into };
	if (*x->q->argument) {
		x->argument = regex_compile(str_of(x->q->argument), e);
		if (!x->argument)
			return err_wrap(e, "parsing argument regexp %s", x->q->argument);
		x->params.regex = x->argument;
	}
	x->params.total = total(x->slice, value, o->mean);
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

static bool print(struct pipeline *x, struct buf *out, struct err *e)
{
	unsigned flags = x->q->report->flags;

	if (!(flags & (REPORT_GRAPH | REPORT_NO_STACKS)))
		profile_drop_hidden(x->a, &x->p, x->q->stop);
	if (flags & REPORT_PROFILE)
		profile_aggregate(x->a, &x->p, &x->params.keep);
	else if (x->s->keeps_slices)
		x->params.memo = x->slice->graphs;
	if ((flags & (REPORT_GRAPH | REPORT_PATHS)) && x->params.keep.filename)
		trim_paths(x);
	if (flags & REPORT_GRAPH)
		profile_remove_base_label(x->a, &x->p);
	return report_print(out, x->q->report, x->a, &x->p, &x->params, e);
}

bool analyze_report(struct session *s, const struct analyze_request *q, struct buf *out,
		    struct buf *warnings, struct err *e)
{
	struct arena scratch = { 0 };
	struct cache once = { 0 };
	struct pipeline x = { .s = s,
			      .q = q,
			      .o = *q->options,
			      .a = &scratch,
			      .cache = s->keeps_slices ? &s->cache : &once,
			      .warnings = warnings };
	bool relative = q->options->relative_percentages, ok;

	override_options(&x);
	ok = open_unfiltered(&x, e) && (!relative || apply_filters(&x, e)) && goes_on(&x, e) &&
	     set_params(&x, e) && goes_on(&x, e) && (relative || apply_filters(&x, e)) &&
	     goes_on(&x, e) && print(&x, out, e);
	regex_free(x.argument);
	cache_release(&once);
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
