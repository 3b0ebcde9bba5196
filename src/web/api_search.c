/* api_search.c - which functions a text is found in, and how much goes through any of them. */
#include "web/names.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/vec.h"

enum { MAX_PATTERN_BYTES = 10000 };

struct search {
	struct api_call *q;
	struct str text; /* to look for */
	bool ignores_case;
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

static bool run_search(struct buf *out, struct report_run *r, struct err *e)
{
	struct search *s = r->params->into;
	struct frames f;
	bool *found;
	uint32_t n = 0;
	struct sums sums;

	(void)e;
	name_graph_frames(r, &f);
	found = arena_many(r->a, f.nnodes, bool);
	buf_puts(out, "{\"ids\":[");
	for (uint32_t i = 0; i < f.nnodes; i++) {
		struct node_info info;

		if (stop_asked_at(r->params->stop, i))
			break;
		frames_info(&f, r->p, i, &info);
		r->text->n = 0;
		node_info_text(r->text, r->p, &info);
		found[i] = is_found(s, buf_view(r->text));
		if (found[i])
			buf_printf(out, "%s%u", n++ ? "," : "",
				   name_id(s->q->site, s->q->profile, r, &info));
	}
	sums = sum_samples(r, mark_locations(r, &f, found));
	buf_printf(out, "],\"functions\":%u,\"total\":%lld,\"self\":%lld,\"samples\":%u", n,
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

bool api_search(struct api_call *q, struct buf *out, struct err *e)
{
	struct search s = { .q = q, .text = api_param(q, "q") };
	bool ok = true;

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
