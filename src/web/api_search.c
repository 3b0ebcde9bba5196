/* api_search.c - which functions a text is found in, and how much goes through any of them; or
 * those of samples that it is found in a label of. */
#include "web/finder.h"
#include "web/names.h"

#include <stdlib.h>

#include "base/vec.h"

struct search {
	struct api_call *q;
	struct finder finder;
	bool groups; /* as the flame graph does */
};

static bool is_node_found(struct search *s, const struct report_run *r,
			  const struct node_info *info)
{
	if (s->finder.scope == IN_FILES)
		return finder_finds(&s->finder, name_file(s->q->profile, r, info));
	if (s->finder.scope == IN_MODULES)
		return finder_finds(&s->finder, name_module(s->q->profile, r, info));
	r->text->n = 0;
	node_info_text(r->text, r->p, info);
	return finder_finds(&s->finder, buf_view(r->text));
}

/* Its function, or the group it is shown in, which is found by its own name as well. */
static uint32_t shown_id(struct search *s, const struct report_run *r, const struct node_info *info,
			 bool *found)
{
	uint32_t group = s->groups ? name_group(s->q->site, s->q->profile, r, info) : 0;

	if (!group)
		return name_id(s->q->site, s->q->profile, r, info);
	if (s->finder.scope == IN_NAMES && !*found)
		*found = finder_finds(&s->finder, buf_view(r->text));
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

/* The first frame that is shown; or the number of all. */
static uint32_t leaf_of(const struct profile *p, const struct sample *s)
{
	uint32_t leaf = 0;

	while (p->has_hidden && leaf < s->nstack &&
	       p->locations[p->stacks[s->stack + leaf]].is_hidden)
		leaf++;
	return leaf;
}

static struct sums sum_samples(const struct report_run *r, const unsigned char *marks)
{
	const struct profile *p = r->p;
	struct sums sums = { 0 };

	for (uint32_t i = 0; i < p->nsamples; i++) {
		const struct sample *s = &p->samples[i];
		const uint32_t *stack = p->stacks + s->stack;
		int64_t w = report_sample_value(r, s);
		uint32_t leaf;
		unsigned char any = 0;

		if (stop_asked_at(r->params->stop, i))
			break;
		for (uint32_t k = 0; k < s->nstack && !any; k++)
			any = marks[stack[k]];
		if (!any)
			continue;
		leaf = leaf_of(p, s);
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
static uint32_t put_ids(struct buf *out, struct functions *t, uint32_t *ids, uint32_t n)
{
	uint32_t different = 0;

	qsort(ids, n, sizeof(*ids), by_number);
	buf_puts(out, "{\"ids\":[");
	for (uint32_t i = 0; i < n; i++)
		if (!i || ids[i] != ids[i - 1])
			buf_printf(out, "%s%u", different++ ? "," : "",
				   functions_number(t, ids[i]));
	buf_char(out, ']');
	return different;
}

/* What percentages are of. Means of samples do not add up to the mean of all. */
static int64_t base_of(const struct report_run *r)
{
	int64_t sum = 0;

	if (!r->params->mean)
		return r->params->total;
	for (uint32_t i = 0; i < r->p->nsamples; i++)
		sum = int_add(sum, report_sample_value(r, &r->p->samples[i]));
	return sum;
}

static void put_answer(struct buf *out, const struct search *s, const struct report_run *r,
		       uint32_t nfunctions, const struct sums *sums)
{
	buf_printf(out, ",\"functions\":%u,\"total\":%lld,\"self\":%lld,\"of\":%lld,\"samples\":%u",
		   nfunctions, (long long)sums->total, (long long)sums->self, (long long)base_of(r),
		   sums->samples);
	api_put_warnings(s->q, out);
	buf_puts(out, "}\n");
}

static void search_functions(struct buf *out, struct search *s, struct report_run *r,
			     const struct frames *f)
{
	bool *found = arena_many(r->a, f->nnodes, bool);
	uint32_t *ids = arena_many(r->a, f->nnodes, uint32_t), n = 0;
	struct sums sums;

	for (uint32_t i = 0; i < f->nnodes && !stop_asked_at(r->params->stop, i); i++) {
		struct node_info info;

		frames_info(f, r->p, i, &info);
		found[i] = is_node_found(s, r, &info);
		ids[n] = shown_id(s, r, &info, &found[i]);
		n += found[i];
	}
	n = put_ids(out, &s->q->site->functions, ids, n);
	sums = sum_samples(r, mark_locations(r, f, found));
	put_answer(out, s, r, n, &sums);
}

/* ---- labels */

/* Sums the samples of those label sets, and marks the frames that they have. */
static struct sums mark_frames(const struct report_run *r, const struct frames *f, const bool *sets,
			       bool *found)
{
	const struct profile *p = r->p;
	bool *is_done = arena_many(r->a, p->nlocations, bool);
	struct sums sums = { 0 };

	for (uint32_t i = 0; i < p->nsamples && !stop_asked_at(r->params->stop, i); i++) {
		const struct sample *s = &p->samples[i];
		int64_t w = report_sample_value(r, s);

		if (!sets[s->labels])
			continue;
		sums.total = int_add(sums.total, w);
		sums.samples++;
		if (leaf_of(p, s) < s->nstack)
			sums.self = int_add(sums.self, w);
		for (uint32_t k = 0; k < s->nstack; k++) {
			uint32_t loc = p->stacks[s->stack + k];

			for (uint32_t at = f->first[loc]; !is_done[loc] && at < f->first[loc + 1];
			     at++)
				found[f->lists[at] & FRAME_NODE] = true;
			is_done[loc] = true;
		}
	}
	return sums;
}

/* Found is what any of the samples goes through that have such a label: all of them end there. */
static void search_labels(struct buf *out, struct search *s, struct report_run *r,
			  const struct frames *f)
{
	const bool *sets = finder_label_sets(&s->finder, r);
	bool *found = arena_many(r->a, f->nnodes, bool);
	uint32_t *ids = arena_many(r->a, f->nnodes, uint32_t), n = 0;
	struct sums sums = mark_frames(r, f, sets, found);

	for (uint32_t i = 0; i < f->nnodes; i++) {
		struct node_info info;

		if (!found[i])
			continue;
		frames_info(f, r->p, i, &info);
		ids[n++] = shown_id(s, r, &info, &found[i]);
	}
	n = put_ids(out, &s->q->site->functions, ids, n);
	buf_puts(out, ",\"tagfocus\":");
	json_put(out, str_of(finder_tagfocus(&s->finder, r, sets)));
	put_answer(out, s, r, n, &sums);
}

static bool run_search(struct buf *out, struct report_run *r, struct err *e)
{
	struct search *s = r->params->into;
	struct frames f;

	(void)e;
	name_graph_frames(r, &f);
	if (s->finder.scope == IN_LABELS)
		search_labels(out, s, r, &f);
	else
		search_functions(out, s, r, &f);
	return true;
}

static const struct report report_search = {
	.name = "search",
	.flags = REPORT_ALL_NODES | REPORT_UNTRIMMED | REPORT_PATHS | REPORT_NO_STACKS,
	.run = run_search,
};

bool api_search(struct api_call *q, struct buf *out, struct err *e)
{
	struct search s = { .q = q, .groups = api_flag(q, "group") };
	bool ok = finder_open(&s.finder, q, e) &&
		  api_report(q, loaded_session(q->profile), &report_search, "", &s, out, e);

	finder_close(&s.finder);
	return ok;
}
