#include "test.h"

#include "graph/graph.h"
#include "profiles.h"

static const struct granularity by_function = { .inlines = true, .function = true };

/* All nodes in order, each with its edges; valid until the next call. */
static const char *graph_text(struct world *w, const struct graph *g)
{
	w->text.n = 0;
	for (uint32_t i = 0; i < g->norder; i++) {
		const struct node *n = &g->nodes[g->order[i]];

		buf_printf(&w->text, "%.*s %lld %lld", STR_ARG(n->text), (long long)n->flat,
			   (long long)n->cum);
		for (uint32_t k = 0; k < n->nout; k++) {
			const struct edge *e = &g->edges[n->out[k]];

			buf_printf(&w->text, e->is_residual ? " ..%.*s %lld" : " >%.*s %lld",
				   STR_ARG(g->nodes[e->to].text), (long long)e->weight);
		}
		buf_char(&w->text, '\n');
	}
	buf_char(&w->text, '\0');
	return w->text.p;
}

static const char *build(struct world *w, const char *stacks, struct graph_params params)
{
	struct profile p = folded(w, stacks);
	struct graph g;

	params.keep = by_function;
	graph_build(&w->arena, &g, &p, &params);
	return graph_text(w, &g);
}

TEST(recursion_counts_once)
{
	struct world w;

	world_init(&w);
	assert_string_equal(build(&w, "main;f;g;f;g 10\nmain;f 1\n", (struct graph_params){ 0 }),
			    "g 10 10 >f 10\nf 1 11 >g 10\nmain 0 11 >f 11\n");
	world_release(&w);
}

TEST(a_call_tree_keeps_paths_apart)
{
	struct world w;

	world_init(&w);
	assert_string_equal(
		build(&w, "main;f;f 10\nmain;g;f 1\n", (struct graph_params){ .call_tree = true }),
		"f 10 10\nf 1 1\nf 0 10 >f 10\ng 0 1 >f 1\nmain 0 11 >f 10 >g 1\n");
	world_release(&w);
}

TEST(a_trimmed_leaf_takes_its_weight_along)
{
	struct world w;
	struct graph_params params = { .node_fraction = 0.3 };

	world_init(&w);
	assert_string_equal(build(&w, "main;a;b 10\nmain;c 90\nmain;d;c 10\n", params),
			    "c 100 100\nmain 0 110 ..c 100\n");
	world_release(&w);
}

TEST(an_edge_over_trimmed_nodes_is_residual)
{
	struct world w;
	struct graph_params params = { .max_nodes = 2, .sort = GRAPH_SORT_CUM };

	world_init(&w);
	assert_string_equal(build(&w, "main;a;c 10\nmain;b;c 20\n", params),
			    "c 30 30\nmain 0 30 ..c 30\n");
	world_release(&w);
}

/* Whether they are looked for or all are counted depends on how many nodes match. */
TEST(edges_near_a_node_are_its_own)
{
	static const struct {
		const char *near, *want;
	} cases[] = {
		{ "^b$", "b 15 15\na 0 10 >b 10\nmain 0 22\nc 0 12 >b 5\nd 7 7\n" },
		{ "^[bcd]$", "b 15 15\na 0 10 >b 10\nmain 0 22 >c 12\nc 0 12 >d 7 >b 5\nd 7 7\n" },
	};
	struct world w;
	struct err e;

	world_init(&w);
	for (size_t i = 0; i < 2; i++) {
		struct regex *near = regex_compile(str_of(cases[i].near), &e);

		assert_string_equal(
			build(&w, "main;a;b 10\nmain;c;b 5\nmain;c;d 7\n",
			      (struct graph_params){ .near = near, .sort = GRAPH_SORT_NONE }),
			cases[i].want);
		regex_free(near);
	}
	world_release(&w);
}

/* Enough samples for the passes to be split. */
TEST(threads_count_what_one_counts)
{
	struct world w;
	struct buf stacks = { 0 }, one = { 0 };

	world_init(&w);
	for (int i = 0; i < 50000; i++)
		buf_printf(&stacks, "main;f%d;g%d;h%d;f%d;i%d %d\n", i % 100, i % 1009, i % 77,
			   i % 13, i % 3001, i % 7 + 1);
	buf_char(&stacks, '\0');
	for (int visual = 0; visual < 2; visual++) {
		struct graph_params params = { .threads = 1,
					       .node_fraction = 0.002,
					       .visual = visual };

		one.n = 0;
		buf_puts(&one, build(&w, stacks.p, params));
		buf_char(&one, '\0');
		params.threads = 3;
		assert_string_equal(build(&w, stacks.p, params), one.p);
	}
	buf_release(&stacks);
	buf_release(&one);
	world_release(&w);
}
