#include "test.h"

#include <math.h>
#include <sqlite3.h>
#include <time.h>

#include "base/parallel.h"
#include "base/path.h"
#include "stores.h"
#include "store/inside.h"

#define NS ((int64_t)1000000000)
#define MINUTE (60 * NS)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

static int64_t now_ns(void)
{
	return (int64_t)time(NULL) * NS;
}

static void open_quick(struct place *p, const struct store_params *params)
{
	struct store_params all = params ? *params : (struct store_params){ 0 };

	all.is_passive = all.is_lazy = true;
	reopen(p, &all);
}

static struct store_top top_of(struct place *p, const struct store_top_params *params)
{
	struct store_top top = { 0 };
	struct err e;

	if (!store_top(p->store, params, &p->w.arena, &top, &e))
		fail_msg("%s", e.text);
	return top;
}

/* ---- names that come later */

struct namer {
	struct store_namer namer;
	uint64_t generation;
	bool is_ready;
	char name[40];
};

static void nothing(void *ctx)
{
	(void)ctx;
}

static struct store_binary *binary(void *ctx, struct str build_id, struct str file)
{
	(void)build_id, (void)file;
	return ctx;
}

static uint32_t find(void *ctx, struct store_binary *b, const struct store_place *place,
		     struct profile_frame *frames, uint64_t *nmissing)
{
	struct namer *n = ctx;

	(void)b, (void)place;
	if (!n->is_ready)
		++*nmissing;
	frames[0] = (struct profile_frame){ 0 };
	frames[0].name = (struct str){ n->name, (size_t)snprintf(n->name, sizeof(n->name), "late%d",
								 (int)n->generation) };
	return n->is_ready;
}

static uint64_t nfound(void *ctx)
{
	(void)ctx;
	return 0;
}

static struct str readable(void *ctx, struct str name)
{
	(void)ctx, (void)name;
	return (struct str){ 0 };
}

static uint64_t generation(void *ctx)
{
	return ((struct namer *)ctx)->generation;
}

static void namer_init(struct namer *n)
{
	*n = (struct namer){ .is_ready = true };
	n->namer = (struct store_namer){ .ctx = n,
					 .begin = nothing,
					 .end = nothing,
					 .binary = binary,
					 .find = find,
					 .wait = nothing,
					 .nfound = nfound,
					 .readable = readable,
					 .generation = generation };
}

/* ---- profiles */

/* Functions that are called "stripped" have no name; with `is_ours` somebody may know it. */
static void strip(struct place *p, struct profile *x, struct mapping *m, bool is_ours)
{
	struct location *l =
		arena_copy(&p->w.arena, x->locations, x->nlocations * sizeof(*x->locations));

	*m = (struct mapping){ .id = 1, .start = 0x1000, .limit = 0x2000 };
	m->file = strings_add(&p->w.strings, STR("/lib/libshop.so"));
	m->build_id = is_ours ? strings_add(&p->w.strings, STR("0011223344")) : 0;
	x->mappings = m;
	x->nmappings = 1;
	for (uint32_t i = 0; i < x->nlocations; i++) {
		uint32_t f = x->lines[l[i].first_line].function;

		if (!str_eq(profile_str(x, x->functions[f].name), STR("stripped")))
			continue;
		l[i].nlines = 0;
		l[i].mapping = 0;
		l[i].address = 0x1234;
	}
	x->locations = l;
}

struct pushed {
	const char *service, *type, *sample_type, *label;
	int64_t time, duration;
	bool is_ours;
};

static void push(struct place *p, const struct pushed *what, const char *stacks)
{
	struct profile x = folded(&p->w, stacks);
	struct value_type type = { strings_add(&p->w.strings, str_of(what->sample_type)),
				   strings_add(&p->w.strings, STR("count")) };
	struct store_label label = { STR("pod"), str_of(what->label) };
	struct store_new new = { .service = str_of(what->service),
				 .type = str_of(what->type),
				 .labels = &label,
				 .nlabels = 1,
				 .created = what->time,
				 .profile = &x };
	struct store_meta meta;
	struct mapping m;
	struct err e;

	x.types = &type;
	x.ntypes = 1;
	x.default_type = 0;
	x.duration_nanos = what->duration;
	strip(p, &x, &m, what->is_ours);
	if (!store_put(p->store, &new, &p->w.arena, &meta, &e))
		fail_msg("%s", e.text);
}

