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

/* The same for a tree that is grown with other parameters. `pivot` and `root` are names. */
static const char *grown_text(struct world *w, const struct profile *p, struct path_params params,
			      const char *pivot, const char *root)
{
	struct granularity keep = { .inlines = true, .function = true };
	struct path_tree t = { .npaths = 0 };
	uint32_t nodes[10];
	struct str rest = str_of(root);

	frames_init(&w->arena, &t.frames, p, &keep, false);
	params.pivot = NONE;
	params.root = nodes;
	for (uint32_t i = 0; i < t.frames.nnodes; i++) {
		struct node_info info;

		frames_info(&t.frames, p, i, &info);
		if (str_eq(profile_str(p, info.name), str_of(pivot)))
			params.pivot = i;
	}
	while (rest.n) {
		struct str name = str_cut(&rest, ';');

		for (uint32_t i = 0; i < t.frames.nnodes; i++) {
			struct node_info info;

			frames_info(&t.frames, p, i, &info);
			if (str_eq(profile_str(p, info.name), name))
				nodes[params.nroot] = i;
		}
		params.nroot++;
	}
	path_tree_grow(&w->arena, &t, &(struct path_side){ .p = p, .frames = &t.frames }, 1,
		       &params);
	w->text.n = 0;
	for (uint32_t i = 0; i < t.npaths; i++) {
		for (uint32_t k = i; k; k = t.paths[k].parent) {
			struct node_info info;

			frames_info(&t.frames, p, t.paths[k].frame, &info);
			node_info_text(&w->text, p, &info);
			buf_char(&w->text, t.paths[k].parent ? '<' : ' ');
		}
		buf_printf(&w->text, "%lld-%lld\n", (long long)t.paths[i].now,
			   (long long)t.paths[i].lost_now);
	}
	buf_char(&w->text, '\0');
	return w->text.p;
}

static const char *grow(struct world *w, const char *stacks, struct path_params params,
			const char *pivot, const char *root)
{
	struct profile p = folded(w, stacks);

	return grown_text(w, &p, params, pivot, root);
}

TEST(trees_from_the_leaves)
{
	struct world w;

	world_init(&w);
	assert_string_equal(grow(&w, "main;f;g 3\nmain;g 4\nmain 2\n",
				 (struct path_params){ .is_inverted = true }, "", ""),
			    "9-0\ng 7-0\nmain 2-0\nf<g 3-0\nmain<g 4-0\nmain<f<g 3-0\n");
	world_release(&w);
}

TEST(trees_from_a_function_on)
{
	const char *stacks = "main;f;f;g 3\nmain;g;f 4\nmain;x 2\n";
	struct world w;

	world_init(&w);
	assert_string_equal(grow(&w, stacks, (struct path_params){ .fraction = 0 }, "f", ""),
			    "7-0\nf 7-0\nf<f 3-0\ng<f<f 3-0\n");
	assert_string_equal(grow(&w, stacks, (struct path_params){ .is_inverted = true }, "f", ""),
			    "7-0\nf 7-0\nmain<f 3-0\ng<f 4-0\nmain<g<f 4-0\n");
	world_release(&w);
}

TEST(recursion_is_one_frame)
{
	struct world w;

	world_init(&w);
	assert_string_equal(grow(&w, "main;f;f;f;g 3\nmain;f;g;f 4\n",
				 (struct path_params){ .collapses_recursion = true }, "", ""),
			    "7-0\nmain 7-0\nf<main 7-0\ng<f<main 7-0\nf<g<f<main 4-0\n");
	world_release(&w);
}

TEST(loops_are_left_out)
{
	const char *stacks = "main;f;g;f;h 3\nmain;f;f 4\nmain;g;f;g 5\n";
	struct world w;

	world_init(&w);
	assert_string_equal(
		grow(&w, stacks, (struct path_params){ .collapses_loops = true }, "", ""),
		"12-0\nmain 12-0\nf<main 7-0\ng<main 5-0\nh<f<main 3-0\n");
	assert_string_equal(
		grow(&w, "main;f;g;f 3\n",
		     (struct path_params){ .collapses_loops = true, .is_inverted = true }, "", ""),
		"3-0\nf 3-0\nmain<f 3-0\n");
	world_release(&w);
}

