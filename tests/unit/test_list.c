#include "test.h"

#include "stores.h"

/* With '/' for each NUL. */
static const char *grouped_text(struct place *p, const struct store_series_params *params)
{
	struct buf out = { 0 };
	struct store_line *lines;
	struct err e;
	size_t n;

	if (!store_series(p->store, params, &p->w.arena, &lines, &n, &e))
		fail_msg("%s", e.text);
	for (size_t i = 0; i < n; i++) {
		struct str rest = lines[i].name;

		while (rest.p) {
			buf_str(&out, str_cut(&rest, '\0'));
			buf_char(&out, rest.p ? '/' : ' ');
		}
	}
	return text_of(p, &out);
}

TEST(values_are_split_by_several_names)
{
	struct place p;
	struct store_series_params params = { .query = everything,
					      .step = 10ll * SECOND,
					      .by = STR("service\0pod") };

	place_init(&p);
	put_some(&p);
	assert_string_equal(grouped_text(&p, &params), "api/1 api/2 web/2 ");
	params.by = STR("pod\0nothing\0week");
	assert_string_equal(grouped_text(&p, &params), "1//1970-W01 2//1970-W01 ");
	place_release(&p);
}

TEST(values_of_a_call_site)
{
	static const struct str work[] = { { "main", 4 }, { "work", 4 } };
	static const struct str deep[] = { { "main", 4 }, { "work", 4 }, { "work", 4 } };
	static const struct str wrong[] = { { "work", 4 } };
	struct place p;
	struct store_series_params params = {
		.query = everything, .step = 10ll * SECOND, .call_site = work, .ncall_site = 2
	};

	place_init(&p);
	put_some(&p);
	assert_string_equal(series_text(&p, &params), ": 12@100 7@120\n");
	params.call_site = deep;
	params.ncall_site = 3;
	assert_string_equal(series_text(&p, &params), ": 1@100 0@120\n");
	params.call_site = wrong;
	params.ncall_site = 1;
	assert_string_equal(series_text(&p, &params), ": 0@100 0@120\n");
	place_release(&p);
}

/* "api/cpu{pod=1}: samples/count" for each series. */
static const char *list_text(struct place *p, const struct store_query *q)
{
	struct buf out = { 0 };
	struct store_listed *series;
	struct err e;
	size_t n;

	if (!store_list(p->store, q, &p->w.arena, &series, &n, &e))
		fail_msg("%s", e.text);
	for (size_t i = 0; i < n; i++) {
		const struct store_listed *s = &series[i];

		buf_printf(&out, "%.*s/%.*s{", STR_ARG(s->service), STR_ARG(s->type));
		for (size_t k = 0; k < s->nlabels; k++)
			buf_printf(&out, "%.*s=%.*s", STR_ARG(s->labels[k].key),
				   STR_ARG(s->labels[k].value));
		buf_puts(&out, "}:");
		for (size_t k = 0; k < s->ntypes; k++)
			buf_printf(&out, " %.*s/%.*s/%.*s", STR_ARG(s->types[k].type),
				   STR_ARG(s->types[k].unit), STR_ARG(s->types[k].period_type));
		buf_char(&out, '\n');
	}
	return text_of(p, &out);
}

TEST(series_are_listed_with_their_sample_types)
{
	struct place p;
	struct store_query q = { 0 }; /* all times */
	struct store_new trace = { .service = STR("web"),
				   .type = STR("trace"),
				   .created = 125ll * SECOND,
				   .bytes = STR("no profile") };
	struct store_meta meta;
	struct err e;

	place_init(&p);
	put_some(&p);
	assert_true(store_put(p.store, &trace, &p.w.arena, &meta, &e));
	assert_string_equal(list_text(&p, &q), "api/cpu{pod=1}: samples/count/samples\n"
					       "api/cpu{pod=2}: samples/count/samples\n"
					       "web/cpu{pod=2}: samples/count/samples\n"
					       "web/trace{}:\n");
	q.from = 101ll * SECOND;
	q.to = 108ll * SECOND;
	assert_string_equal(list_text(&p, &q), "api/cpu{pod=2}: samples/count/samples\n");
	q.to = 0;
	q.from = -1;
	assert_string_equal(list_text(&p, &q), "");
	reopen(&p, NULL);
	q.to = 200ll * SECOND;
	q.matchers = &(struct store_matcher){ .name = STR("service"), .value = STR("web") };
	q.nmatchers = 1;
	assert_string_equal(list_text(&p, &q),
			    "web/cpu{pod=2}: samples/count/samples\nweb/trace{}:\n");
	place_release(&p);
}

TEST(types_are_mixed_if_one_says_so)
{
	struct place p;
	struct store_query q = everything;
	struct store_merged merged;

	place_init(&p);
	put(&p, "api", "heap", "", 100, "main;work 10\n");
	put(&p, "web", "inuse_space", "", 101, "main;work 2\nmain 1\n");
	q.may_mix_types = true;
	assert_string_equal(merge_text(&p, &q, STORE_SUM, &merged), "12: work main\n1: main\n");
	place_release(&p);
}
