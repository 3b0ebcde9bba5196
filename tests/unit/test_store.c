#include "test.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "stores.h"

static const char *get_text(struct place *p, const struct store_id *id)
{
	struct store_meta meta;
	struct profile profile;
	struct str bytes;
	struct err e;

	if (!store_get(p->store, id, &p->w.arena, &p->w.strings, &meta, &profile, &bytes, &e))
		return NULL;
	return samples_text(&p->w, &profile);
}

/* The seconds of what is found. */
static const char *find_text(struct place *p, const struct store_query *q)
{
	struct buf out = { 0 };
	struct store_meta *metas;
	struct err e;
	size_t n;

	if (!store_find(p->store, q, &p->w.arena, &metas, &n, &e))
		fail_msg("%s", e.text);
	for (size_t i = 0; i < n; i++)
		buf_printf(&out, "%.*s@%lld ", STR_ARG(metas[i].service),
			   (long long)(metas[i].created / SECOND));
	return text_of(p, &out);
}

static const char *names_text(struct place *p, const struct store_query *q, const char *of)
{
	struct buf out = { 0 };
	struct store_name *names;
	struct err e;
	size_t n;

	if (!store_names(p->store, q, str_of(of), &p->w.arena, &names, &n, &e))
		fail_msg("%s", e.text);
	for (size_t i = 0; i < n; i++)
		buf_printf(&out, "%.*s:%llu/%llu@%lld-%lld ", STR_ARG(names[i].name),
			   (unsigned long long)names[i].nseries,
			   (unsigned long long)names[i].nprofiles,
			   (long long)(names[i].first / SECOND),
			   (long long)(names[i].last / SECOND));
	return text_of(p, &out);
}

static void add_to_batch(struct place *p, struct store_batch *b, const char *service,
			 int64_t seconds, const char *stacks)
{
	struct profile profile = folded(&p->w, stacks);
	struct store_new new = { .service = str_of(service),
				 .type = STR("cpu"),
				 .created = seconds * SECOND,
				 .profile = &profile };
	struct err e;

	if (!store_batch_add(b, &new, &e))
		fail_msg("%s", e.text);
}

TEST(a_batch_is_stored_as_a_whole)
{
	struct place p;
	struct store_batch *b;
	struct store_stats stats;
	struct err e;

	place_init(&p);
	b = store_batch_new(p.store);
	add_to_batch(&p, b, "a", 10, "main;work 1");
	add_to_batch(&p, b, "b", 20, "main;work 2");
	add_to_batch(&p, b, "a", 30, "main;other 3");
	assert_string_equal(find_text(&p, &everything), "");
	assert_true(store_batch_commit(b, &e));
	store_batch_free(b);
	assert_string_equal(find_text(&p, &everything), "a@10 b@20 a@30 ");
	store_stats(p.store, &stats);
	assert_int_equal(stats.nprofiles, 3);
	assert_int_equal(stats.ncommits, 1);
	reopen(&p, NULL);
	assert_string_equal(find_text(&p, &everything), "a@10 b@20 a@30 ");
	place_release(&p);
}

TEST(a_batch_that_is_not_committed_leaves_nothing)
{
	struct place p;
	struct store_batch *b;
	struct err e;

	place_init(&p);
	b = store_batch_new(p.store);
	add_to_batch(&p, b, "a", 10, "main;work 1");
	store_batch_free(b);
	b = store_batch_new(p.store);
	assert_true(store_batch_commit(b, &e));
	store_batch_free(b);
	assert_string_equal(find_text(&p, &everything), "");
	put(&p, "a", "cpu", "", 20, "main;work 2");
	reopen(&p, NULL);
	assert_string_equal(find_text(&p, &everything), "a@20 ");
	place_release(&p);
}

TEST(ids_are_as_profefe_prints_them)
{
	struct store_id id, again;
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof(id.at); i++)
		id.at[i] = (unsigned char)(0x4d + 37 * i);
	store_id_print(&out, &id);
	assert_int_equal(out.n, STORE_ID_CHARS);
	assert_true(store_id_parse(buf_view(&out), &again));
	assert_memory_equal(&id, &again, sizeof(id));
	assert_true(store_id_parse(STR("dbsvu938di18pqh8frj0"), &id));
	assert_int_equal(id.at[0], 0x6a);
	assert_false(store_id_parse(STR("dbsvu938di18pqh8frj"), &id));
	assert_false(store_id_parse(STR("dbsvu938di18pqh8frj1"), &id));
	assert_false(store_id_parse(STR("dbsvu938di18pqh8frjw"), &id));
	assert_false(store_id_parse(STR("DBSVU938DI18PQH8FRJ0"), &id));
	buf_release(&out);
}

