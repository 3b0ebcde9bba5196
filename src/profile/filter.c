/* filter.c - focus, ignore, hide, show, show_from, and the filters on labels.
 *
 * What matches is decided once per location or label set; samples are then narrowed by index, on
 * all cores. Stacks are cut by changing a sample's range, and only copied when frames in the middle
 * go.
 */
#include "profile/profile.h"

#include <string.h>

#include "base/parallel.h"
#include "profile/matcher.h"

enum { PIECES = 64, PARALLEL_SAMPLES = 20000 };

static void warn(struct buf *warnings, const char *what)
{
	buf_printf(warnings, "%s expression matched no samples\n", what);
}

/* ---- focus, ignore, hide, show */

struct name_filter {
	struct profile *p;
	struct matcher focus, ignore, hide, show;
	bool *is_focused, *is_ignored, *is_hidden; /* by location */
	bool any_focused, any_ignored, any_hide_match, any_shown, any_hidden;
	struct line *lines;
	uint32_t *left; /* by sample: frames that stay */
	uint32_t *stacks, nstacks, starts[PIECES];
};

static bool matches_location(const struct matcher *m, const struct location *loc)
{
	if (matches_mapping(m, loc))
		return true;
	for (uint32_t i = 0; i < loc->nlines; i++)
		if (matches_function(m, &m->p->lines[loc->first_line + i]))
			return true;
	return false;
}

/* Keeps the lines that -hide does not take. */
static void hide_lines(struct name_filter *f, struct location *loc)
{
	const struct line *from = f->lines + loc->first_line;
	uint32_t kept = 0;

	if (!matches_location(&f->hide, loc))
		return;
	f->any_hide_match = true;
	for (uint32_t i = 0; i < loc->nlines && !matches_mapping(&f->hide, loc); i++)
		if (!matches_function(&f->hide, &from[i]))
			f->lines[loc->first_line + kept++] = from[i];
	loc->nlines = kept;
}

/* Keeps the lines that -show wants. A line without a function is kept, a location without lines is
 * not, whatever its mapping. */
static void show_lines(struct name_filter *f, struct location *loc)
{
	const struct line *from = f->lines + loc->first_line;
	uint32_t kept = 0;

	if (!matches_mapping(&f->show, loc)) {
		for (uint32_t i = 0; i < loc->nlines; i++)
			if (from[i].function == NONE || matches_function(&f->show, &from[i]))
				f->lines[loc->first_line + kept++] = from[i];
		loc->nlines = kept;
	}
	if (loc->nlines)
		f->any_shown = true;
}

static void judge_location(struct name_filter *f, struct location *loc, uint32_t index)
{
	if (f->ignore.re && matches_location(&f->ignore, loc))
		f->is_ignored[index] = f->any_ignored = true;
	else if (!f->focus.re || matches_location(&f->focus, loc))
		f->is_focused[index] = f->any_focused = true;
	if (f->hide.re) {
		bool had_match = f->any_hide_match;

		f->any_hide_match = false;
		hide_lines(f, loc);
		if (f->any_hide_match && !loc->nlines)
			f->is_hidden[index] = f->any_hidden = true;
		f->any_hide_match |= had_match;
	}
	if (f->show.re) {
		show_lines(f, loc);
		if (!loc->nlines)
			f->is_hidden[index] = f->any_hidden = true;
	}
}

static bool keeps_sample(const struct name_filter *f, const struct sample *s)
{
	const uint32_t *stack = f->p->stacks + s->stack;
	bool is_focused = false, is_ignored = false;

	for (uint32_t i = 0; i < s->nstack; i++) {
		is_ignored |= f->is_ignored[stack[i]];
		is_focused |= f->is_focused[stack[i]];
	}
	return is_focused && !is_ignored;
}

static uint32_t count_shown(const struct name_filter *f, const struct sample *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->nstack; i++)
		n += !f->is_hidden[f->p->stacks[s->stack + i]];
	return n;
}

static uint32_t piece_start(const struct name_filter *f, size_t piece)
{
	return (uint32_t)(f->p->nsamples * piece / PIECES);
}

