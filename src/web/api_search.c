/* api_search.c - which functions a text is found in, and how much goes through any of them. */
#include "web/names.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/vec.h"

enum { MAX_PATTERN_BYTES = 10000 };

enum search_scope { IN_NAMES, IN_FILES, IN_MODULES };

struct search {
	struct api_call *q;
	enum search_scope scope;
	struct str text; /* to look for */
	bool ignores_case;
	bool groups;	     /* as the flame graph does */
	struct regex *regex; /* instead; or NULL */
	struct buf lower;
};

static bool is_found(struct search *s, struct str name)
{
	if (s->regex)
		return regex_match(s->regex, name);
	if (!s->ignores_case)
		return str_contains(name, s->text);
	s->lower.n = 0;
	for (size_t i = 0; i < name.n; i++)
		buf_char(&s->lower, (char)tolower((unsigned char)name.p[i]));
	return str_contains(buf_view(&s->lower), s->text);
}

static bool is_node_found(struct search *s, const struct report_run *r,
			  const struct node_info *info)
{
	if (s->scope == IN_FILES)
		return is_found(s, name_file(s->q->profile, r, info));
	if (s->scope == IN_MODULES)
		return is_found(s, name_module(s->q->profile, r, info));
	r->text->n = 0;
	node_info_text(r->text, r->p, info);
	return is_found(s, buf_view(r->text));
}

/* Its function, or the group it is shown in, which is found by its own name as well. */
static uint32_t shown_id(struct search *s, const struct report_run *r, const struct node_info *info,
			 bool *found)
{
	uint32_t group = s->groups ? name_group(s->q->site, s->q->profile, r, info) : 0;

	if (!group)
		return name_id(s->q->site, s->q->profile, r, info);
	if (s->scope == IN_NAMES && !*found)
		*found = is_found(s, buf_view(r->text));
	return group;
}

/* What of a location is found: 1 a frame, 2 the innermost one, 3 both. */
static unsigned char *mark_locations(const struct report_run *r, const struct frames *f,
				     const bool *found)
{
	unsigned char *marks = arena_many(r->a, r->p->nlocations, unsigned char);

	for (uint32_t loc = 0; loc < r->p->nlocations; loc++) {
		for (uint32_t i = f->first[loc]; i < f->first[loc + 1]; i++)
			marks[loc] |= found[f->lists[i] & FRAME_NODE];
		if (f->first[loc + 1] > f->first[loc] &&
		    found[f->lists[f->first[loc + 1] - 1] & FRAME_NODE])
			marks[loc] |= 2;
	}
	return marks;
}

struct sums {
	int64_t total, self;
	uint32_t samples;
};

static struct sums sum_samples(const struct report_run *r, const unsigned char *marks)
{
	const struct profile *p = r->p;
	struct sums sums = { 0 };

	for (uint32_t i = 0; i < p->nsamples; i++) {
		const struct sample *s = &p->samples[i];
		const uint32_t *stack = p->stacks + s->stack;
		int64_t w = report_sample_value(r, s);
		uint32_t leaf = 0;
		unsigned char any = 0;

		if (stop_asked_at(r->params->stop, i))
			break;
		for (uint32_t k = 0; k < s->nstack && !any; k++)
			any = marks[stack[k]];
		if (!any)
			continue;
		while (p->has_hidden && leaf < s->nstack && p->locations[stack[leaf]].is_hidden)
			leaf++;
		sums.total = int_add(sums.total, w);
		sums.samples++;
		if (leaf < s->nstack && (marks[stack[leaf]] & 2))
			sums.self = int_add(sums.self, w);
	}
	return sums;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Each once; tells how many there are. */
static uint32_t put_ids(struct buf *out, uint32_t *ids, uint32_t n)
{
	uint32_t different = 0;

	qsort(ids, n, sizeof(*ids), by_number);
	buf_puts(out, "{\"ids\":[");
	for (uint32_t i = 0; i < n; i++)
		if (!i || ids[i] != ids[i - 1])
			buf_printf(out, "%s%u", different++ ? "," : "", ids[i]);
	buf_char(out, ']');
	return different;
}

static bool run_search(struct buf *out, struct report_run *r, struct err *e)
{
	struct search *s = r->params->into;
	struct frames f;
	bool *found;
	uint32_t *ids, n = 0;
	struct sums sums;

	(void)e;
	name_graph_frames(r, &f);
	found = arena_many(r->a, f.nnodes, bool);
	ids = arena_many(r->a, f.nnodes, uint32_t);
	for (uint32_t i = 0; i < f.nnodes && !stop_asked_at(r->params->stop, i); i++) {
		struct node_info info;

		frames_info(&f, r->p, i, &info);
		found[i] = is_node_found(s, r, &info);
		ids[n] = shown_id(s, r, &info, &found[i]);
		n += found[i];
	}
	n = put_ids(out, ids, n);
	sums = sum_samples(r, mark_locations(r, &f, found));
	buf_printf(out, ",\"functions\":%u,\"total\":%lld,\"self\":%lld,\"samples\":%u", n,
		   (long long)sums.total, (long long)sums.self, sums.samples);
	api_put_warnings(s->q, out);
	buf_puts(out, "}\n");
	return true;
}

static const struct report report_search = {
	.name = "search",
	.flags = REPORT_ALL_NODES | REPORT_UNTRIMMED | REPORT_PATHS | REPORT_NO_STACKS,
	.run = run_search,
};

/* A letter in upper case says that the case matters. */
static bool has_upper(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (isupper((unsigned char)text.p[i]))
			return true;
	return false;
}

static bool read_scope(struct search *s, struct err *e)
{
	static const char *const scopes[] = {
		[IN_NAMES] = "name", [IN_FILES] = "file", [IN_MODULES] = "module"
	};
	struct str in = api_param(s->q, "in");

	for (s->scope = IN_NAMES; in.n && !str_eq(in, str_of(scopes[s->scope])); s->scope++)
		if (s->scope == IN_MODULES)
			return err_set(e, ERR_USAGE, "in=%.*s: not name, file or module",
				       STR_ARG(in));
	return true;
}

bool api_search(struct api_call *q, struct buf *out, struct err *e)
{
	struct search s = { .q = q, .text = api_param(q, "q"), .groups = api_flag(q, "group") };
	bool ok = true;

	if (!read_scope(&s, e))
		return false;
	if (s.text.n > MAX_PATTERN_BYTES)
		return err_set(e, ERR_LIMIT, "q is longer than %d bytes", MAX_PATTERN_BYTES);
	s.ignores_case = !has_upper(s.text);
	if (api_flag(q, "re")) {
		s.regex = regex_compile(s.text, e);
		ok = s.regex;
	}
	ok = ok && api_report(q, loaded_session(q->profile), &report_search, "", &s, out, e);
	regex_free(s.regex);
	buf_release(&s.lower);
	return ok;
}