/* ---- the slow way: one profile of all, and its functions */

struct slow {
	vec(struct store_top_row) rows;
};

static struct store_top_row *slow_row(struct slow *s, struct str name, struct str file)
{
	for (size_t i = 0; i < s->rows.n; i++)
		if (str_eq(s->rows.at[i].function, name) && str_eq(s->rows.at[i].file, file))
			return &s->rows.at[i];
	vec_push(&s->rows, (struct store_top_row){ .function = name, .file = file });
	return &s->rows.at[s->rows.n - 1];
}

static void add_frame(struct slow *s, struct str name, struct str file, int64_t value, bool is_leaf,
		      uint64_t sample)
{
	struct store_top_row *row = slow_row(s, name, file);

	row->flat += is_leaf ? value : 0;
	if (row->nservices != sample)
		row->cum += value;
	row->nservices = sample;
}

static void add_sample(struct place *p, struct slow *s, const struct profile *x, uint32_t i)
{
	const struct sample *sample = &x->samples[i];
	int64_t value = sample_values(x, sample)[0];

	for (uint32_t k = 0; k < sample->nstack; k++) {
		const struct location *l = &x->locations[x->stacks[sample->stack + k]];

		if (!l->nlines) {
			struct buf name = { 0 };
			struct str file = profile_str(x, x->mappings[l->mapping].file);

			buf_printf(&name, "[%.*s]", STR_ARG(path_base(file)));
			arena_adopt(&p->w.arena, name.p);
			add_frame(s, buf_view(&name), STR(""), value, k == 0, i + 1);
		}
		for (uint32_t j = 0; j < l->nlines; j++) {
			const struct function *f =
				&x->functions[x->lines[l->first_line + j].function];

			add_frame(s, profile_str(x, f->name), profile_str(x, f->filename), value,
				  k == 0 && j == 0, i + 1);
		}
	}
}

/* False: it cannot be told, since one profile alone comes as it was put. */
static bool fill_slow(struct place *p, struct slow *s, struct store_query q,
		      const struct store_top *top, int64_t *total)
{
	struct store_merged merged;
	struct err e;

	*total = 0;
	q.from = top->from;
	q.to = top->to;
	if (!store_merge(p->store, &q, STORE_AS_TYPE, &p->w.arena, &p->w.strings, &merged, &e)) {
		assert_int_equal(e.kind, ERR_NOTFOUND);
		return true;
	}
	if (merged.nprofiles != top->nprofiles)
		fail_msg("%.*s of %lld to %lld: %llu profiles and not %llu",
			 STR_ARG(q.matchers[0].value), (long long)(top->from / NS),
			 (long long)(top->to / NS), (unsigned long long)top->nprofiles,
			 (unsigned long long)merged.nprofiles);
	for (uint32_t i = 0; i < merged.profile.nsamples; i++) {
		*total += sample_values(&merged.profile, &merged.profile.samples[i])[0];
		add_sample(p, s, &merged.profile, i);
	}
	return merged.nprofiles > 1;
}

/* Both ways say the same. */
static void compare(struct place *p, const struct store_top_params *params)
{
	struct store_top top = top_of(p, params);
	struct slow slow = { 0 };
	size_t n = 0, nslow = 0;
	int64_t total;
	bool is_told;

	is_told = fill_slow(p, &slow, params->query, &top, &total);
	if (is_told && top.total != total)
		fail_msg("%.*s of %lld to %lld, settled %d, of %zu: total %lld and not %lld",
			 STR_ARG(params->query.matchers[0].value), (long long)(top.from / NS),
			 (long long)(top.to / NS), params->is_settled, params->query.nmatchers,
			 (long long)top.total, (long long)total);
	for (size_t i = 0; is_told && i < top.n; i++) {
		struct store_top_row *fast = &top.rows[i],
				     *row = slow_row(&slow, fast->function, fast->file);

		if (fast->flat != row->flat || fast->cum != row->cum)
			fail_msg("%.*s is %lld, %lld and should be %lld, %lld",
				 STR_ARG(fast->function), (long long)fast->flat,
				 (long long)fast->cum, (long long)row->flat, (long long)row->cum);
		n += fast->flat || fast->cum;
	}
	for (size_t i = 0; is_told && i < slow.rows.n; i++)
		nslow += slow.rows.at[i].flat || slow.rows.at[i].cum;
	assert_int_equal(n, nslow);
	vec_release(&slow.rows);
}

/* ---- random stores */

