#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"

struct profile_names {
	struct arena *a;
	struct profile *p;
	vec(struct line) lines;
	vec(struct function) functions;
	struct map map; /* of those that are new */
	struct location *to;
};

struct profile_names *profile_names_begin(struct arena *a, struct profile *p)
{
	struct profile_names *n = xcalloc(1, sizeof(*n));

	n->a = a;
	n->p = p;
	p->mappings = arena_copy(a, p->mappings, p->nmappings * sizeof(*p->mappings));
	p->locations = arena_copy(a, p->locations, p->nlocations * sizeof(*p->locations));
	vec_reserve(&n->lines, p->nlines);
	if (p->nlines)
		memcpy(n->lines.at, p->lines, p->nlines * sizeof(*p->lines));
	n->lines.n = p->nlines;
	vec_reserve(&n->functions, p->nfunctions);
	if (p->nfunctions)
		memcpy(n->functions.at, p->functions, p->nfunctions * sizeof(*p->functions));
	n->functions.n = p->nfunctions;
	return n;
}

static bool same_function(const void *ctx, uint32_t index)
{
	const struct profile_names *n = ctx;
	/* The one that is looked for lies behind the others. */
	const struct function *a = &n->functions.at[n->functions.n], *b = &n->functions.at[index];

	return a->name == b->name && a->system_name == b->system_name &&
	       a->filename == b->filename && a->start_line == b->start_line;
}

static uint32_t function_for(struct profile_names *n, const struct profile_frame *frame)
{
	struct function f = { .id = n->functions.n + 1, .start_line = frame->start_line };
	uint64_t hash;
	uint32_t at;

	f.name = strings_add(n->p->strings, frame->name);
	f.system_name = strings_add(n->p->strings, frame->system_name);
	f.filename = strings_add(n->p->strings, frame->file);
	hash = hash_mix(hash_mix((uint64_t)f.name << 32 | f.system_name, f.filename),
			(uint64_t)f.start_line ^ map_seed());
	vec_reserve(&n->functions, 1);
	n->functions.at[n->functions.n] = f;
	at = map_put(&n->map, hash, n->functions.n, same_function, n);
	n->functions.n += at == n->functions.n;
	return at;
}

bool profile_names_location(struct profile_names *n, uint32_t location, uint32_t nframes)
{
	if (nframes > UINT32_MAX - n->lines.n)
		return false;
	n->to = &n->p->locations[location];
	n->to->first_line = (uint32_t)n->lines.n;
	n->to->nlines = 0;
	n->to->is_folded = false;
	if (n->to->mapping != NONE)
		n->p->mappings[n->to->mapping].has_inline_frames = true;
	return true;
}

void profile_names_frame(struct profile_names *n, const struct profile_frame *frame)
{
	if (n->to->mapping != NONE) {
		struct mapping *m = &n->p->mappings[n->to->mapping];

		m->has_functions |= frame->name.n != 0;
		m->has_filenames |= frame->file.n != 0;
		m->has_line_numbers |= frame->line != 0;
	}
	vec_push(&n->lines, ((struct line){ .line = frame->line,
					    .column = frame->column,
					    .function = function_for(n, frame) }));
	n->to->nlines++;
}

void profile_names_end(struct profile_names *n)
{
	struct profile *p = n->p;

	p->nlines = (uint32_t)n->lines.n;
	p->lines = vec_adopt(n->a, &n->lines);
	p->nfunctions = (uint32_t)n->functions.n;
	p->functions = vec_adopt(n->a, &n->functions);
	map_release(&n->map);
	free(n);
}

bool location_has_name(const struct profile *p, const struct location *l)
{
	for (uint32_t i = 0; i < l->nlines; i++) {
		uint32_t f = p->lines[l->first_line + i].function;

		if (f != NONE && (p->functions[f].name || p->functions[f].system_name))
			return true;
	}
	return false;
}
