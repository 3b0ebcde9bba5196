/* querier_merge.c - sums of profiles as flame graphs, pprof's profiles and graphs, and two of them
 * compared. */
#include "server/querier.h"

#include <stdio.h>
#include <strings.h>

#include "analyze/analyze.h"
#include "base/path.h"
#include "base/unit.h"
#include "profile/wire.h"
#include "server/api1.h"
#include "server/flamebearer.h"

/* ---- which samples */

/* Zero where all may stay. */
struct wanted {
	struct str *call_site; /* from the root on */
	size_t ncall_site;
	const struct str *spans, *traces;
	size_t nspans, ntraces;
};

bool querier_call_site(struct arena *a, const struct ask_stacks *ask, struct str **functions,
		       size_t *n, struct err *e)
{
	const struct ask_location *at;

	*n = 0;
	if (!ask)
		return true;
	if (ask->go_pgo)
		return err_set(e, ERR_USAGE,
			       "stack_trace_selector: go_pgo is not there; whole profiles serve "
			       "Go's compiler as well (-pgo), and /api/1/merge has them");
	if (ask->call_site.n > MAX_CALL_SITE)
		return err_set(e, ERR_USAGE,
			       "stack_trace_selector: a call site of %zu functions, and at most %d "
			       "are taken",
			       ask->call_site.n, MAX_CALL_SITE);
	*n = ask->call_site.n;
	*functions = arena_many(a, *n + 1, struct str);
	at = ask->call_site.at;
	for (size_t i = 0; i < *n; i++)
		(*functions)[i] = at[i].name;
	return true;
}

static bool read_list(const char *name, const struct wire_list *list, const struct str **at,
		      size_t *n, struct err *e)
{
	*at = list->at;
	*n = list->n;
	return list->n <= MAX_IDS ||
	       err_set(e, ERR_USAGE, "%s: there are %zu, and at most %d are taken", name, list->n,
		       MAX_IDS);
}

/* Is the frame, of which a location without lines has one, in the function? */
static bool is_in(const struct profile *p, const struct location *l, uint32_t line,
		  struct str function)
{
	uint32_t f = l->nlines ? p->lines[l->first_line + line].function : NONE;
	struct str name = f == NONE ? STR("") : profile_str(p, p->functions[f].name), file;

	if (name.n)
		return str_eq(name, function);
	file = l->mapping == NONE ? STR("") : profile_str(p, p->mappings[l->mapping].file);
	if (!file.n)
		return str_eq(function, STR("<unknown>"));
	return function.n > 2 && function.p[0] == '[' && function.p[function.n - 1] == ']' &&
	       str_eq((struct str){ function.p + 1, function.n - 2 }, path_base(file));
}

static bool is_at_site(const struct profile *p, const struct sample *s, const struct wanted *w)
{
	size_t n = 0;

	for (uint32_t i = s->nstack; i-- > 0 && n < w->ncall_site;) {
		const struct location *l = &p->locations[p->stacks[s->stack + i]];

		for (uint32_t line = l->nlines ? l->nlines : 1; line-- > 0 && n < w->ncall_site;
		     n++)
			if (!is_in(p, l, line, w->call_site[n]))
				return false;
	}
	return n == w->ncall_site;
}

static bool is_among(struct str id, const struct str *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (id.n == ids[i].n && (!id.n || strncasecmp(id.p, ids[i].p, id.n) == 0))
			return true;
	return false;
}

/* Agents call a span's id by either name. */
static bool set_is_wanted(const struct profile *p, uint32_t set, const struct wanted *w)
{
	const struct label *labels = set_labels(p, set);
	bool has_span = !w->nspans, has_trace = !w->ntraces;

	for (uint32_t i = 0; i < p->label_sets[set].nstrings; i++) {
		struct str key = profile_str(p, labels[i].key);
		struct str value = profile_str(p, labels[i].text);

		if (str_eq(key, STR("span_id")) || str_eq(key, STR("profile_id")))
			has_span |= is_among(value, w->spans, w->nspans);
		else if (str_eq(key, STR("trace_id")))
			has_trace |= is_among(value, w->traces, w->ntraces);
	}
	return has_span && has_trace;
}