/* How many frames are left of each sample; 0: the sample goes. */
static void judge_samples(void *ctx, size_t piece)
{
	const struct name_filter *f = ctx;

	for (uint32_t i = piece_start(f, piece); i < piece_start(f, piece + 1); i++) {
		const struct sample *s = &f->p->samples[i];

		if (keeps_sample(f, s))
			f->left[i] = f->any_hidden ? count_shown(f, s) : s->nstack;
	}
}

/* Copies the stacks of the samples that stay, without hidden frames, to f->stacks. */
static void copy_shown(void *ctx, size_t piece)
{
	const struct name_filter *f = ctx;
	uint32_t at = f->starts[piece];

	for (uint32_t i = piece_start(f, piece); i < piece_start(f, piece + 1); i++) {
		const struct sample *s = &f->p->samples[i];

		for (uint32_t k = 0; f->left[i] && k < s->nstack; k++) {
			uint32_t loc = f->p->stacks[s->stack + k];

			if (!f->is_hidden[loc])
				f->stacks[at++] = loc;
		}
	}
}

/* Makes the list of samples that stay. Returns its length. */
static uint32_t take_samples(struct name_filter *f, struct sample *samples)
{
	uint32_t kept = 0, at = 0;

	for (size_t piece = 0; piece < PIECES; piece++) {
		f->starts[piece] = at;
		for (uint32_t i = piece_start(f, piece); i < piece_start(f, piece + 1); i++) {
			samples[kept] = f->p->samples[i];
			if (f->any_hidden) {
				samples[kept].stack = at;
				samples[kept].nstack = f->left[i];
				at += f->left[i];
			}
			kept += f->left[i] != 0;
		}
	}
	f->nstacks = at;
	return kept;
}

static void filter_samples(struct arena *a, struct name_filter *f, int threads)
{
	struct profile *p = f->p;
	struct sample *samples = arena_many(a, (size_t)p->nsamples + 1, struct sample);
	struct arena scratch = { 0 };
	uint32_t kept;

	f->left = arena_many(&scratch, p->nsamples, uint32_t);
	threads = p->nsamples > PARALLEL_SAMPLES ? threads : 1;
	parallel_for(threads, PIECES, judge_samples, f);
	kept = take_samples(f, samples);
	if (f->any_hidden) {
		f->stacks = arena_many(a, f->nstacks, uint32_t);
		parallel_for(threads, PIECES, copy_shown, f);
		p->stacks = f->stacks;
	}
	p->samples = samples;
	p->nsamples = kept;
	arena_release(&scratch);
}

static void filter_names(struct arena *a, struct profile *p, const struct profile_filter *x,
			 struct buf *warnings)
{
	struct name_filter f = { .p = p,
				 .focus = matcher_of(a, p, x->focus),
				 .ignore = matcher_of(a, p, x->ignore),
				 .hide = matcher_of(a, p, x->hide),
				 .show = matcher_of(a, p, x->show),
				 .is_focused = arena_many(a, p->nlocations, bool),
				 .is_ignored = arena_many(a, p->nlocations, bool),
				 .is_hidden = arena_many(a, p->nlocations, bool) };
	struct location *locations =
		arena_copy(a, p->locations, p->nlocations * sizeof(*locations));

	f.lines = p->lines;
	if (x->hide || x->show)
		f.lines = arena_copy(a, p->lines, p->nlines * sizeof(*f.lines));
	for (uint32_t i = 0; i < p->nlocations; i++)
		judge_location(&f, &locations[i], i);
	filter_samples(a, &f, x->threads);
	p->locations = locations;
	p->lines = f.lines;
	if (x->focus && !f.any_focused)
		warn(warnings, "Focus");
	if (x->ignore && !f.any_ignored)
		warn(warnings, "Ignore");
	if (x->hide && !f.any_hide_match)
		warn(warnings, "Hide");
	if (x->show && !f.any_shown)
		warn(warnings, "Show");
}

/* ---- show_from */

/* Cuts the callers inlined above the match; returns whether there is one. */
static bool cut_callers(const struct matcher *m, struct location *loc)
{
	if (matches_mapping(m, loc))
		return true;
	for (uint32_t i = loc->nlines; i-- > 0;) {
		if (matches_function(m, &m->p->lines[loc->first_line + i])) {
			loc->nlines = i + 1;
			return true;
		}
	}
	return false;
}