static uint64_t random_state;

static int64_t random_below(int64_t n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)(random_state >> 33) % n;
}

static const char *const types[][2] = { { "cpu", "samples" }, { "mutex", "contentions" } };

static void push_random(struct place *p, int which, int64_t time)
{
	static int64_t counts[4];
	static const char *const services[] = { "api", "web", "db" };
	static const char *const pods[] = { "1", "2" };
	char stacks[200];
	int i = (int)random_below(4);
	struct pushed what = { .service = services[random_below(3)],
			       .type = types[which][0],
			       .sample_type = types[which][1],
			       .label = pods[random_below(2)],
			       .time = time,
			       .duration = which ? 0 : NS,
			       .is_ours = random_below(2) };

	counts[i] = which && random_below(40) ? counts[i] + random_below(9) : random_below(9);
	snprintf(stacks, sizeof(stacks),
		 "main;work %lld\nmain;stripped %lld\nmain;f%lld;work %lld\nmain;g%lld 1\n",
		 (long long)counts[0] + 1, (long long)counts[1] + 1, (long long)random_below(9),
		 (long long)counts[2] + 1, (long long)random_below(99));
	push(p, &what, stacks);
}

static void compare_random(struct place *p, int which, int64_t now)
{
	struct store_matcher m[2] = { { .name = STR("type"), .value = str_of(types[which][0]) },
				      { .name = STR("service"), .value = STR("web") } };
	struct store_top_params params = { .query = { .matchers = m, .nmatchers = 1 } };

	params.query.from = now - 30 * HOUR + random_below(30 * 60) * MINUTE;
	if (random_below(2))
		params.query.from += random_below(60) * NS;
	if (random_below(2))
		params.query.from = now - 26 * HOUR;
	params.query.to =
		random_below(2) ? now + HOUR : params.query.from + random_below(30 * 60) * MINUTE;
	params.query.nmatchers += (size_t)random_below(2);
	params.is_settled = random_below(2);
	params.is_kept = random_below(2);
	compare(p, &params);
}

static void delete_random(struct place *p, int64_t now)
{
	struct store_query q = { .from = now - random_below(30 * 60) * MINUTE };
	uint64_t n;
	struct err e;

	q.to = q.from + random_below(20) * MINUTE;
	q.limit = (uint64_t)random_below(3);
	if (random_below(4) == 0)
		q.from = INT64_MIN, q.to = now - 28 * HOUR;
	if (!store_delete(p->store, &q, false, &n, &e))
		fail_msg("%s", e.text);
}

static void tidy(struct place *p, int64_t now)
{
	struct err e;

	if (!store_tidy(p->store, now, &e))
		fail_msg("%s", e.text);
}

/* As a server does. */
static void follow(struct place *p, struct namer *namer)
{
	store_set_namer(p->store, &namer->namer);
	if (random_below(4))
		store_follow(p->store, str_of(types[random_below(2)][0]));
	p->store->follow.left_ns = random_below(2) * NS;
}

static void act(struct place *p, struct namer *namer, const struct store_params *params, int ntypes,
		int64_t now)
{
	switch (random_below(9)) {
	case 0:
		tidy(p, now);
		break;
	case 1:
		delete_random(p, now);
		break;
	case 2:
		open_quick(p, params);
		follow(p, namer);
		break;
	case 3:
		/* What was missing is there. */
		namer->is_ready = true;
		break;
	case 4:
		/* What is told for good may be another then. */
		namer->generation++;
		namer->is_ready = random_below(2);
		break;
	case 5:
		store_save_followed(p->store, NULL);
		break;
	default:
		for (int i = 0; i < 6; i++)
			push_random(p, i % ntypes, now - random_below(31 * 60 * 60) * NS);
		break;
	}
}

static void check_random(const struct store_params *params, int ntypes, uint64_t seed)
{
	struct place p;
	struct namer namer;
	struct store_checked checked;
	int64_t now = now_ns();
	struct err e;

	random_state = seed;
	place_init(&p);
	open_quick(&p, params);
	namer_init(&namer);
	follow(&p, &namer);
	for (int64_t t = now - 30 * HOUR; t < now; t += 7 * MINUTE)
		push_random(&p, (int)(t / NS % ntypes), t + random_below(60) * NS);
	for (int i = 0; i < 60; i++) {
		act(&p, &namer, params, ntypes, now);
		for (int k = 0; k < 4; k++)
			compare_random(&p, k % ntypes, now);
		for (int k = 0; k < 3; k++)
			push_random(&p, k % ntypes, now_ns() - random_below(400) * NS);
		for (int k = 0; k < 4; k++)
			compare_random(&p, k % ntypes, now);
	}
	assert_true(store_check(p.store, NULL, NULL, &checked, &e));
	assert_int_equal(checked.nproblems, 0);
	place_release(&p);
}