static void keep_wanted(struct arena *a, struct profile *p, const struct wanted *w)
{
	bool *sets = arena_many(a, p->nlabel_sets + 1, bool);
	struct sample *samples = arena_many(a, p->nsamples + 1, struct sample);
	uint32_t n = 0;

	if (!w->ncall_site && !w->nspans && !w->ntraces)
		return;
	for (uint32_t i = 0; i < p->nlabel_sets; i++)
		sets[i] = set_is_wanted(p, i, w);
	for (uint32_t i = 0; i < p->nsamples; i++)
		if (sets[p->samples[i].labels] && is_at_site(p, &p->samples[i], w))
			samples[n++] = p->samples[i];
	p->samples = samples;
	p->nsamples = n;
}

/* ---- the sum */

static bool merge_by_ids(const struct querier *q, const struct ask_merge *ask,
			 struct store_merged *out, struct err *e)
{
	const struct str *texts;
	struct store_id *ids;
	size_t n;

	if (!read_list("profile_id_selector", &ask->profile_id_selector, &texts, &n, e))
		return false;
	ids = arena_many(q->a, n, struct store_id);
	for (size_t i = 0; i < n; i++)
		if (!store_id_parse(texts[i], &ids[i]))
			return err_set(e, ERR_USAGE,
				       "profile_id_selector: \"%.*s\" is no id of a profile; "
				       "/api/1/profiles has them",
				       STR_ARG(texts[i]));
	return store_merge_ids(q->store, ids, n, q->stop, q->a, q->strings, out, e);
}

static bool find_column(const struct profile *p, const struct profile_type_id *id, uint32_t *column,
			struct err *e)
{
	size_t n;

	for (uint32_t i = 0; i < p->ntypes; i++)
		if (str_eq(profile_str(p, p->types[i].type), id->sample)) {
			*column = i;
			return true;
		}
	err_set(e, ERR_USAGE,
		"profile_typeID: no profile has the sample type \"%.*s\", but there %s",
		STR_ARG(id->sample), p->ntypes == 1 ? "is" : "are");
	for (uint32_t i = 0; i < p->ntypes; i++) {
		n = strlen(e->text);
		snprintf(e->text + n, sizeof(e->text) - n, "%s %.*s", i ? "," : "",
			 STR_ARG(profile_str(p, p->types[i].type)));
	}
	return false;
}

/* Who asks for nanoseconds takes the answer for that, whatever was pushed. */
static void convert(struct arena *a, struct merged *m, struct str unit)
{
	struct profile *p = &m->profile;
	struct value_type *types = arena_copy(a, p->types, p->ntypes * sizeof(*types));
	double *ratios = arena_many(a, p->ntypes, double);
	struct str name, from = profile_str(p, types[m->column].unit);

	if (str_eq(from, unit) || !unit_same_family(from, unit))
		return;
	for (uint32_t i = 0; i < p->ntypes; i++)
		ratios[i] = 1;
	ratios[m->column] = unit_scale(1, from, unit, &name);
	types[m->column].unit = strings_add(p->strings, unit);
	p->types = types;
	profile_scale(a, p, ratios);
}

static bool merge_selected(const struct querier *q, const struct ask_merge *ask,
			   const struct wanted *w, struct merged *m, struct err *e)
{
	struct selection s = { 0 };
	struct store_query query;
	struct store_merged sum;
	bool ok = (selection_add(&s, q->a, ask->label_selector, e) ||
		   err_wrap(e, "label_selector")) &&
		  selection_set_type(&s, q->a, ask->profile_typeID, e);

	if (ok && ask->profile_id_selector.n)
		ok = merge_by_ids(q, ask, &sum, e);
	else
		ok = ok && selection_query(&s, q, ask->start, ask->end, true, &query, e) &&
		     store_merge(q->store, &query, STORE_AS_TYPE, q->a, q->strings, &sum, e);
	if (ok) {
		reply_left_out(q->c, &sum.left_out);
		m->profile = sum.profile;
		ok = find_column(&m->profile, &s.id, &m->column, e);
	}
	if (ok) {
		convert(q->a, m, s.id.unit);
		keep_wanted(q->a, &m->profile, w);
	}
	selection_release(&s);
	return ok;
}