TEST(what_was_put_is_got_also_after_opening_again)
{
	struct place p;
	struct store_meta a, b;
	struct store_id other;

	place_init(&p);
	a = put(&p, "api", "cpu", "version=1,dc=x", 100, "main;work 10\nmain 5\n");
	b = put(&p, "api", "cpu", "dc=x,version=1", 101, "main;work 3\n");
	assert_string_equal(get_text(&p, &a.id), "10: work main\n5: main\n");
	assert_int_equal(a.nlabels, 2);
	assert_true(str_eq(a.labels[0].key, STR("dc")));
	assert_int_equal(a.nsamples, 2);
	assert_true(a.bytes > 0);
	reopen(&p, NULL);
	assert_string_equal(get_text(&p, &a.id), "10: work main\n5: main\n");
	assert_string_equal(get_text(&p, &b.id), "3: work main\n");
	put(&p, "api", "cpu", "dc=x,version=1", 102, "main;other 3\n");
	assert_string_equal(get_text(&p, &b.id), "3: work main\n");
	assert_string_equal(find_text(&p, &everything), "api@100 api@101 api@102 ");
	other = a.id;
	other.at[11]--;
	assert_null(get_text(&p, &other));
	place_release(&p);
}

TEST(bytes_that_are_no_profile_are_kept)
{
	struct place p;
	struct store_new new = { .service = STR("api"),
				 .type = STR("trace"),
				 .created = 7,
				 .bytes = STR("go 1.22 trace\0\0\0") };
	struct store_meta meta;
	struct profile profile;
	struct str bytes;
	struct err e;

	place_init(&p);
	assert_true(store_put(p.store, &new, &p.w.arena, &meta, &e));
	assert_true(store_get(p.store, &meta.id, &p.w.arena, &p.w.strings, &meta, &profile, &bytes,
			      &e));
	assert_null(profile.strings);
	assert_true(str_eq(bytes, new.bytes));
	assert_int_equal(meta.created, 7);
	place_release(&p);
}

TEST(finds_by_time_labels_and_limit)
{
	struct place p;
	struct store_query q = everything;
	struct store_matcher m[2];
	struct regex *re;
	struct err e;

	place_init(&p);
	put(&p, "api", "cpu", "version=1.0", 100, "a 1\n");
	put(&p, "api", "cpu", "version=1.1", 90, "a 1\n");
	put(&p, "web", "heap", "", 95, "a 1\n");
	put(&p, "web", "cpu", "version=2", 105, "a 1\n");
	assert_string_equal(find_text(&p, &q), "api@90 web@95 api@100 web@105 ");
	q.limit = 2;
	assert_string_equal(find_text(&p, &q), "api@100 web@105 ");
	q = everything;
	q.from = 95ll * SECOND;
	q.to = 100ll * SECOND;
	assert_string_equal(find_text(&p, &q), "web@95 api@100 ");
	q = everything;
	q.matchers = m;
	q.nmatchers = 1;
	m[0] = (struct store_matcher){ STR("service"), STORE_EQUAL, STR("web"), NULL };
	assert_string_equal(find_text(&p, &q), "web@95 web@105 ");
	m[0] = (struct store_matcher){ STR("version"), STORE_EQUAL, STR(""), NULL };
	assert_string_equal(find_text(&p, &q), "web@95 ");
	m[0] = (struct store_matcher){ STR("version"), STORE_NOT_EQUAL, STR("2"), NULL };
	assert_string_equal(find_text(&p, &q), "api@90 web@95 api@100 ");
	re = regex_compile(STR("1.*"), &e);
	m[0] = (struct store_matcher){ STR("version"), STORE_LIKE, STR("1.*"), re };
	assert_string_equal(find_text(&p, &q), "api@90 api@100 ");
	m[0].op = STORE_NOT_LIKE;
	m[1] = (struct store_matcher){ STR("type"), STORE_EQUAL, STR("cpu"), NULL };
	q.nmatchers = 2;
	assert_string_equal(find_text(&p, &q), "web@105 ");
	regex_free(re);
	place_release(&p);
}