TEST(what_is_kept_is_what_is_there)
{
	check_random(NULL, 2, 1);
	check_random(NULL, 2, 2);
	/* There is room for little. */
	check_random(&(struct store_params){ .max_memory = 1 << 20 }, 2, 3);
}

/* Of what counts from the start, the first difference goes when what was before it is thinned. */
TEST(what_is_kept_is_what_is_there_when_profiles_get_old)
{
	struct store_params params = {
		.keep = { .raw_ns = 3 * HOUR, .minute_ns = 6 * HOUR, .hour_ns = 20 * HOUR }
	};

	check_random(&params, 1, 4);
	params.keep = (struct store_keep){
		.raw_ns = HOUR, .minute_ns = HOUR, .hour_ns = 26 * HOUR, .day_ns = 27 * HOUR
	};
	check_random(&params, 1, 5);
}

/* ---- what is written down */

static void put_hours(struct place *p, int64_t now)
{
	struct pushed what = { .service = "api",
			       .type = "cpu",
			       .sample_type = "samples",
			       .label = "1",
			       .duration = NS };

	for (what.time = now - 26 * HOUR; what.time < now; what.time += 10 * MINUTE)
		push(p, &what, "main;work 3\nmain;stripped 1\n");
}

static void read_books(struct place *p, uint64_t *bytes)
{
	*bytes = p->store->shelf.bytes;
}

TEST(a_store_that_is_opened_again_knows_what_functions_weigh)
{
	struct place p;
	int64_t now = now_ns();
	struct store_top_params params = { .query = { .from = now - DAY, .to = now },
					   .is_settled = true,
					   .is_kept = true };
	struct store_top first, again;
	uint64_t bytes;

	place_init(&p);
	open_quick(&p, NULL);
	put_hours(&p, now);
	first = top_of(&p, &params);
	open_quick(&p, NULL);
	read_books(&p, &bytes);
	assert_int_equal(bytes, 0);
	params.is_kept = false;
	again = top_of(&p, &params);
	/* No profile was read, even if five minutes more have passed. */
	read_books(&p, &bytes);
	assert_int_equal(bytes, 0);
	assert_int_equal(again.to, first.to);
	assert_int_equal(again.total, first.total);
	assert_int_equal(again.n, 3);
	assert_true(again.total > 500);
	compare(&p, &params);
	place_release(&p);
}

/* ---- what is new */

static struct pushed pushed_at(int64_t time)
{
	return (struct pushed){ .service = "api",
				.type = "cpu",
				.sample_type = "samples",
				.label = "1",
				.time = time,
				.duration = NS };
}

/* So that no piece ends while it is read. */
static int64_t wait_for_middle(void)
{
	int64_t now = now_ns(), piece = 5 * MINUTE;

	if (now % piece > piece - 10 * NS) {
		sleep(11);
		now = now_ns();
	}
	return now;
}

static struct store_top_params newest(int64_t now)
{
	static const struct store_matcher api = { .name = { "service", 7 }, .value = { "api", 3 } };

	return (struct store_top_params){
		.query = { .matchers = &api, .nmatchers = 1, .from = now - DAY, .to = now }
	};
}

TEST(what_has_just_been_put_is_known_without_its_book)
{
	struct place p;
	int64_t now = wait_for_middle();
	struct pushed what = pushed_at(now - 3 * HOUR);
	struct store_top_params params = newest(now), settled = params;
	struct store_top top;

	settled.is_settled = settled.is_kept = true;
	place_init(&p);
	open_quick(&p, NULL);
	store_follow(p.store, STR("cpu"));
	p.store->follow.left_ns = NS;
	push(&p, &what, "main;work 2\n");
	top_of(&p, &settled);
	for (what.time = now - 4 * MINUTE; what.time < now; what.time += 50 * NS)
		push(&p, &what, "main;work 3\nmain;stripped 1\n");
	store_save_followed(p.store, NULL);
	for (int i = 0; i < 2; i++) {
		open_quick(&p, NULL);
		top = top_of(&p, &params);
		assert_int_equal(top.total, 2 + 4 * 5);
		assert_int_equal(p.store->shelf.bytes, 0);
	}
	compare(&p, &params);
	place_release(&p);
}

