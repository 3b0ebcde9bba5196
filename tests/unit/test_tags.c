#include "test.h"

#include "graph/graph.h"
#include "profiles.h"

enum { MANY = 50000 };
static const struct granularity by_function = { .inlines = true, .function = true };

/* `n` samples of the profile's, in turns, each of value 1, in turns without labels, of tenant a, of
 * tenant a with 1025 and with 1024 bytes, and of tenant b. */
static struct profile labelled(struct world *w, const char *stacks, uint32_t n)
{
	struct profile p = folded(w, stacks);
	uint32_t tenant = strings_add(p.strings, STR("tenant")),
		 bytes = strings_add(p.strings, STR("bytes"));
	struct label a = { .key = tenant, .text = strings_add(p.strings, STR("a")) },
		     b = { .key = tenant, .text = strings_add(p.strings, STR("b")) };
	struct label labels[] = {
		a, a, { .key = bytes, .number = 1025 }, a, { .key = bytes, .number = 1024 }, b
	};
	struct label_set sets[] = {
		{ 0, 0, 0 }, { 0, 1, 0 }, { 1, 1, 1 }, { 3, 1, 1 }, { 5, 1, 0 }
	};
	struct sample *samples = arena_many(&w->arena, n, struct sample);
	int64_t *values = arena_many(&w->arena, n, int64_t);

	for (uint32_t i = 0; i < n; i++) {
		samples[i] = p.samples[i % p.nsamples];
		samples[i].labels = i % 5;
		samples[i].row = i;
		values[i] = 1;
	}
	p.samples = samples;
	p.values = values;
	p.nsamples = n;
	p.labels = arena_copy(&w->arena, labels, sizeof(labels));
	p.label_sets = arena_copy(&w->arena, sets, sizeof(sets));
	p.nlabel_sets = 5;
	return p;
}

static void put_tag(struct buf *out, const struct node_tag *t)
{
	buf_printf(out, " %.*s %lld %lld", STR_ARG(t->name), (long long)t->flat, (long long)t->cum);
}

/* All nodes with their tags; valid until the next call. */
static const char *tags_text(struct world *w, struct profile *p, struct graph_params params)
{
	struct label_units units;
	struct graph g;

	profile_label_units(&w->arena, p, &units, &w->text);
	params.units = &units;
	params.tag_unit = STR("auto");
	params.keep = by_function;
	params.visual = true;
	params.threads = 2;
	graph_build(&w->arena, &g, p, &params);
	w->text.n = 0;
	for (uint32_t i = 0; i < g.norder; i++) {
		const struct node *n = &g.nodes[g.order[i]];

		buf_str(&w->text, n->text);
		for (size_t k = 0; k < n->nlabels; k++)
			put_tag(&w->text, &n->labels[k]);
		for (size_t k = 0; k < n->ngroups; k++) {
			if (n->groups[k].ntags)
				buf_printf(&w->text, " [%.*s]", STR_ARG(n->groups[k].label));
			for (size_t j = 0; j < n->groups[k].ntags; j++)
				put_tag(&w->text, &n->groups[k].tags[j]);
		}
		buf_char(&w->text, '\n');
	}
	buf_char(&w->text, '\0');
	return w->text.p;
}

TEST(tags_of_few_samples)
{
	struct world w;
	struct profile p;

	world_init(&w);
	p = labelled(&w, "main;f;main 1\n", 10);
	assert_string_equal(tags_text(&w, &p, (struct graph_params){ 0 }),
			    "main tenant:a 6 6 tenant:b 2 2 [tenant:a] 1kB 4 4\n"
			    "f tenant:a 0 6 tenant:b 0 2 [tenant:a] 1kB 0 4\n");
	world_release(&w);
}

TEST(tags_of_many_samples_are_counted_by_all_threads)
{
	struct world w;
	struct profile p;

	world_init(&w);
	p = labelled(&w, "main;f 1\nmain;g 1\n", MANY);
	assert_string_equal(
		tags_text(&w, &p, (struct graph_params){ 0 }),
		"main tenant:a 0 30000 tenant:b 0 10000 [tenant:a] 1kB 0 20000\n"
		"f tenant:a 15000 15000 tenant:b 5000 5000 [tenant:a] 1kB 10000 10000\n"
		"g tenant:a 15000 15000 tenant:b 5000 5000 [tenant:a] 1kB 10000 10000\n");
	world_release(&w);
}

TEST(light_tags_are_left_out)
{
	struct world w;
	struct profile p;

	world_init(&w);
	p = labelled(&w, "main;f 1\nmain;g 1\n", MANY);
	assert_string_equal(tags_text(&w, &p, (struct graph_params){ .node_fraction = 0.3 }),
			    "main tenant:a 0 30000 [tenant:a] 1kB 0 20000\n"
			    "f tenant:a 15000 15000\ng tenant:a 15000 15000\n");
	world_release(&w);
}

TEST(tags_stay_when_nodes_are_left_out_and_are_kept_for_the_next_graph)
{
	struct world w;
	struct profile p;
	struct graph_params params = { .max_nodes = 3,
				       .memo = graph_memo_new(NULL, NULL, MEMO_OTHER) };
	char *first;

	world_init(&w);
	p = labelled(&w, "main;f 1\nmain;g 1\nmain;f;h 1\n", MANY);
	first = strdup(tags_text(&w, &p, params));
	assert_non_null(strstr(first, "main tenant:a 0 30000 tenant:b 0 10000"));
	assert_null(strstr(first, "\ng "));
	assert_string_equal(tags_text(&w, &p, params), first);
	free(first);
	graph_memo_free(params.memo);
	world_release(&w);
}
