/* prune.c - removes frames by name, from the leaf's side: drop_frames, keep_frames, -prune_from. */
#include "profile/profile.h"

#include "base/regex.h"
#include "profile/narrow.h"

/* Without a leading dot, and without what starts at the first parenthesis; those of
 * "(anonymous namespace)" and "operator()" belong to the name. */
static struct str simplify(struct str name)
{
	const struct str inner[] = { STR("(anonymous namespace)"), STR("operator()") };
	size_t i = 0;

	if (name.n && name.p[0] == '.')
		name = str_from(name, 1);
	while (i < name.n) {
		struct str rest = str_from(name, i);

		if (str_has_prefix(rest, inner[0]))
			i += inner[0].n;
		else if (str_has_prefix(rest, inner[1]))
			i += inner[1].n;
		else if (name.p[i] == '(')
			return (struct str){ name.p, i };
		else
			i++;
	}
	return name;
}

enum fate { KEEP, PRUNE, PRUNE_BENEATH };

struct pruner {
	const struct profile *p;
	const struct regex *drop, *keep;
	char *known; /* by function: 0, 'y' or 'n' */
};

static bool is_dropped(const struct pruner *x, uint32_t function)
{
	char *known = &x->known[function];

	if (!*known) {
		struct str name = profile_str(x->p, x->p->functions[function].name);
		struct str simple = simplify(name);

		*known = name.n && regex_match(x->drop, simple) &&
					 !(x->keep && regex_match(x->keep, simple))
				 ? 'y'
				 : 'n';
	}
	return *known == 'y';
}

static enum fate judge(const struct pruner *x, struct location *loc)
{
	for (uint32_t i = loc->nlines; i-- > 0;) {
		uint32_t function = x->p->lines[loc->first_line + i].function;

		if (function == NONE || !is_dropped(x, function))
			continue;
		if (i + 1 == loc->nlines)
			return PRUNE;
		loc->first_line += i + 1;
		loc->nlines -= i + 1;
		return PRUNE_BENEATH;
	}
	return KEEP;
}

/* Cuts at the first marked frame below a frame of the user's. */
static void cut_stack(const struct profile *p, struct sample *s, const char *fates)
{
	const uint32_t *stack = p->stacks + s->stack;
	bool found_user = false;

	for (uint32_t i = s->nstack; i-- > 0;) {
		char fate = fates[stack[i]];

		if (fate == KEEP) {
			found_user = true;
		} else if (found_user) {
			uint32_t cut = fate == PRUNE ? i + 1 : i;

			s->stack += cut;
			s->nstack -= cut;
			return;
		}
	}
}

static struct regex *compile_whole(const struct profile *p, uint32_t string)
{
	struct buf pattern = { 0 };
	struct regex *re;
	struct err ignored;

	buf_puts(&pattern, "^(");
	buf_str(&pattern, profile_str(p, string));
	buf_puts(&pattern, ")$");
	re = regex_compile(buf_view(&pattern), &ignored);
	buf_release(&pattern);
	return re;
}

static void prune(struct arena *a, struct profile *p, const struct pruner *x)
{
	struct location *locations =
		arena_copy(a, p->locations, p->nlocations * sizeof(*locations));
	struct sample *samples = arena_copy(a, p->samples, p->nsamples * sizeof(*samples));
	char *fates = arena_many(a, p->nlocations, char);

	for (uint32_t i = 0; i < p->nlocations; i++)
		fates[i] = (char)judge(x, &locations[i]);
	for (uint32_t i = 0; i < p->nsamples; i++)
		cut_stack(p, &samples[i], fates);
	p->locations = locations;
	p->samples = samples;
}

void profile_drop_frames(struct arena *a, struct profile *p)
{
	struct regex *drop, *keep = NULL;
	struct pruner x = { .p = p };

	if (!p->drop_frames)
		return;
	x.drop = drop = compile_whole(p, p->drop_frames);
	if (p->keep_frames)
		x.keep = keep = compile_whole(p, p->keep_frames);
	x.known = arena_many(a, p->nfunctions, char);
	if (x.drop && (x.keep || !p->keep_frames))
		prune(a, p, &x);
	regex_free(drop);
	regex_free(keep);
}

/* Takes off what is inlined below a match; is there one? */
static bool cut_callees(const struct pruner *x, struct location *loc)
{
	for (uint32_t i = 0; i < loc->nlines; i++) {
		uint32_t function = x->p->lines[loc->first_line + i].function;

		if (function == NONE || !is_dropped(x, function))
			continue;
		loc->first_line += i;
		loc->nlines -= i;
		return true;
	}
	return false;
}

struct start {
	const struct profile *p;
	const bool *is_match; /* by location */
};

static bool start_at_match(const void *ctx, struct sample *s)
{
	const struct start *x = ctx;
	const uint32_t *stack = x->p->stacks + s->stack;
	uint32_t i = 0;

	while (i < s->nstack && !x->is_match[stack[i]])
		i++;
	if (i < s->nstack) {
		s->stack += i;
		s->nstack -= i;
	}
	return true;
}

void profile_prune_from(struct arena *a, struct profile *p, const struct profile_filter *f)
{
	struct pruner x = { .p = p, .drop = f->prune_from };
	struct location *locations =
		arena_copy(a, p->locations, p->nlocations * sizeof(*locations));
	bool *is_match = arena_many(a, p->nlocations, bool);

	x.known = arena_many(a, p->nfunctions, char);
	for (uint32_t i = 0; i < p->nlocations; i++)
		is_match[i] = cut_callees(&x, &locations[i]);
	narrow_samples(a, p, f, start_at_match, &(struct start){ p, is_match });
	p->locations = locations;
}