/* As much of the CPU as there is left. */
TEST(what_is_followed_takes_a_small_part_of_the_time)
{
	struct place p;
	int64_t now = wait_for_middle();
	struct pushed what = pushed_at(now);
	struct store_top_params params = newest(now);
	struct err e;
	uint64_t n;

	place_init(&p);
	open_quick(&p, NULL);
	store_follow(p.store, STR("cpu"));
	p.store->follow.left_ns = -3600 * NS;
	push(&p, &what, "main;work 3\n");
	assert_int_equal(p.store->hot.entries.n, 0);
	/* Much of it, but not more than 40 seconds have. */
	p.store->follow.since_ns -= 1000000 * NS;
	push(&p, &what, "main;work 3\n");
	assert_int_equal(p.store->hot.entries.n, 1);
	assert_true(p.store->follow.left_ns > 0);
	assert_true(p.store->follow.left_ns <= 40 * NS / 50 * parallel_cores());
	compare(&p, &params);
	assert_true(store_delete(p.store, &params.query, false, &n, &e));
	assert_int_equal(n, 2);
	assert_int_equal(top_of(&p, &params).total, 0);
	place_release(&p);
}

/* Somebody who has just begun sees what there is, however they ask; and what is long, and is asked
 * for from now on, begins where sums are kept. */
TEST(a_store_that_is_minutes_old_shows_what_is_there)
{
	struct place p;
	int64_t now = wait_for_middle();
	struct pushed what = pushed_at(now - 2 * MINUTE);
	struct store_top_params params = newest(now);
	struct store_top top;

	place_init(&p);
	open_quick(&p, NULL);
	push(&p, &what, "main;work 3\n");
	params.is_settled = true;
	assert_int_equal(top_of(&p, &params).total, 3);
	what.time = now - 20 * MINUTE;
	push(&p, &what, "main;work 2\n");
	assert_int_equal(top_of(&p, &params).total, 5);
	what.time = now - 2 * HOUR;
	push(&p, &what, "main;work 1\n");
	assert_int_equal(top_of(&p, &params).total, 3);
	params.is_settled = false;
	assert_int_equal(top_of(&p, &params).from, now - DAY);
	params.is_rough = true;
	top = top_of(&p, &params);
	assert_int_equal(top.from, (now - DAY) / HOUR * HOUR);
	assert_int_equal(top.total, 6);
	params.query.from = now - HOUR;
	assert_int_equal(top_of(&p, &params).from, (now - HOUR) / (5 * MINUTE) * 5 * MINUTE);
	params.query.from = now - HOUR / 2;
	assert_int_equal(top_of(&p, &params).from, now - HOUR / 2);
	place_release(&p);
}

/* What a series of several processes has put at one time is more than is followed. */
TEST(a_series_that_is_put_all_the_time_is_read_by_who_asks)
{
	struct place p;
	int64_t now = wait_for_middle();
	struct pushed what = pushed_at(now - now % (5 * MINUTE));
	struct store_top_params params = newest(now);

	place_init(&p);
	open_quick(&p, NULL);
	for (int i = 0; i < 20; i++)
		push(&p, &what, "main;work 3\n");
	store_follow(p.store, STR("cpu"));
	p.store->follow.left_ns = NS;
	push(&p, &what, "main;work 3\n");
	assert_int_equal(p.store->catalog.series.at[0]->unfollowed, what.time);
	assert_int_equal(top_of(&p, &params).total, 3 * 21);
	compare(&p, &params);
	place_release(&p);
}

/* Of what counts from the start, the difference is another then: also in a later piece, and if it
 * is known from the last time only. */
TEST(what_is_a_difference_is_another_when_something_comes_between)
{
	struct place p;
	int64_t now = wait_for_middle();
	struct pushed what = pushed_at(now - 9 * MINUTE);
	struct store_top_params params = newest(now);

	what.type = "mutex";
	what.sample_type = "contentions";
	what.duration = 0;
	place_init(&p);
	open_quick(&p, NULL);
	store_follow(p.store, STR("mutex"));
	p.store->follow.left_ns = NS;
	push(&p, &what, "main;work 10\n");
	what.time = now;
	push(&p, &what, "main;work 30\n");
	store_save_followed(p.store, NULL);
	open_quick(&p, NULL);
	assert_int_equal(top_of(&p, &params).total, 20);
	open_quick(&p, NULL);
	what.time = now - 6 * MINUTE;
	push(&p, &what, "main;work 3\n");
	open_quick(&p, NULL);
	compare(&p, &params);
	assert_int_equal(top_of(&p, &params).total, 3 + 27);
	place_release(&p);
}

