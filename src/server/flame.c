#include "server/flame.h"

static void grow(struct flame *f, struct report_run *r, uint32_t max_paths, double fraction)
{
	struct graph_params params = { .keep = r->params->keep };
	struct path_side side = {
		.p = r->p, .frames = &f->frames, .value = r->params->value, .mean = r->params->mean
	};

	graph_frames(r->a, &f->frames, r->p, &params);
	path_tree_grow(r->a, &f->tree, &side, 1,
		       &(struct path_params){ .fraction = fraction,
					      .max_paths = max_paths,
					      .pivot = NONE,
					      .threads = r->params->threads,
					      .stop = r->params->stop });
}

static void add_name(struct flame *f, const struct report_run *r, uint32_t frame)
{
	struct buf text = { 0 };
	struct node_info info;

	frames_info(&f->frames, r->p, frame, &info);
	node_info_text(&text, r->p, &info);
	f->names[f->nnames++] = (struct str){ str_dup(r->a, buf_view(&text)), text.n };
	buf_release(&text);
}

static void make_names(struct flame *f, const struct report_run *r)
{
	uint32_t n = f->tree.npaths;
	uint32_t *known = arena_many(r->a, f->frames.nnodes + 1, uint32_t); /* from 1 */

	f->name_of = arena_many(r->a, n + 1, uint32_t);
	f->names = arena_many(r->a, n + 1, struct str);
	for (uint32_t i = 1; i < n; i++) {
		uint32_t frame = f->tree.paths[i].frame;

		if (!known[frame]) {
			add_name(f, r, frame);
			known[frame] = f->nnames;
		}
		f->name_of[i] = known[frame] - 1;
	}
}

void flame_grow(struct flame *f, struct report_run *r, uint32_t max_paths, double fraction)
{
	*f = (struct flame){ 0 };
	grow(f, r, max_paths, fraction);
	if (stop_asked(r->params->stop))
		return;
	f->own_now = path_tree_own(r->a, &f->tree, false);
	f->own_before = path_tree_own(r->a, &f->tree, true);
	make_names(f, r);
}
