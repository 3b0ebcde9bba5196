/* filter.c - focus, ignore, hide, show, show_from, and the filters on labels.
 *
 * What matches is decided once per location or label set; samples are then narrowed by index, on
 * all cores. Stacks are not copied: they are cut by changing a sample's range, and where frames in
 * the middle go, their location is marked as hidden.
 */
#include "profile/profile.h"

#include <string.h>

#include "base/parallel.h"
#include "profile/matcher.h"
#include "profile/narrow.h"

enum { PIECES = 64, PARALLEL_SAMPLES = 20000, STEP = 8 };

static void warn(struct buf *warnings, const char *what)
{
	buf_printf(warnings, "%s expression matched no samples\n", what);
}

/* ---- focus, ignore, hide, show */

/* What a location has to say of the samples it is in. */
enum { FOCUSED = 1, SHOWN = 2, IGNORED = 4 };

struct name_filter {
	struct profile *p;
	struct matcher focus, ignore, hide, show;
	unsigned char *verdicts; /* by location */
	bool any_focused, any_ignored, any_hide_match, any_shown;
	struct line *lines;
	bool *stays; /* by sample */
	struct sample *samples;
	const atomic_bool *stop;
	/* Of each piece of the samples: where what stays of it starts, once all are counted. */
	uint32_t pieces[PIECES + 1];
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
		f->verdicts[index] |= IGNORED;
	else if (!f->focus.re || matches_location(&f->focus, loc))
		f->verdicts[index] |= FOCUSED;
	if (f->hide.re) {
		bool had_match = f->any_hide_match;

		f->any_hide_match = false;
		hide_lines(f, loc);
		if (f->any_hide_match && !loc->nlines)
			loc->is_hidden = true;
		f->any_hide_match |= had_match;
	}
	if (f->show.re) {
		show_lines(f, loc);
		if (!loc->nlines)
			loc->is_hidden = true;
	}
	if (!loc->is_hidden)
		f->verdicts[index] |= SHOWN;
}

/* Some location must be in focus, one shown, and none ignored. */
static bool sample_stays(const struct name_filter *f, const struct sample *s)
{
	const uint32_t *stack = f->p->stacks + s->stack;
	unsigned all = 0;
	uint32_t i = 0;

	/* Several at a time: a branch for each would be missed often. */
	for (; i + STEP <= s->nstack && (f->ignore.re || all != (FOCUSED | SHOWN)); i += STEP)
		for (uint32_t k = 0; k < STEP; k++)
			all |= f->verdicts[stack[i + k]];
	for (; i < s->nstack && (f->ignore.re || all != (FOCUSED | SHOWN)); i++)
		all |= f->verdicts[stack[i]];
	return all == (FOCUSED | SHOWN);
}

static uint32_t piece_start(const struct name_filter *f, size_t piece)
{
	return (uint32_t)(f->p->nsamples * piece / PIECES);
}

static void judge_samples(void *ctx, size_t index)
{
	struct name_filter *f = ctx;
	uint32_t n = 0;

	if (stop_asked(f->stop))
		return;
	for (uint32_t i = piece_start(f, index); i < piece_start(f, index + 1); i++) {
		f->stays[i] = sample_stays(f, &f->p->samples[i]);
		n += f->stays[i];
	}
	f->pieces[index] = n;
}

/* From the length of each piece to its start; the last start is the whole length. */
static void place_pieces(struct name_filter *f)
{
	uint32_t at = 0;

	for (size_t i = 0; i <= PIECES; i++) {
		uint32_t length = f->pieces[i];

		f->pieces[i] = at;
		at += length;
	}
}

static void take_samples(void *ctx, size_t index)
{
	const struct name_filter *f = ctx;
	uint32_t at = f->pieces[index], end = f->pieces[index + 1];

	if (stop_asked(f->stop))
		return;
	for (uint32_t i = piece_start(f, index); at < end; i++) {
		f->samples[at] = f->p->samples[i];
		at += f->stays[i];
	}
}

static void filter_samples(struct arena *a, struct name_filter *f, int threads)
{
	struct profile *p = f->p;
	struct arena scratch = { 0 };
	uint32_t n;

	f->stays = arena_many(&scratch, p->nsamples, bool);
	threads = p->nsamples > PARALLEL_SAMPLES ? threads : 1;
	parallel_for(threads, PIECES, judge_samples, f);
	place_pieces(f);
	n = f->pieces[PIECES];
	if (n < p->nsamples) {
		f->samples = arena_many(a, n, struct sample);
		huge_pages(f->samples, n * sizeof(*f->samples));
		parallel_for(threads, PIECES, take_samples, f);
		p->samples = f->samples;
		p->nsamples = n;
	}
	arena_release(&scratch);
}