bool querier_merge(const struct querier *q, const struct ask_merge *ask, struct merged *m,
		   struct err *e)
{
	struct wanted w = { 0 };

	if (!querier_call_site(q->a, ask->stack_trace_selector, &w.call_site, &w.ncall_site, e) ||
	    !read_list("span_selector", &ask->span_selector, &w.spans, &w.nspans, e) ||
	    !read_list("trace_id_selector", &ask->trace_id_selector, &w.traces, &w.ntraces, e))
		return false;
	return merge_selected(q, ask, &w, m, e);
}

struct profile merged_profile(struct arena *a, const struct merged *m)
{
	struct profile p = m->profile;
	struct value_type *type = arena_new(a, struct value_type);
	struct sample *samples = arena_many(a, p.nsamples + 1, struct sample);
	int64_t *values = arena_many(a, p.nsamples + 1, int64_t);
	uint32_t n = 0;

	*type = p.types[m->column];
	for (uint32_t i = 0; i < p.nsamples; i++) {
		int64_t value = sample_values(&p, &p.samples[i])[m->column];

		if (!value)
			continue;
		samples[n] = p.samples[i];
		samples[n].row = n;
		values[n++] = value;
	}
	p.types = type;
	p.ntypes = 1;
	p.samples = samples;
	p.nsamples = n;
	p.values = values;
	p.default_type = type->type;
	return p;
}

/* ---- two sums */

/* What there is of the other side is nothing of this one. */
static void make_empty(struct merged *m, const struct merged *like)
{
	*m = *like;
	m->profile.nsamples = 0;
}

bool querier_compare(const struct querier *q, const struct ask_merge *left,
		     const struct ask_merge *right, struct merged *m, struct err *e)
{
	struct merged before, now;
	bool has_before = querier_merge(q, left, &before, e), has_now;

	if (!has_before && e->kind != ERR_NOTFOUND)
		return err_wrap(e, "left");
	has_now = querier_merge(q, right, &now, e);
	if (!has_now && (e->kind != ERR_NOTFOUND || !has_before))
		return err_wrap(e, "right");
	if (!has_before)
		make_empty(&before, &now);
	if (!has_now)
		make_empty(&now, &before);
	m->column = 0;
	return profile_diff(q->a, merged_profile(q->a, &now), merged_profile(q->a, &before),
			    &(struct diff_params){ .mark_base = true }, &m->profile, e);
}

/* ---- as graphs */

static void set_options(const struct merged *m, struct arena *a, struct analyze_options *o)
{
	char column[16];

	snprintf(column, sizeof(column), "%u", m->column);
	*o = analyze_defaults;
	o->sample_index = str_dup(a, str_of(column));
}

static bool check_nodes(int64_t *max_nodes, struct err *e)
{
	if (*max_nodes > MAX_NODES)
		return err_set(e, ERR_USAGE, "max_nodes: %lld, and at most %d are made",
			       (long long)*max_nodes, MAX_NODES);
	if (*max_nodes <= 0)
		*max_nodes = USUAL_NODES;
	return true;
}

static bool run_flame(struct buf *out, struct report_run *r, struct err *e)
{
	struct flame_made *made = r->params->into;
	struct flamebearer b;
	struct flame f;

	(void)e;
	flame_grow(&f, r, (uint32_t)made->max_nodes, 0);
	if (stop_asked(r->params->stop))
		return true;
	if (made->form == FLAME_TREE) {
		flamebearer_put_tree(out, &f);
		return true;
	}
	flamebearer_make(r->a, &b, &f, made->is_diff);
	made->total = b.total;
	made->left = b.left;
	made->right = b.right;
	if (made->form == FLAME_JSON)
		flamebearer_json(out, &b);
	else
		flamebearer_put(out, &b);
	return true;
}