TEST(names_have_counts)
{
	struct place p;
	struct store_query q = { 0 };

	place_init(&p);
	put(&p, "api", "cpu", "version=1,dc=x", 100, "a 1\n");
	put(&p, "api", "cpu", "version=1,dc=y", 101, "a 1\n");
	put(&p, "api", "cpu", "version=1,dc=y", 99, "a 1\n");
	put(&p, "web", "heap", "version=2", 105, "a 1\n");
	for (int i = 0; i < 2; i++) {
		assert_string_equal(names_text(&p, &q, "service"),
				    "api:2/3@99-101 web:1/1@105-105 ");
		assert_string_equal(names_text(&p, &q, ""), "dc:2/3@99-101 version:3/4@99-105 ");
		assert_string_equal(names_text(&p, &q, "dc"), "x:1/1@100-100 y:1/2@99-101 ");
		reopen(&p, NULL);
	}
	q.from = 100ll * SECOND;
	q.to = 101ll * SECOND;
	assert_string_equal(names_text(&p, &q, "type"), "cpu:2/2@100-101 ");
	place_release(&p);
}

TEST(one_process_has_the_folder)
{
	struct place p;
	struct store_params params = { 0 };
	struct err e;

	place_init(&p);
	params.dir = p.dir;
	assert_null(store_open(&params, &e));
	assert_int_equal(e.kind, ERR_IO);
	assert_non_null(strstr(e.text, "another process"));
	place_release(&p);
}