static void judge_locations(struct arena *a, struct name_filter *f, bool changes_lines)
{
	struct profile *p = f->p;
	struct location *locations = p->locations;
	unsigned char all = 0;

	f->lines = p->lines;
	f->verdicts = arena_many(a, p->nlocations, unsigned char);
	if (changes_lines) {
		locations = arena_copy(a, p->locations, p->nlocations * sizeof(*locations));
		f->lines = arena_copy(a, p->lines, p->nlines * sizeof(*f->lines));
	}
	for (uint32_t i = 0; i < p->nlocations; i++) {
		judge_location(f, &locations[i], i);
		all |= f->verdicts[i];
		p->has_hidden |= locations[i].is_hidden;
	}
	f->any_focused = all & FOCUSED;
	f->any_ignored = all & IGNORED;
	p->locations = locations;
	p->lines = f->lines;
}

static void filter_names(struct arena *a, struct profile *p, const struct profile_filter *x,
			 struct buf *warnings)
{
	struct name_filter f = { .p = p,
				 .focus = matcher_of(a, p, x->focus),
				 .ignore = matcher_of(a, p, x->ignore),
				 .hide = matcher_of(a, p, x->hide),
				 .show = matcher_of(a, p, x->show),
				 .stop = x->stop };

	judge_locations(a, &f, x->hide || x->show);
	filter_samples(a, &f, x->threads);
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
	if (loc->is_hidden)
		return false;
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

struct top_match {
	const struct profile *p;
	const bool *is_match; /* by location */
};

/* Without callers above the outermost match. */
static bool end_at_match(const void *ctx, struct sample *s)
{
	const struct top_match *x = ctx;
	const uint32_t *stack = x->p->stacks + s->stack;

	while (s->nstack && !x->is_match[stack[s->nstack - 1]])
		s->nstack--;
	return s->nstack;
}

static void filter_show_from(struct arena *a, struct profile *p, const struct profile_filter *x,
			     struct buf *warnings)
{
	struct matcher m = matcher_of(a, p, x->show_from);
	struct location *locations =
		arena_copy(a, p->locations, p->nlocations * sizeof(*locations));
	bool *is_match = arena_many(a, p->nlocations, bool), any = false;

	for (uint32_t i = 0; i < p->nlocations; i++)
		any |= is_match[i] = cut_callers(&m, &locations[i]);
	narrow_samples(a, p, x, end_at_match, &(struct top_match){ p, is_match });
	p->locations = locations;
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

	for (uint32_t i = 0; i < p->nsamples && !stop_asked_at(x->stop, i); i++) {
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

void profile_drop_hidden(struct arena *a, struct profile *p, const atomic_bool *stop)
{
	uint32_t *stacks, n = 0;
	struct sample *samples;
	size_t total = 0;

	if (!p->has_hidden)
		return;
	for (uint32_t i = 0; i < p->nsamples; i++)
		total += p->samples[i].nstack;
	samples = arena_copy(a, p->samples, p->nsamples * sizeof(*samples));
	stacks = arena_many(a, total + 1, uint32_t);
	for (uint32_t i = 0; i < p->nsamples && !stop_asked_at(stop, i); i++) {
		struct sample *s = &samples[i];
		const uint32_t *from = p->stacks + s->stack, *end = from + s->nstack;

		s->stack = n;
		/* Which are hidden is as good as random: all are written, and some are written
		 * over. */
		for (; from < end; from++) {
			stacks[n] = *from;
			n += !p->locations[*from].is_hidden;
		}
		s->nstack = n - s->stack;
	}
	p->samples = samples;
	p->stacks = stacks;
	p->has_hidden = false;
}

void profile_filter(struct arena *a, struct profile *p, const struct profile_filter *f,
		    struct buf *warnings)
{
	if (f->focus || f->ignore || f->hide || f->show)
		filter_names(a, p, f, warnings);
	if (f->show_from)
		filter_show_from(a, p, f, warnings);
	if (f->tagfocus || f->tagignore)
		filter_tags(a, p, f, warnings);
	if (f->tagshow || f->taghide)
		filter_tag_keys(a, p, f->tagshow, f->taghide, warnings);
	if (f->prune_from)
		profile_prune_from(a, p, f);
}