static const struct report report_flame = {
	.name = "flamebearer",
	.flags = REPORT_ALL_NODES | REPORT_UNTRIMMED | REPORT_PATHS | REPORT_NO_STACKS,
	.run = run_flame,
};

bool querier_flame(const struct querier *q, const struct merged *m, struct flame_made *made,
		   struct buf *out, struct err *e)
{
	struct analyze_options o;

	if (!check_nodes(&made->max_nodes, e))
		return false;
	set_options(m, q->a, &o);
	return format_report(q->c, &m->profile, &report_flame, &o, made, out, e);
}

bool querier_dot(const struct querier *q, const struct merged *m, int64_t max_nodes,
		 struct buf *out, struct err *e)
{
	struct analyze_options o;

	if (max_nodes > MAX_NODES && !check_nodes(&max_nodes, e))
		return false;
	set_options(m, q->a, &o);
	if (max_nodes > 0)
		o.nodecount = (int)max_nodes;
	return format_report(q->c, &m->profile, report_find("dot"), &o, NULL, out, e);
}

/* ---- calls */

/* An answer without a flame graph is one, too: Grafana shows that there is nothing. */
static bool is_nothing(const struct err *e)
{
	return e->kind == ERR_NOTFOUND;
}

static bool put_format(const struct querier *q, const struct ask_merge *ask, struct merged *m,
		       struct buf *out, struct err *e)
{
	struct flame_made made = { .max_nodes = ask->max_nodes };
	struct buf part = { 0 }, inner = { 0 };
	struct profile p;
	unsigned field = 1;
	bool ok = true;

	switch (ask->format) {
	case FORMAT_UNSPECIFIED:
	case FORMAT_FLAMEGRAPH:
		ok = querier_flame(q, m, &made, &part, e);
		break;
	case FORMAT_TREE:
		field = 2;
		made.form = FLAME_TREE;
		ok = querier_flame(q, m, &made, &part, e);
		break;
	case FORMAT_DOT:
		field = 3;
		ok = querier_dot(q, m, ask->max_nodes, &inner, e);
		utf8_repair(&part, buf_view(&inner));
		break;
	case FORMAT_PPROF:
		field = 5;
		p = merged_profile(q->a, m);
		profile_encode_text(&inner, &p);
		put_message(&part, 1, &inner);
		break;
	default:
		ok = err_set(e, ERR_USAGE, "format: there is no %lld", (long long)ask->format);
	}
	if (ok)
		put_message(out, field, &part);
	buf_release(&part);
	buf_release(&inner);
	return ok;
}

bool querier_merge_stacktraces(const struct querier *q, const void *request, struct buf *out,
			       struct err *e)
{
	struct merged m;

	if (!querier_merge(q, request, &m, e))
		return is_nothing(e);
	return put_format(q, request, &m, out, e);
}

bool querier_merge_profile(const struct querier *q, const void *request, struct buf *out,
			   struct err *e)
{
	struct merged m;
	struct profile p;

	if (!querier_merge(q, request, &m, e))
		return is_nothing(e);
	p = merged_profile(q->a, &m);
	profile_encode_text(out, &p);
	return true;
}

bool querier_diff(const struct querier *q, const void *request, struct buf *out, struct err *e)
{
	const struct ask_diff *ask = request;
	struct flame_made made = { .is_diff = true };
	struct merged m;
	struct buf part = { 0 };
	bool ok;

	if (!ask->left || !ask->right)
		return err_set(e, ERR_USAGE, "%s is missing: what to compare",
			       ask->left ? "right" : "left");
	made.max_nodes = ask->left->max_nodes > ask->right->max_nodes ? ask->left->max_nodes
								      : ask->right->max_nodes;
	if (!querier_compare(q, ask->left, ask->right, &m, e))
		return is_nothing(e);
	ok = querier_flame(q, &m, &made, &part, e);
	if (ok)
		put_message(out, 1, &part);
	buf_release(&part);
	return ok;
}