static void filter_show_from(struct arena *a, struct profile *p, const struct regex *re,
			     struct buf *warnings)
{
	struct matcher m = matcher_of(a, p, re);
	struct location *locations =
		arena_copy(a, p->locations, p->nlocations * sizeof(*locations));
	struct sample *samples = arena_many(a, p->nsamples, struct sample);
	bool *is_match = arena_many(a, p->nlocations, bool), any = false;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < p->nlocations; i++)
		any |= is_match[i] = cut_callers(&m, &locations[i]);
	for (uint32_t i = 0; i < p->nsamples; i++) {
		struct sample s = p->samples[i];

		while (s.nstack && !is_match[p->stacks[s.stack + s.nstack - 1]])
			s.nstack--;
		if (s.nstack)
			samples[kept++] = s;
	}
	p->locations = locations;
	p->samples = samples;
	p->nsamples = kept;
	if (!any)
		warn(warnings, "ShowFrom");
}

/* ---- labels */

static void filter_tags(struct arena *a, struct profile *p, const struct profile_filter *x,
			struct buf *warnings)
{
	/* by set: 0 unknown, else 1 + 2 * in focus + 4 * ignored */
	char *known = arena_many(a, p->nlabel_sets, char);
	struct sample *samples = arena_many(a, p->nsamples, struct sample);
	bool any_focused = false, any_ignored = false;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < p->nsamples; i++) {
		uint32_t set = p->samples[i].labels;

		if (!known[set])
			known[set] = (char)(1 |
					    (!x->tagfocus ||
					     tag_match_set(x->tagfocus, p, x->units, set))
						    << 1 |
					    (x->tagignore &&
					     tag_match_set(x->tagignore, p, x->units, set))
						    << 2);
		any_focused |= (known[set] & 2) != 0;
		any_ignored |= (known[set] & 4) != 0;
		if ((known[set] & 6) == 2)
			samples[kept++] = p->samples[i];
	}
	p->samples = samples;
	p->nsamples = kept;
	if (x->tagfocus && !any_focused)
		warn(warnings, "TagFocus");
	if (x->tagignore && !any_ignored)
		warn(warnings, "TagIgnore");
}

static void filter_tag_keys(struct arena *a, struct profile *p, const struct regex *show,
			    const struct regex *hide, struct buf *warnings)
{
	struct matcher shown = matcher_of(a, p, show), hidden = matcher_of(a, p, hide);
	bool *is_used = arena_many(a, p->nlabel_sets, bool);
	bool *keep = arena_many(a, p->strings->n, bool);
	bool any_shown = false, any_hidden = false;

	for (uint32_t i = 0; i < p->nsamples; i++)
		is_used[p->samples[i].labels] = true;
	for (uint32_t s = 0; s < p->nlabel_sets; s++) {
		const struct label_set *set = &p->label_sets[s];
		const struct label *l = set_labels(p, s);

		for (uint32_t i = 0; is_used[s] && i < set->nstrings + set->nnumbers; i++) {
			bool is_shown = !show || matches_string(&shown, l[i].key);
			bool is_hidden = hide && matches_string(&hidden, l[i].key);

			any_shown |= is_shown;
			any_hidden |= is_hidden;
			keep[l[i].key] = is_shown && !is_hidden;
		}
	}
	profile_keep_label_keys(a, p, keep);
	if (show && !any_shown)
		warn(warnings, "TagShow");
	if (hide && !any_hidden)
		warn(warnings, "TagHide");
}

void profile_filter(struct arena *a, struct profile *p, const struct profile_filter *f,
		    struct buf *warnings)
{
	if (f->focus || f->ignore || f->hide || f->show)
		filter_names(a, p, f, warnings);
	if (f->show_from)
		filter_show_from(a, p, f->show_from, warnings);
	if (f->tagfocus || f->tagignore)
		filter_tags(a, p, f, warnings);
	if (f->tagshow || f->taghide)
		filter_tag_keys(a, p, f->tagshow, f->taghide, warnings);
	if (f->prune_from)
		profile_prune_from(a, p, f->prune_from);
}