static void count_problem(void *ctx, const char *line)
{
	(void)line;
	++*(int *)ctx;
}

static void run_sql(struct place *p, const char *text)
{
	char path[128];
	sqlite3 *db;

	store_close(p->store);
	p->store = NULL;
	snprintf(path, sizeof(path), "%s/profiles.db", p->dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	open_quick(p, NULL);
}

TEST(sums_that_are_damaged_are_made_again)
{
	static const char *const damage[] = {
		"UPDATE kept SET data = x'00112233445566778899'",
		"UPDATE kept SET data = substr(data, 1, length(data) - 1) WHERE row > 0",
		"UPDATE kept_functions SET data = x'0011223344'",
		"UPDATE kept SET row = row + (1 << 40)",
	};
	int64_t now = now_ns();
	struct store_top_params params = { .query = { .from = now - DAY, .to = now },
					   .is_settled = true,
					   .is_kept = true };

	for (size_t i = 0; i < sizeof(damage) / sizeof(*damage); i++) {
		struct place p;
		struct store_checked checked;
		struct err e;
		int nproblems = 0;

		place_init(&p);
		open_quick(&p, NULL);
		put_hours(&p, now);
		compare(&p, &params);
		run_sql(&p, damage[i]);
		assert_true(store_check(p.store, count_problem, &nproblems, &checked, &e));
		assert_true(nproblems > 0);
		compare(&p, &params);
		compare(&p, &params);
		place_release(&p);
	}
}

/* What is added to it afterwards counts alone. */
TEST(a_sum_that_is_damaged_leaves_nothing)
{
	struct changes changes = { 0 };
	struct hot_key key = { .series = 1, .changes = &changes };
	struct hot_packed packed = { .key = key,
				     .sum = { .generation = HOT_EVER, .nprofiles = 7, .total = 7 },
				     .n = 1,
				     .data = STR("\x02\x05\x02\x02") };
	struct hot_sum sum = { 0 };
	struct hot h;

	hot_init(&h, 1 << 24);
	hot_begin(&h);
	hot_put_packed(&h, &packed);
	assert_false(hot_get(&h, &key, &sum));
	assert_int_equal(sum.nprofiles, 0);
	assert_true(sum.total == 0);
	for (int i = 0; i < 6; i++)
		hot_function(&h, (struct str){ (const char *)&i, sizeof(i) }, STR(""), STR(""));
	assert_true(hot_get(&h, &key, &sum));
	assert_int_equal(sum.nprofiles, 7);
	assert_int_equal(sum.weights.at[0].function, 5);
	vec_release(&sum.weights);
	hot_end(&h);
	hot_release(&h);
}

/* ---- rows */

TEST(what_is_steady_has_no_trend)
{
	struct place p;
	int64_t now = now_ns(), hour = now / HOUR * HOUR;
	struct pushed what = { .service = "api",
			       .type = "cpu",
			       .sample_type = "samples",
			       .label = "1",
			       .duration = 10 * MINUTE };
	struct store_top_params params = { .query = { .to = now }, .is_settled = true };
	static const int lengths[] = { 3, 7, 13, 24, 30 };

	place_init(&p);
	open_quick(&p, NULL);
	for (what.time = hour - 31 * HOUR; what.time < now; what.time += 10 * MINUTE)
		push(&p, &what, "main;work 600000\n");
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct store_top top;

		params.query.from = now - lengths[i] * HOUR;
		top = top_of(&p, &params);
		assert_int_equal(top.n, 2);
		/* A profile at the edge counts for its time. */
		if (fabs(top.rows[0].trend) > 0.15 * top.rows[0].rate)
			fail_msg("%d hours: trend %g of %g", lengths[i], top.rows[0].trend,
				 top.rows[0].rate);
	}
	place_release(&p);
}