/* Functions of one letter are known by it. */
static uint32_t *letters(struct world *w, const struct profile *p, const struct frames *f)
{
	uint32_t *of = arena_many(&w->arena, f->nnodes, uint32_t);

	for (uint32_t i = 0; i < f->nnodes; i++) {
		struct node_info info;

		frames_info(f, p, i, &info);
		of[i] = (unsigned char)profile_str(p, info.name).p[0];
	}
	return of;
}

/* f is called by main once, and inlined into it three times. */
static struct profile inlined(struct world *w)
{
	struct profile p = folded(w, "main;f 1\nboth 3\n");
	const uint32_t *stack = p.stacks + p.samples[0].stack;
	struct location *both = &p.locations[p.stacks[p.samples[1].stack]];
	struct line *lines = arena_many(&w->arena, p.nlines + 2, struct line);

	memcpy(lines, p.lines, p.nlines * sizeof(*lines));
	for (uint32_t i = 0; i < 2; i++)
		lines[p.nlines + i] = p.lines[p.locations[stack[i]].first_line];
	both->first_line = p.nlines;
	both->nlines = 2;
	p.lines = lines;
	p.nlines += 2;
	return p;
}

/* "f 4 75%" of the last paths, whose parent is main. */
static const char *inlined_text(struct world *w, struct path_params params)
{
	struct granularity keep = { .inlines = true, .function = true };
	struct profile p = inlined(w);
	struct path_tree t = { .npaths = 0 };

	params.pivot = NONE;
	frames_init(&w->arena, &t.frames, &p, &keep, false);
	path_tree_grow(&w->arena, &t, &(struct path_side){ .p = &p, .frames = &t.frames }, 1,
		       &params);
	w->text.n = 0;
	for (uint32_t i = 1; i < t.npaths; i++) {
		struct node_info info;

		frames_info(&t.frames, &p, t.paths[i].frame, &info);
		node_info_text(&w->text, &p, &info);
		buf_printf(&w->text, " %lld %u%%\n", (long long)t.paths[i].now, t.paths[i].inlined);
	}
	buf_char(&w->text, '\0');
	return w->text.p;
}

TEST(what_is_inlined_here_and_called_there)
{
	struct world w;

	world_init(&w);
	assert_string_equal(inlined_text(&w, (struct path_params){ 0 }), "main 4 0%\nf 4 75%\n");
	assert_string_equal(inlined_text(&w, (struct path_params){ .splits_inlined = true }),
			    "main 4 0%\nf 1 0%\nf 3 100%\n");
	world_release(&w);
}

TEST(repeats_of_a_group_are_one_frame)
{
	struct granularity keep = { .inlines = true, .function = true };
	struct world w;
	struct profile p;
	struct path_tree t = { .npaths = 0 };
	uint32_t *names;

	world_init(&w);
	p = folded(&w, "main;a;b;c;main 1\n");
	frames_init(&w.arena, &t.frames, &p, &keep, false);
	names = letters(&w, &p, &t.frames);
	for (uint32_t i = 0; i < t.frames.nnodes; i++)
		if (names[i] != 'm')
			names[i] = 'g' | FRAME_GROUP;
	path_tree_grow(&w.arena, &t,
		       &(struct path_side){ .p = &p, .frames = &t.frames, .name_of = names }, 1,
		       &(struct path_params){ .pivot = NONE });
	assert_int_equal(t.npaths, 4);
	assert_int_equal(t.paths[1].frame, 'm');
	assert_int_equal(t.paths[2].frame, 'g');
	assert_int_equal(t.paths[3].frame, 'm');
	world_release(&w);
}

