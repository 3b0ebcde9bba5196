#include "server/names_child.h"

#include "server/debug_child.h"

/* Where files are taken to be loaded; no linker links anything to there. */
#define BIAS (UINT64_C(1) << 44)

/* ---- the parent's side */

static struct mapping mapping_of(const struct names_place *at)
{
	if (at->key & NAMES_IS_OWN)
		return (struct mapping){ 0 };
	return (struct mapping){ .start = BIAS + at->offset,
				 .limit = BIAS + at->offset + at->size,
				 .offset = at->offset };
}

static bool same_mapping(const struct mapping *x, const struct mapping *y)
{
	return x->start == y->start && x->limit == y->limit && x->offset == y->offset;
}

static struct profile question_of(const struct names_job *job, struct arena *a,
				  struct strings *strings)
{
	struct profile p = debug_child_profile(a, strings);

	p.mappings = arena_many(a, job->n + 1, struct mapping);
	p.locations = arena_many(a, job->n + 1, struct location);
	for (size_t i = 0; i < job->n; i++) {
		const struct names_place *at = &job->places[i];
		struct mapping m = mapping_of(at);

		if (!p.nmappings || !same_mapping(&p.mappings[p.nmappings - 1], &m)) {
			m.id = p.nmappings + 1;
			p.mappings[p.nmappings++] = m;
		}
		p.locations[i] = (struct location){
			.id = i + 1,
			.mapping = p.nmappings - 1,
			.address =
				at->key & NAMES_IS_OWN ? at->key & ~NAMES_IS_OWN : BIAS + at->key,
		};
	}
	p.nlocations = (uint32_t)job->n;
	return p;
}

bool names_child_ask(const struct names_job *job, struct arena *a, struct strings *strings,
		     struct profile *out, struct err *e)
{
	struct debug_child child = { .program = job->program,
				     .command = "names",
				     .path = job->path,
				     .build_id = job->build_id,
				     .max_seconds = DEBUG_CHILD_SECONDS,
				     .max_bytes = DEBUG_CHILD_BYTES,
				     .stop = job->stop };
	struct profile p = question_of(job, a, strings);

	if (!debug_child_ask(&child, &p, a, strings, out, e))
		return false;
	return out->nlocations == job->n || err_set(e, ERR_FORMAT, "it said something else");
}

/* ---- the child's side */

static void name_locations(struct arena *a, struct profile *p, struct symbolizer *s)
{
	const struct object *o = symbolizer_object(s);
	struct profile_names *names = profile_names_begin(a, p);
	struct err ignored;

	for (uint32_t i = 0; i < p->nlocations; i++) {
		const struct mapping *m = &p->mappings[p->locations[i].mapping];
		struct object_place place = { m->start, m->limit, m->offset, STR("") };
		const struct symbol_frame *frames = NULL;
		uint64_t address;
		size_t n = 0;

		if (object_debug_address(o, &place, p->locations[i].address, &address, &ignored))
			n = symbolizer_find(s, address, &frames);
		debug_child_put_frames(names, i, frames, n);
	}
	profile_names_end(names);
}

static bool name_all(struct arena *a, struct profile *p, const char *path, struct str build_id,
		     struct err *e)
{
	struct symbolizer_params params = { .detail = SYMBOL_FULL, .leave_unknown = true };
	struct symbolizer *s = symbolizer_open(path, &params, e);
	bool ok = s && debug_child_check(symbolizer_object(s), build_id, e);

	if (ok) {
		name_locations(a, p, s);
		profile_demangle(a, p, DEMANGLE_DEFAULT, false);
	}
	if (s)
		symbolizer_close(s);
	return ok;
}

void names_child_answer(const char *path, struct str build_id, struct str question, struct buf *out)
{
	debug_child_answer(name_all, path, build_id, question, out);
}
