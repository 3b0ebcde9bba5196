#include "graph/frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/path.h"
#include "base/vec.h"

struct frame_reader {
	const struct profile *p;
	struct granularity keep;
	bool with_objects;
	uint32_t *clean_of; /* filename -> cleaned name + 1, for the first nclean strings */
	size_t nclean;
};

struct frame_reader *frame_reader_new(struct arena *a, const struct profile *p,
				      const struct granularity *keep, bool with_objects)
{
	struct frame_reader *r = arena_new(a, struct frame_reader);

	*r = (struct frame_reader){ .p = p, .keep = *keep, .with_objects = with_objects };
	if (keep->filename) {
		r->nclean = p->strings->n;
		r->clean_of = arena_many(a, r->nclean, uint32_t);
	}
	return r;
}

uint32_t frame_count(const struct frame_reader *r, uint32_t loc)
{
	uint32_t n = r->p->locations[loc].nlines;

	if (r->p->locations[loc].is_hidden)
		return 0;
	return n > 1 && r->keep.inlines ? n : 1;
}

static uint32_t clean_file(struct frame_reader *r, uint32_t file)
{
	struct buf clean = { 0 };
	uint32_t name;

	if (!file)
		return 0;
	if (file < r->nclean && r->clean_of[file])
		return r->clean_of[file] - 1;
	path_clean(&clean, profile_str(r->p, file));
	name = strings_add(r->p->strings, buf_view(&clean));
	buf_release(&clean);
	if (file < r->nclean)
		r->clean_of[file] = name + 1;
	return name;
}

/* The line of a frame; without inlines that is the last one. NULL: nothing is known of it. */
static const struct line *frame_line(const struct frame_reader *r, const struct location *l,
				     uint32_t frame)
{
	if (!r->keep.inlines && l->nlines)
		frame = l->nlines - 1;
	return frame < l->nlines ? &r->p->lines[l->first_line + frame] : NULL;
}

void frame_info(struct frame_reader *r, uint32_t loc, uint32_t frame, struct node_info *info)
{
	const struct profile *p = r->p;
	const struct granularity *keep = &r->keep;
	const struct location *l = &p->locations[loc];
	const struct line *n = frame_line(r, l, frame);
	uint32_t object = l->mapping == NONE ? 0 : p->mappings[l->mapping].file;
	const struct function *f;

	*info = (struct node_info){ .address = keep->address ? l->address : 0 };
	if (!n || n->function == NONE) {
		info->object = object;
		return;
	}
	f = &p->functions[n->function];
	info->name = keep->function ? f->name : 0;
	info->line = keep->line ? n->line : 0;
	info->column = keep->line && keep->column ? n->column : 0;
	info->file = keep->filename ? clean_file(r, f->filename) : 0;
	if (r->with_objects || !info->name) {
		info->object = object;
		info->start_line = f->start_line;
	}
}

void node_info_text(struct buf *out, const struct profile *p, const struct node_info *i)
{
	size_t start = out->n;

	if (i->address)
		buf_hex16(out, i->address);
	if (i->name) {
		if (out->n > start)
			buf_char(out, ' ');
		buf_str(out, profile_str(p, i->name));
	}
	if (i->line) {
		if (out->n > start)
			buf_char(out, ' ');
		buf_str(out, profile_str(p, i->file));
		buf_char(out, ':');
		buf_int(out, i->line);
		if (i->column) {
			buf_char(out, ':');
			buf_int(out, i->column);
		}
	} else if (i->file) {
		if (out->n > start)
			buf_char(out, ' ');
		buf_str(out, profile_str(p, i->file));
	} else if (!i->name) {
		if (out->n > start)
			buf_char(out, ' ');
		if (i->object) {
			buf_char(out, '[');
			buf_str(out, path_base(profile_str(p, i->object)));
			buf_char(out, ']');
		} else {
			buf_puts(out, "<unknown>");
		}
	}
}

void frames_info(const struct frames *f, const struct profile *p, uint32_t node,
		 struct node_info *info)
{
	const struct frame_place *at = &f->places[node];

	f->reader->p = p;
	frame_info(f->reader, at->loc, at->frame, info);
}

struct node_table {
	struct frame_reader *reader;
	vec(struct frame_place) places; /* by node: where it was seen first */
	struct map map;
	uint64_t seed;
	uint32_t *of_function; /* node + 1, where that depends on the function alone; or NULL */
};

struct node_lookup {
	struct node_table *t;
	struct node_info info;
};

static bool same_info(const void *ctx, uint32_t index)
{
	const struct node_lookup *x = ctx;
	const struct frame_place *at = &x->t->places.at[index];
	struct node_info info;

	frame_info(x->t->reader, at->loc, at->frame, &info);
	return memcmp(&info, &x->info, sizeof(info)) == 0;
}

static uint32_t add_info(const struct node_lookup *x, uint32_t loc, uint32_t frame)
{
	struct node_table *t = x->t;
	uint32_t at = map_put(&t->map, hash_bytes(t->seed, &x->info, sizeof(x->info)), t->places.n,
			      same_info, x);

	if (at == t->places.n)
		vec_push(&t->places, ((struct frame_place){ loc, frame }));
	return at;
}

/* The node of a frame. Where only its function counts, that is looked up once per function. */
static uint32_t add_frame(struct node_table *t, uint32_t loc, uint32_t frame)
{
	const struct profile *p = t->reader->p;
	const struct line *line = frame_line(t->reader, &p->locations[loc], frame);
	struct node_lookup x = { .t = t };
	uint32_t *known = NULL;
	uint32_t node;

	if (t->of_function && line && line->function != NONE)
		known = &t->of_function[line->function];
	if (known && *known)
		return *known - 1;
	frame_info(t->reader, loc, frame, &x.info);
	node = add_info(&x, loc, frame);
	if (known && x.info.name)
		*known = node + 1;
	return node;
}

void frames_init(struct arena *a, struct frames *f, const struct profile *p,
		 const struct granularity *keep, bool with_objects)
{
	struct frame_reader *r = frame_reader_new(a, p, keep, with_objects);
	struct node_table table = { .reader = r, .seed = map_seed() };
	vec(uint32_t) lists = { 0 };

	if (!keep->line && !keep->address && !with_objects)
		table.of_function = xcalloc(p->nfunctions, sizeof(uint32_t));
	*f = (struct frames){ .reader = r,
			      .first = arena_many(a, (size_t)p->nlocations + 1, uint32_t) };
	for (uint32_t loc = 0; loc < p->nlocations; loc++) {
		uint32_t n = frame_count(r, loc), inlined = 0;

		for (; n-- > 0; inlined = FRAME_INLINED)
			vec_push(&lists, inlined | add_frame(&table, loc, n));
		f->first[loc + 1] = (uint32_t)lists.n;
	}
	for (int i = 0; i < UNROLL_STEP; i++) /* which unroll reads, and drops */
		vec_push(&lists, 0);
	map_release(&table.map);
	free(table.of_function);
	f->nnodes = (uint32_t)table.places.n;
	f->places = vec_adopt(a, &table.places);
	f->lists = vec_adopt(a, &lists);
}
