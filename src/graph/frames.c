#include "graph/frames.h"

#include <string.h>

#include "base/map.h"
#include "base/path.h"
#include "base/vec.h"

struct frame_reader {
	const struct profile *p;
	bool with_objects;
	uint32_t *clean_of; /* filename -> cleaned name + 1 */
};

struct frame_reader *frame_reader_new(struct arena *a, const struct profile *p, bool with_objects)
{
	struct frame_reader *r = arena_new(a, struct frame_reader);

	*r = (struct frame_reader){ p, with_objects, arena_many(a, p->strings->n, uint32_t) };
	return r;
}

static uint32_t clean_file(struct frame_reader *r, uint32_t file)
{
	struct buf clean = { 0 };

	if (!file)
		return 0;
	if (!r->clean_of[file]) {
		path_clean(&clean, profile_str(r->p, file));
		r->clean_of[file] = 1 + strings_add(r->p->strings, buf_view(&clean));
		buf_release(&clean);
	}
	return r->clean_of[file] - 1;
}

void frame_info(struct frame_reader *r, uint32_t loc, uint32_t line, struct node_info *info)
{
	const struct profile *p = r->p;
	const struct location *l = &p->locations[loc];
	const struct line *n = line < l->nlines ? &p->lines[l->first_line + line] : NULL;
	uint32_t object = l->mapping == NONE ? 0 : p->mappings[l->mapping].file;
	const struct function *f;

	*info = (struct node_info){ .address = l->address };
	if (!n || n->function == NONE) {
		info->object = object;
		return;
	}
	f = &p->functions[n->function];
	info->name = f->name;
	info->line = n->line;
	info->column = n->column;
	info->file = clean_file(r, f->filename);
	if (r->with_objects || !f->name) {
		info->object = object;
		info->start_line = f->start_line;
	}
}

void node_info_text(struct buf *out, const struct profile *p, const struct node_info *i)
{
	size_t start = out->n;

	if (i->address)
		buf_printf(out, "%016llx", (unsigned long long)i->address);
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

struct node_table {
	vec(struct node_info) infos;
	struct map map;
	uint64_t seed;
};

static bool same_info(const void *ctx, uint32_t index)
{
	const struct node_table *t = ((const void *const *)ctx)[0];

	return memcmp(&t->infos.at[index], ((const void *const *)ctx)[1],
		      sizeof(struct node_info)) == 0;
}

static uint32_t add_info(struct node_table *t, const struct node_info *info)
{
	const void *ctx[2] = { t, info };
	uint32_t at = map_put(&t->map, hash_bytes(t->seed, info, sizeof(*info)), t->infos.n,
			      same_info, ctx);

	if (at == t->infos.n)
		vec_push(&t->infos, *info);
	return at;
}

void frames_init(struct arena *a, struct frames *f, const struct profile *p, bool with_objects)
{
	struct frame_reader *r = frame_reader_new(a, p, with_objects);
	struct node_table table = { .seed = map_seed() };
	vec(uint32_t) lists = { 0 };
	struct node_info info;

	*f = (struct frames){ .of = arena_many(a, p->nlocations, uint32_t) };
	for (uint32_t loc = 0; loc < p->nlocations; loc++) {
		uint32_t n = p->locations[loc].nlines;

		if (n <= 1) {
			frame_info(r, loc, 0, &info);
			f->of[loc] = add_info(&table, &info);
			continue;
		}
		f->has_inlines = true;
		f->of[loc] = MANY_FRAMES | (uint32_t)lists.n;
		vec_push(&lists, n);
		while (n-- > 0) {
			frame_info(r, loc, n, &info);
			vec_push(&lists, add_info(&table, &info));
		}
	}
	map_release(&table.map);
	f->nnodes = (uint32_t)table.infos.n;
	f->infos = vec_adopt(a, &table.infos);
	f->lists = vec_adopt(a, &lists);
}