/* A store of a few minutes has nothing that has come to rest. */
TEST(what_has_just_begun_is_there_at_once)
{
	struct place p;
	int64_t now = now_ns();
	struct pushed what = { .service = "api",
			       .type = "cpu",
			       .sample_type = "samples",
			       .label = "1",
			       .duration = NS };
	struct store_top_params params = { .query = { .from = now - DAY, .to = now },
					   .is_settled = true };

	place_init(&p);
	open_quick(&p, NULL);
	for (what.time = now - 3 * MINUTE; what.time <= now; what.time += MINUTE)
		push(&p, &what, "main 1\n");
	assert_int_equal(top_of(&p, &params).total, 4);
	/* What is older leaves the last minutes out, if they are not asked for by themselves. */
	what.time = now - 3 * HOUR;
	push(&p, &what, "main 10\n");
	assert_int_equal(top_of(&p, &params).total, 10);
	params.query.from = now - HOUR;
	assert_int_equal(top_of(&p, &params).total, 4);
	params.is_kept = true;
	assert_int_equal(top_of(&p, &params).total, 0);
	place_release(&p);
}

TEST(a_service_that_ended_in_the_first_hour_counts)
{
	struct place p;
	int64_t now = now_ns(), hour = now / HOUR * HOUR - 10 * HOUR;
	struct pushed what = { .service = "old",
			       .type = "cpu",
			       .sample_type = "samples",
			       .label = "1",
			       .duration = NS };
	struct store_top_params params = { .query = { .from = hour + 30 * MINUTE, .to = now },
					   .is_settled = true };

	place_init(&p);
	what.time = hour + MINUTE;
	push(&p, &what, "main 1\n");
	what.service = "api";
	what.time = hour + 50 * MINUTE;
	push(&p, &what, "main 2\n");
	assert_int_equal(top_of(&p, &params).total, 3);
	assert_int_equal(top_of(&p, &params).from, hour);
	place_release(&p);
}

TEST(a_sample_type_that_is_not_there_stays_unknown)
{
	struct place p;
	struct store_top_params params = { .query = everything, .sample_type = STR("evil") };
	struct store_top top;
	struct err e;

	place_init(&p);
	put(&p, "api", "cpu", "", 100, "main 1\n");
	for (int i = 0; i < 3; i++) {
		assert_false(store_top(p.store, &params, &p.w.arena, &top, &e));
		assert_int_equal(e.kind, ERR_USAGE);
		assert_non_null(strstr(e.text, "no profile has the sample type \"evil\""));
	}
	place_release(&p);
}

TEST(weeks_of_years_ago_are_told_apart)
{
	struct place p;
	struct store_top_params params = { .query = everything, .by = STR("week") };
	struct store_top top;

	place_init(&p);
	put(&p, "api", "cpu", "", 100, "main 3\n");
	put(&p, "api", "cpu", "", 100 + 14 * 24 * 3600, "main 2\n");
	put(&p, "api", "cpu", "", 100 + 700 * 24 * 3600, "main 1\n");
	top = top_of(&p, &params);
	assert_int_equal(top.n, 3);
	assert_true(str_eq(top.rows[0].by, STR("1970-W01")));
	assert_true(str_eq(top.rows[1].by, STR("1970-W03")));
	assert_true(str_eq(top.rows[2].by, STR("1971-W48")));
	place_release(&p);
}