TEST(what_is_cut_is_lost_where_it_was)
{
	const char *stacks = "main;f;g 90\nmain;f;h 9\nmain;i;j 1\n";
	struct world w;

	world_init(&w);
	assert_string_equal(grow(&w, stacks, (struct path_params){ .fraction = 0.05 }, "", ""),
			    "100-0\nmain 100-1\nf<main 99-0\ng<f<main 90-0\nh<f<main 9-0\n");
	/* Of 99, and what is not below main;f. */
	assert_string_equal(grow(&w, stacks, (struct path_params){ .fraction = 0.1 }, "", "main;f"),
			    "100-0\nmain 100-1\nf<main 99-9\ng<f<main 90-0\n");
	assert_string_equal(grow(&w, stacks, (struct path_params){ .fraction = 0 }, "", "main;i"),
			    "100-0\nmain 100-99\ni<main 1-0\nj<i<main 1-0\n");
	world_release(&w);
}

TEST(two_profiles_by_common_names)
{
	struct granularity keep = { .inlines = true, .function = true };
	struct world w;
	struct profile a, b;
	struct frames frames[2];
	struct path_tree t = { .npaths = 0 };

	world_init(&w);
	a = folded(&w, "main;f 3\nmain;g 4\n");
	b = folded(&w, "main;g 5\n");
	frames_init(&w.arena, &frames[0], &a, &keep, false);
	frames_init(&w.arena, &frames[1], &b, &keep, false);
	path_tree_grow(
		&w.arena, &t,
		(struct path_side[]){
			{ .p = &a,
			  .frames = &frames[0],
			  .name_of = letters(&w, &a, &frames[0]),
			  .is_before = true },
			{ .p = &b, .frames = &frames[1], .name_of = letters(&w, &b, &frames[1]) } },
		2, &(struct path_params){ .pivot = NONE });
	assert_true(t.has_base);
	assert_int_equal(t.npaths, 4);
	assert_int_equal(t.paths[0].before, 7);
	assert_int_equal(t.paths[0].now, 5);
	for (uint32_t i = 2; i < 4; i++) {
		assert_int_equal(t.paths[i].before, t.paths[i].frame == 'g' ? 4 : 3);
		assert_int_equal(t.paths[i].now, t.paths[i].frame == 'g' ? 5 : 0);
	}
	world_release(&w);
}

TEST(a_stopped_walk_ends)
{
	struct world w;
	atomic_bool stop = true;

	world_init(&w);
	assert_string_equal(grow(&w, "main;f 3\n", (struct path_params){ .stop = &stop }, "", ""),
			    "0-0\n");
	world_release(&w);
}

TEST(the_heaviest_paths_stay)
{
	const char *stacks = "main;a;b;c;d 1\nmain;a;b;x 2\nmain;e;f;g 2\nmain;h 1\nmain;i;j 3\n";
	struct world w;

	world_init(&w);
	assert_string_equal(grow(&w, stacks, (struct path_params){ .max_paths = 4 }, "", ""),
			    "9-0\nmain 9-3\na<main 3-0\ni<main 3-3\nb<a<main 3-3\n");
	assert_string_equal(grow(&w, stacks, (struct path_params){ .max_paths = 1 }, "", ""),
			    "9-0\nmain 9-9\n");
	world_release(&w);
}

TEST(a_deep_path_ends_where_the_limit_is)
{
	struct world w;
	struct buf stack = { 0 };
	struct path_tree t = { .npaths = 0 };
	struct granularity keep = { .inlines = true, .function = true };
	struct profile p;

	world_init(&w);
	for (int i = 0; i < 1000; i++)
		buf_puts(&stack, "f;");
	buf_puts(&stack, "f 7\nf 1\n");
	buf_char(&stack, '\0');
	p = folded(&w, stack.p);
	frames_init(&w.arena, &t.frames, &p, &keep, false);
	path_tree_grow(&w.arena, &t, &(struct path_side){ .p = &p, .frames = &t.frames }, 1,
		       &(struct path_params){ .pivot = NONE, .max_paths = 50 });
	assert_int_equal(t.npaths, 51);
	assert_int_equal(t.paths[0].now, 8);
	assert_int_equal(t.paths[50].now, 7);
	assert_int_equal(t.paths[50].lost_now, 7);
	buf_release(&stack);
	world_release(&w);
}