TEST(series_are_limited)
{
	struct place p;
	struct store_params params = { .max_series = 3, .max_service_series = 2 };
	struct profile profile;
	struct store_label label = { STR("pod"), STR("3") };
	struct store_new new = { .service = STR("a"),
				 .type = STR("cpu"),
				 .labels = &label,
				 .nlabels = 1,
				 .profile = &profile };
	struct store_meta meta;
	struct err e;

	place_init(&p);
	reopen(&p, &params);
	put(&p, "a", "cpu", "pod=1", 1, "a 1\n");
	put(&p, "a", "cpu", "pod=2", 1, "a 1\n");
	profile = folded(&p.w, "a 1\n");
	assert_false(store_put(p.store, &new, &p.w.arena, &meta, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_int_equal(strncmp(e.text, "max-service-series:", 19), 0);
	put(&p, "b", "cpu", "pod=2", 1, "a 1\n");
	new.service = STR("c");
	assert_false(store_put(p.store, &new, &p.w.arena, &meta, &e));
	assert_int_equal(strncmp(e.text, "max-series:", 11), 0);
	put(&p, "b", "cpu", "pod=2", 1, "a 1\n");
	place_release(&p);
}

TEST(merging_adds_up_over_series_and_services)
{
	struct place p;
	struct store_query q = everything;
	struct store_merged merged;

	place_init(&p);
	put(&p, "api", "cpu", "pod=1", 100, "main;work 10\nmain 5\n");
	put(&p, "api", "cpu", "pod=2", 101, "main;work 1\nmain;idle 2\n");
	assert_string_equal(merge_text(&p, &q, STORE_SUM, &merged),
			    "11: work main\n5: main\n2: idle main\n");
	assert_int_equal(merged.nprofiles, 2);
	assert_int_equal(merged.nseries, 2);
	assert_int_equal(merged.first, 100ll * SECOND);
	assert_int_equal(merged.last, 101ll * SECOND);
	put(&p, "web", "cpu", "pod=2", 102, "main;work 7\n");
	put(&p, "web", "cpu", "pod=2", 103, "main;work 2\n");
	assert_string_equal(merge_text(&p, &q, STORE_AS_TYPE, &merged),
			    "20: work main\n5: main\n2: idle main\n");
	q.limit = 3;
	assert_string_equal(merge_text(&p, &q, STORE_SUM, &merged),
			    "10: work main\n2: idle main\n");
	q.limit = 1;
	assert_string_equal(merge_text(&p, &q, STORE_SUM, &merged), "2: work main\n");
	q = everything;
	assert_string_equal(merge_text(&p, &q, STORE_LAST, &merged),
			    "13: work main\n5: main\n2: idle main\n");
	assert_int_equal(merged.nprofiles, 3);
	assert_string_equal(merge_text(&p, &q, STORE_MAX, &merged),
			    "18: work main\n5: main\n2: idle main\n");
	assert_string_equal(merge_text(&p, &q, STORE_MEAN, &merged),
			    "5: work main\n1: main\n1: idle main\n");
	q.to = 50;
	assert_string_equal(merge_text(&p, &q, STORE_SUM, &merged), "nothing found");
	put(&p, "web", "heap", "pod=2", 103, "main;work 2\n");
	assert_non_null(strstr(merge_text(&p, &everything, STORE_SUM, &merged), "several types"));
	place_release(&p);
}

TEST(gauges_are_averaged)
{
	struct place p;
	struct store_merged merged;

	place_init(&p);
	put(&p, "api", "goroutine", "", 100, "main;work 10\nmain 5\n");
	put(&p, "api", "goroutine", "", 101, "main;work 20\nmain 5\n");
	assert_string_equal(merge_text(&p, &everything, STORE_AS_TYPE, &merged),
			    "15: work main\n5: main\n");
	place_release(&p);
}

static const char *levels_text(struct place *p, const struct store_series_params *params)
{
	struct buf out = { 0 };
	struct store_line *lines;
	struct err e;
	size_t n;

	if (!store_series(p->store, params, &p->w.arena, &lines, &n, &e))
		fail_msg("%s", e.text);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < lines[i].n; k++)
			buf_printf(&out, "%g@%lld/%llu ", lines[i].points[k].level,
				   (long long)(lines[i].points[k].time / SECOND),
				   (unsigned long long)lines[i].points[k].nprofiles);
	return text_of(p, &out);
}

/* Two that tell each 40 seconds, not at the same time: what each has told last counts. */
TEST(levels_are_held_between_profiles)
{
	struct place p;
	struct store_series_params params = { .query = everything,
					      .step = 10ll * SECOND,
					      .has_levels = true };

	place_init(&p);
	put(&p, "api", "cpu", "pod=1", 100, "main 10\n");
	put(&p, "api", "cpu", "pod=1", 140, "main 20\n");
	put(&p, "api", "cpu", "pod=2", 120, "main 30\n");
	put(&p, "api", "cpu", "pod=2", 160, "main 30\n");
	assert_string_equal(levels_text(&p, &params),
			    "1@100/1 1@110/0 4@120/1 4@130/0 5@140/1 5@150/0 5@160/1 5@170/0 "
			    "3@180/0 3@190/0 ");
	params.query.to = 165ll * SECOND;
	params.query.from = 120ll * SECOND;
	assert_string_equal(levels_text(&p, &params), "3@120/1 3@130/0 5@140/1 3@150/0 6@160/1 ");
	params.has_levels = false;
	assert_string_equal(series_text(&p, &params), ": 30@120 20@140 30@160\n");
	place_release(&p);
}

TEST(values_over_time)
{
	struct place p;
	struct store_series_params params = { .query = everything,
					      .step = 10ll * SECOND,
					      .how = STORE_AS_TYPE };

	place_init(&p);
	put_some(&p);
	assert_string_equal(series_text(&p, &params), ": 19@100 7@120\n");
	params.by = STR("service");
	assert_string_equal(series_text(&p, &params), "api: 19@100\nweb: 7@120\n");
	params.how = STORE_LAST;
	assert_string_equal(series_text(&p, &params), "api: 4@100\nweb: 7@120\n");
	params.how = STORE_MAX;
	assert_string_equal(series_text(&p, &params), "api: 18@100\nweb: 7@120\n");
	params.how = STORE_MEAN;
	params.by = STR("pod");
	assert_string_equal(series_text(&p, &params), "1: 8@100\n2: 3@100 7@120\n");
	params = (struct store_series_params){ .query = everything,
					       .step = 10ll * SECOND,
					       .function = STR("work") };
	assert_string_equal(series_text(&p, &params), ": 12@100 7@120\n");
	params.function = STR("main");
	params.is_flat = true;
	assert_string_equal(series_text(&p, &params), ": 5@100 0@120\n");
	params.query.limit = 2;
	params.is_flat = false;
	assert_string_equal(series_text(&p, &params), ": 1@100 7@120\n");
	place_release(&p);
}

static const char *top_text(struct place *p, const struct store_top_params *params)
{
	struct buf out = { 0 };
	struct store_top top;
	struct err e;

	if (!store_top(p->store, params, &p->w.arena, &top, &e))
		fail_msg("%s", e.text);
	buf_printf(&out, "%lld of %llu\n", (long long)top.total, (unsigned long long)top.nprofiles);
	for (size_t i = 0; i < top.n; i++)
		buf_printf(&out, "%.*s %.*s %lld %lld %llu\n", STR_ARG(top.rows[i].function),
			   STR_ARG(top.rows[i].by), (long long)top.rows[i].flat,
			   (long long)top.rows[i].cum, (unsigned long long)top.rows[i].nservices);
	return text_of(p, &out);
}

TEST(top_functions_over_all_services)
{
	struct place p;
	struct store_top_params params = { .query = everything };

	place_init(&p);
	put_some(&p);
	assert_string_equal(top_text(&p, &params), "26 of 4\nwork  19 19 2\nmain  5 26 2\n"
						   "idle  2 2 1\n");
	params.order = STORE_TOP_CUM;
	params.limit = 2;
	assert_string_equal(top_text(&p, &params), "26 of 4\nmain  5 26 2\nwork  19 19 2\n");
	params.order = STORE_TOP_FLAT;
	params.by = STR("service");
	assert_string_equal(top_text(&p, &params), "26 of 4\nwork api 12 12 1\nwork web 7 7 1\n");
	params.by = STR("week");
	assert_string_equal(top_text(&p, &params),
			    "26 of 4\nwork 1970-W01 19 19 2\nmain 1970-W01 5 26 2\n");
	place_release(&p);
}

TEST(frames_without_names_are_told_by_their_binary)
{
	struct place p;
	struct store_top_params params = { .query = everything };
	struct store_series_params series = { .query = everything, .step = 10ll * SECOND };
	struct mapping libc = { .id = 1, .start = 0x1000, .limit = 0x2000 };
	struct profile profile;
	struct store_new new = { .service = STR("api"), .type = STR("cpu"), .profile = &profile };
	struct store_meta meta;
	struct location *locations;
	struct err e;

	place_init(&p);
	profile = folded(&p.w, "main;work;stripped 10\nmain;nowhere 3\n");
	libc.file = strings_add(&p.w.strings, STR("/lib/libc.so.6"));
	profile.mappings = &libc;
	profile.nmappings = 1;
	locations =
		arena_copy(&p.w.arena, profile.locations, profile.nlocations * sizeof(*locations));
	for (uint32_t i = 0; i < profile.nlocations; i++) {
		uint32_t function = profile.lines[locations[i].first_line].function;
		struct str name = profile_str(&profile, profile.functions[function].name);

		if (str_eq(name, STR("stripped")) || str_eq(name, STR("nowhere")))
			locations[i].nlines = 0;
		if (str_eq(name, STR("stripped"))) {
			locations[i].mapping = 0;
			locations[i].address = 0x1234;
		}
	}
	profile.locations = locations;
	new.created = 100ll * SECOND;
	if (!store_put(p.store, &new, &p.w.arena, &meta, &e))
		fail_msg("%s", e.text);
	assert_string_equal(top_text(&p, &params),
			    "13 of 1\n[libc.so.6]  10 10 1\n"
			    "<unknown>  3 3 1\nmain  0 13 1\nwork  0 10 1\n");
	series.function = STR("[libc.so.6]");
	assert_string_equal(series_text(&p, &series), ": 10@100\n");
	series.function = STR("<unknown>");
	assert_string_equal(series_text(&p, &series), ": 3@100\n");
	series.function = STR("[libm.so.6]");
	assert_string_equal(series_text(&p, &series), ": 0@100\n");
	place_release(&p);
}

TEST(deleted_is_gone_with_what_only_it_needed)
{
	struct place p;
	struct store_query q = everything;
	struct store_matcher api = { STR("service"), STORE_EQUAL, STR("api"), NULL };
	struct store_stats stats;
	struct err e;
	uint64_t n;

	place_init(&p);
	put_some(&p);
	q.to = 101ll * SECOND;
	assert_true(store_delete(p.store, &q, true, &n, &e));
	assert_int_equal(n, 2);
	assert_string_equal(find_text(&p, &everything), "api@100 api@101 api@109 web@121 ");
	assert_true(store_delete(p.store, &q, false, &n, &e));
	assert_int_equal(n, 2);
	assert_string_equal(find_text(&p, &everything), "api@109 web@121 ");
	assert_string_equal(names_text(&p, &(struct store_query){ 0 }, "pod"),
			    "1:1/1@109-109 2:1/1@121-121 ");
	q = everything;
	q.matchers = &api;
	q.nmatchers = 1;
	assert_true(store_delete(p.store, &q, false, &n, &e));
	assert_int_equal(n, 1);
	store_stats(p.store, &stats);
	assert_int_equal(stats.nservices, 1);
	assert_int_equal(stats.nseries, 1);
	assert_int_equal(stats.nprofiles, 1);
	assert_int_equal(stats.ndeleted, 3);
	put(&p, "api", "cpu", "pod=1", 200, "main;work 10\nmain 5\n");
	reopen(&p, NULL);
	assert_string_equal(find_text(&p, &everything), "web@121 api@200 ");
	q = everything;
	q.limit = 1;
	assert_true(store_delete(p.store, &q, false, &n, &e));
	assert_int_equal(n, 1);
	assert_string_equal(find_text(&p, &everything), "web@121 ");
	assert_true(store_delete(p.store, &everything, false, &n, &e));
	store_stats(p.store, &stats);
	assert_int_equal(stats.nservices, 0);
	assert_string_equal(find_text(&p, &everything), "");
	put_some(&p);
	reopen(&p, NULL);
	assert_string_equal(find_text(&p, &everything), "api@100 api@101 api@109 web@121 ");
	place_release(&p);
}

static unsigned count_chunks(struct place *p)
{
	char path[100];
	sqlite3 *db;
	sqlite3_stmt *row;
	int n;

	snprintf(path, sizeof(path), "%s/profiles.db", p->dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM chunks", -1, &row, NULL), 0);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	n = sqlite3_column_int(row, 0);
	sqlite3_finalize(row);
	sqlite3_close(db);
	return (unsigned)n;
}

TEST(many_small_chunks_of_a_book_become_one)
{
	enum { N = 150 };
	struct place p;
	struct store_id ids[N];

	place_init(&p);
	for (int i = 0; i < N; i++) {
		char stacks[64];

		snprintf(stacks, sizeof(stacks), "main;work%d %d\n", i, i + 1);
		ids[i] = put(&p, "api", "cpu", "", i, stacks).id;
		if (i == N / 2)
			reopen(&p, NULL);
	}
	assert_in_range(count_chunks(&p), 1, N / 2);
	for (int again = 0; again < 2; again++) {
		for (int i = 0; i < N; i++) {
			char want[64];

			snprintf(want, sizeof(want), "%d: work%d main\n", i + 1, i);
			assert_string_equal(get_text(&p, &ids[i]), want);
		}
		reopen(&p, NULL);
	}
	place_release(&p);
}

enum { THREADS = 6, EACH = 40 };

struct busy {
	struct place *p;
	int number;
	int nfailed;
};

static void *put_many(void *ctx)
{
	struct busy *b = ctx;
	struct world w;

	world_init(&w);
	for (int i = 0; i < EACH; i++) {
		struct buf text = { 0 };
		struct profile profile;
		struct store_label label = { STR("pod"), { "0123456789" + i % 3, 1 } };
		struct store_new new = { .service = { "abc" + b->number % 2, 1 },
					 .type = STR("cpu"),
					 .labels = &label,
					 .nlabels = 1,
					 .created = (1000 + i) * (int64_t)SECOND,
					 .profile = &profile };
		struct store_meta meta;
		struct err e;

		buf_printf(&text, "main;work%d;f%d 1\nmain 1\n", b->number, i);
		if (!profile_read(&profile, &w.arena, &w.strings, buf_view(&text), 1 << 20, &e) ||
		    !store_put(b->p->store, &new, &w.arena, &meta, &e))
			b->nfailed++;
		buf_release(&text);
	}
	world_release(&w);
	return NULL;
}

static void *query_many(void *ctx)
{
	struct busy *b = ctx;
	struct world w;

	world_init(&w);
	for (int i = 0; i < EACH; i++) {
		struct store_merged merged;
		struct store_meta *metas;
		struct store_top top;
		struct store_top_params params = { .query = everything };
		struct store_query q = everything;
		struct err e;
		uint64_t ndeleted;
		size_t n;

		if (!store_merge(b->p->store, &everything, STORE_SUM, &w.arena, &w.strings, &merged,
				 &e) &&
		    e.kind != ERR_NOTFOUND)
			b->nfailed++;
		if (!store_find(b->p->store, &everything, &w.arena, &metas, &n, &e) ||
		    !store_top(b->p->store, &params, &w.arena, &top, &e))
			b->nfailed++;
		q.from = 5000ll * SECOND;
		if (i % 8 == 0 && !store_delete(b->p->store, &q, false, &ndeleted, &e))
			b->nfailed++;
	}
	world_release(&w);
	return NULL;
}

TEST(threads_put_and_ask_at_the_same_time)
{
	struct place p;
	pthread_t threads[THREADS + 2];
	struct busy busy[THREADS + 2];
	struct store_merged merged;
	/* So little that books are dropped from memory and read again. */
	struct store_params params = { .max_memory = 4 << 20 };

	place_init(&p);
	reopen(&p, &params);
	for (int i = 0; i < THREADS + 2; i++) {
		busy[i] = (struct busy){ &p, i, 0 };
		assert_int_equal(pthread_create(&threads[i], NULL,
						i < THREADS ? put_many : query_many, &busy[i]),
				 0);
	}
	for (int i = 0; i < THREADS + 2; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(busy[i].nfailed, 0);
	}
	for (int i = 0; i < 2; i++) {
		merge_text(&p, &everything, STORE_SUM, &merged);
		assert_int_equal(merged.nprofiles, THREADS * EACH);
		assert_int_equal(merged.profile.nsamples, THREADS * EACH + 1);
		reopen(&p, &params);
	}
	place_release(&p);
}

static void run_sql(struct place *p, const char *text)
{
	char path[100];
	sqlite3 *db;

	store_close(p->store);
	p->store = NULL;
	snprintf(path, sizeof(path), "%s/profiles.db", p->dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s", sqlite3_errmsg(db));
	sqlite3_close(db);
}

TEST(older_formats_are_brought_up_to_date_and_newer_ones_refused)
{
	static const char *const before[] = {
		"DROP TABLE annotations; DROP TABLE kept; DROP TABLE kept_functions;"
		"DROP TABLE rules; ALTER TABLE profiles DROP COLUMN process; PRAGMA user_version=1",
		"DROP TABLE annotations; DROP TABLE kept; DROP TABLE kept_functions;"
		"DROP TABLE rules; PRAGMA user_version=2",
		"DROP TABLE annotations; DROP TABLE kept; DROP TABLE kept_functions;"
		"PRAGMA user_version=3",
		"DROP TABLE annotations; PRAGMA user_version=4",
	};
	const struct store_rule rule = { STR("api"), 1, 2, 3, 4, false };
	struct store_params params = { 0 };
	struct place p;
	struct err e;

	place_init(&p);
	put(&p, "api", "cpu", "", 100, "a 1\n");
	for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++) {
		run_sql(&p, before[i]);
		reopen(&p, NULL);
		put(&p, "api", "cpu", "", 101 + (int64_t)i, "a 1\n");
		assert_true(store_set_rule(p.store, &rule, &e));
	}
	assert_string_equal(find_text(&p, &everything), "api@100 api@101 api@102 api@103 api@104 ");
	run_sql(&p, "PRAGMA user_version=1000");
	params.dir = p.dir;
	assert_null(store_open(&params, &e));
	assert_int_equal(e.kind, ERR_FORMAT);
	assert_non_null(strstr(e.text, "is of a newer kiln: it has format 1000"));
	place_release(&p);
}