TEST(names_have_a_limit)
{
	struct place p;
	struct store_params small = { .max_memory = 1 << 20 };
	struct store_top_params params = { .query = everything, .by = STR("pod") };
	struct store_top top;
	struct err e;
	char label[3001];

	place_init(&p);
	open_quick(&p, &small);
	memset(label, 'x', sizeof(label));
	label[sizeof(label) - 1] = '\0';
	memcpy(label, "pod=", 4);
	for (int i = 0; i < 400; i++) {
		snprintf(label + 4, 8, "%06d", i);
		label[10] = 'x';
		put(&p, "api", "cpu", label, 100 + i, "main 1\n");
	}
	assert_false(store_top(p.store, &params, &p.w.arena, &top, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	/* It is not for ever. */
	params.by = STR("");
	assert_true(store_top(p.store, &params, &p.w.arena, &top, &e));
	place_release(&p);
}

TEST(the_heaviest_are_those_of_all)
{
	struct place p;
	struct store_top_params params = { .query = everything };
	struct store_top all, some;
	struct buf stacks = { 0 };

	place_init(&p);
	random_state = 7;
	for (int i = 0; i < 500; i++)
		buf_printf(&stacks, "main;f%d %lld\n", i, (long long)random_below(100) + 1);
	buf_char(&stacks, '\0');
	put(&p, "api", "cpu", "", 100, stacks.p);
	buf_release(&stacks);
	for (params.order = STORE_TOP_FLAT; params.order <= STORE_TOP_TREND; params.order++) {
		params.limit = 0;
		all = top_of(&p, &params);
		assert_int_equal(all.n, 501);
		for (params.limit = 1; params.limit < 600; params.limit += 83) {
			some = top_of(&p, &params);
			assert_int_equal(some.nall, 501);
			assert_int_equal(some.n, params.limit < 501 ? params.limit : 501);
			for (size_t i = 0; i < some.n; i++)
				assert_true(str_eq(some.rows[i].function, all.rows[i].function));
		}
	}
	place_release(&p);
}

/* ---- kinds of services */

enum { KINDS = 3, SERVICES = 50 }; /* so many that several threads have some */

/* By the number at the end of its name. */
static void *kind_of(void *ctx, struct str service)
{
	return (char *)ctx + (service.p[service.n - 1] - '0') % KINDS;
}

static double part_of(const struct store_top_row *row, const void *ctx)
{
	double flat = 0;

	for (size_t i = 0; i < row->nparts; i++)
		flat += row->parts[i].ctx == ctx ? row->parts[i].flat : 0;
	return flat;
}

TEST(rows_are_told_by_kinds_of_services)
{
	char kinds[KINDS], name[20], stacks[100];
	struct place p;
	struct store_top_params params = { .query = everything,
					   .group_ctx = kinds,
					   .group_ctx_of = kind_of };
	struct store_top top;
	double want[KINDS] = { 0 };

	place_init(&p);
	for (int i = 0; i < SERVICES; i++) {
		snprintf(name, sizeof(name), "service%d", i);
		snprintf(stacks, sizeof(stacks), "main;shared %d\nmain;own%d 1", i + 1, i);
		put(&p, name, "cpu", "", 100, stacks);
		want[i % 10 % KINDS] += i + 1;
	}
	top = top_of(&p, &params);
	assert_int_equal(top.n, SERVICES + 2);
	assert_true(str_eq(top.rows[0].function, STR("shared")));
	assert_int_equal(top.rows[0].nparts, KINDS);
	assert_int_equal(top.rows[0].nservices, SERVICES);
	for (int i = 0; i < KINDS; i++)
		assert_float_equal(part_of(&top.rows[0], &kinds[i]), want[i], 1e-9);
	for (size_t i = 1; i < top.n; i++) {
		const struct store_top_row *row = &top.rows[i];

		if (str_eq(row->function, STR("main")))
			continue;
		assert_int_equal(row->nparts, 1);
		assert_ptr_equal(row->parts[0].ctx, kind_of(kinds, row->function));
	}
	params.by = STR("service");
	top = top_of(&p, &params);
	for (size_t i = 0; i < top.n; i++) {
		assert_int_equal(top.rows[i].nparts, 1);
		assert_ptr_equal(top.rows[i].parts[0].ctx, kind_of(kinds, top.rows[i].by));
	}
	params.group_ctx_of = NULL;
	assert_int_equal(top_of(&p, &params).rows[0].nparts, 0);
	place_release(&p);
}

/* ---- changes */

TEST(changes_are_of_their_time_and_later)
{
	struct changes c = { 0 };

	changes_add(&c, 100);
	assert_true(changes_hold(&c, 0, 50, 99));
	assert_false(changes_hold(&c, 0, 50, 100));
	assert_false(changes_hold(&c, 0, 200, 300));
	assert_true(changes_hold(&c, 1, 200, 300));
	changes_add_old(&c, 60);
	assert_false(changes_hold(&c, 1, 50, 99));
	assert_true(changes_hold(&c, 1, 61, 99));
	assert_true(changes_hold(&c, 1, 200, 300));
	assert_true(changes_hold(&c, 2, 0, 300));
	/* Those that are late all the time leave old times alone. */
	for (int i = 0; i < 1000; i++)
		changes_add(&c, 1000 + i);
	assert_true(changes_hold(&c, c.n - 10, 200, 1900));
	assert_false(changes_hold(&c, c.n - 10, 200, 1999));
	assert_false(changes_hold(&c, 2, 200, 1000));
	changes_add(&c, 10);
	assert_false(changes_hold(&c, c.n - 1, 200, 300));
	assert_true(changes_hold(&c, c.n - 1, 0, 9));
}
