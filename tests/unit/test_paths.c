#include "test.h"

#include "graph/graph.h"
#include "profiles.h"

/* "main>f 10 0 10": a path, its weight now and before, its width; valid until the next call. */
static const char *paths_text(struct world *w, const struct profile *p, struct graph_params params)
{
	struct path_tree t;

	params.keep = (struct granularity){ .inlines = true, .function = true };
	path_tree_build(&w->arena, &t, p, &params);
	w->text.n = 0;
	for (uint32_t i = 0; i < t.npaths; i++) {
		const struct path *path = &t.paths[i];

		for (uint32_t k = i; k; k = t.paths[k].parent) {
			struct node_info info;

			frames_info(&t.frames, p, t.paths[k].frame, &info);
			node_info_text(&w->text, p, &info);
			buf_char(&w->text, t.paths[k].parent ? '<' : ' ');
		}
		buf_printf(&w->text, "%lld %lld %g\n", (long long)path->now,
			   (long long)path->before, path->width);
	}
	buf_char(&w->text, '\0');
	return w->text.p;
}

static const char *build(struct world *w, const char *stacks, struct graph_params params)
{
	struct profile p = folded(w, stacks);

	return paths_text(w, &p, params);
}

TEST(every_path_is_kept_apart)
{
	struct world w;

	world_init(&w);
	assert_string_equal(
		build(&w, "main;f;f 10\nmain;g;f 1\nmain 5\n", (struct graph_params){ 0 }),
		"16 0 16\nmain 16 0 16\nf<main 10 0 10\ng<main 1 0 1\n"
		"f<f<main 10 0 10\nf<g<main 1 0 1\n");
	world_release(&w);
}

TEST(light_paths_end_where_their_caller_does)
{
	struct world w;

	world_init(&w);
	assert_string_equal(build(&w, "main;f;g 90\nmain;f;h 9\nmain;i;j;k;l 1\n",
				  (struct graph_params){ .node_fraction = 0.05 }),
			    "100 0 100\nmain 100 0 100\nf<main 99 0 99\ng<f<main 90 0 90\n"
			    "h<f<main 9 0 9\n");
	world_release(&w);
}

/* Three samples of these weights, of which negative ones are the base's, and main;g 1. */
static struct profile compared(struct world *w, int64_t f, int64_t g, int64_t h)
{
	struct profile p = folded(w, "main;f 1\nmain;g 1\nmain;g;h 1\nmain;g 1\n");

	p.values[p.samples[0].row] = f;
	p.values[p.samples[1].row] = g;
	p.values[p.samples[2].row] = h;
	return p;
}

TEST(both_sides_of_a_comparison_are_kept)
{
	struct world w;
	struct profile p;

	world_init(&w);
	p = compared(&w, 10, -20, -5);
	assert_string_equal(paths_text(&w, &p, (struct graph_params){ 0 }),
			    "11 25 35\nmain 11 25 35\nf<main 10 0 10\ng<main 1 25 25\n"
			    "h<g<main 0 5 5\n");
	world_release(&w);
}

TEST(paths_that_shrank_can_be_left_out)
{
	struct world w;
	struct profile p;

	world_init(&w);
	p = compared(&w, 10, -20, 5);
	assert_string_equal(
		paths_text(&w, &p, (struct graph_params){ .drop_negative = true }),
		"15 0 15\nmain 15 0 15\nf<main 10 0 10\ng<main 5 0 5\nh<g<main 5 0 5\n");
	world_release(&w);
}

TEST(sums_that_wrap_are_nothing)
{
	struct world w;
	struct profile p;

	world_init(&w);
	p = compared(&w, INT64_MAX, INT64_MIN, INT64_MAX);
	assert_non_null(paths_text(&w, &p, (struct graph_params){ .node_fraction = 0.1 }));
	world_release(&w);
}

TEST(no_samples_are_one_empty_path)
{
	struct world w;
	struct profile p;

	world_init(&w);
	p = folded(&w, "main 1\n");
	p.nsamples = 0;
	assert_string_equal(paths_text(&w, &p, (struct graph_params){ 0 }), "0 0 0\n");
	world_release(&w);
}
