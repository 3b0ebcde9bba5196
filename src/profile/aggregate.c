#include "profile/profile.h"

static void aggregate_functions(struct arena *a, struct profile *p, const struct granularity *keep)
{
	if (keep->function && keep->filename)
		return;
	p->functions = arena_copy(a, p->functions, p->nfunctions * sizeof(*p->functions));
	for (uint32_t i = 0; i < p->nfunctions; i++) {
		if (!keep->function)
			p->functions[i].name = p->functions[i].system_name = 0;
		if (!keep->filename)
			p->functions[i].filename = 0;
	}
}

static void aggregate_locations(struct arena *a, struct profile *p, const struct granularity *keep)
{
	if (keep->inlines && keep->address)
		return;
	p->locations = arena_copy(a, p->locations, p->nlocations * sizeof(*p->locations));
	for (uint32_t i = 0; i < p->nlocations; i++) {
		struct location *loc = &p->locations[i];

		if (!keep->inlines && loc->nlines > 1) {
			loc->first_line += loc->nlines - 1;
			loc->nlines = 1;
		}
		if (!keep->address)
			loc->address = 0;
	}
}

static void aggregate_lines(struct arena *a, struct profile *p, const struct granularity *keep)
{
	if (keep->line && keep->column)
		return;
	p->lines = arena_copy(a, p->lines, p->nlines * sizeof(*p->lines));
	for (uint32_t i = 0; i < p->nlines; i++) {
		if (!keep->line)
			p->lines[i].line = 0;
		p->lines[i].column = keep->line && keep->column ? p->lines[i].column : 0;
	}
}

void profile_aggregate(struct arena *a, struct profile *p, const struct granularity *keep)
{
	if (keep->inlines && keep->function && keep->filename && keep->line && keep->column &&
	    keep->address)
		return;
	p->mappings = arena_copy(a, p->mappings, p->nmappings * sizeof(*p->mappings));
	for (uint32_t i = 0; i < p->nmappings; i++) {
		p->mappings[i].has_inline_frames &= keep->inlines;
		p->mappings[i].has_functions &= keep->function;
		p->mappings[i].has_filenames &= keep->filename;
		p->mappings[i].has_line_numbers &= keep->line;
	}
	aggregate_functions(a, p, keep);
	aggregate_locations(a, p, keep);
	aggregate_lines(a, p, keep);
}
