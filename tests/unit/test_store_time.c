#include "test.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "profiles.h"
#include "store/meaning.h"
#include "store/store.h"

#define SECOND ((int64_t)1000000000)
#define HOUR (3600 * SECOND)

struct place {
	struct world w;
	char dir[64];
	struct store *store;
};

static void reopen(struct place *p, const struct store_params *params)
{
	struct store_params all = params ? *params : (struct store_params){ .is_passive = true };
	struct err e;

	store_close(p->store);
	all.dir = p->dir;
	p->store = store_open(&all, &e);
	if (!p->store)
		fail_msg("%s", e.text);
}

static void place_init(struct place *p)
{
	/* Thousands of commits: in memory they take no time. */
	*p = (struct place){ .dir = "/dev/shm/kiln-store-XXXXXX" };
	if (access("/dev/shm", W_OK))
		memcpy(p->dir, "/tmp/kiln-store-XXXXXX", sizeof("/tmp/kiln-store-XXXXXX"));
	world_init(&p->w);
	assert_non_null(mkdtemp(p->dir));
	reopen(p, NULL);
}

static void place_release(struct place *p)
{
	static const char *const files[] = { "lock", "profiles.db", "profiles.db-wal",
					     "profiles.db-shm" };

	store_close(p->store);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s/%s", p->dir, files[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(p->dir), 0);
	world_release(&p->w);
}

/* A profile of one or two sample types, "alloc_space,inuse_space": each of its stacks has the first
 * value, and of the second type ten times that. */
struct shape {
	const char *type, *sample_types;
	int64_t duration;
};

static struct profile shaped(struct world *w, const struct shape *shape, const char *stacks)
{
	struct profile p = folded(w, stacks);
	struct str rest = str_of(shape->sample_types);
	struct value_type *types = arena_many(&w->arena, 4, struct value_type);
	int64_t *values = arena_many(&w->arena, 4 * p.nsamples + 1, int64_t);
	uint32_t n = 0;

	while (rest.n)
		types[n++] = (struct value_type){ strings_add(&w->strings, str_cut(&rest, ',')),
						  strings_add(&w->strings, STR("count")) };
	for (uint32_t i = 0; i < p.nsamples; i++)
		for (uint32_t t = 0; t < n; t++)
			values[p.samples[i].row * n + t] =
				(t ? 10 : 1) * sample_values(&p, &p.samples[i])[0];
	p.values = values;
	p.types = types;
	p.ntypes = n;
	p.default_type = 0;
	p.duration_nanos = shape->duration;
	return p;
}

static void put(struct place *p, const struct shape *shape, const char *pod, int64_t time,
		const char *stacks)
{
	struct profile profile = shaped(&p->w, shape, stacks);
	struct store_label label = { STR("pod"), str_of(pod) };
	struct store_new new = { .service = STR("api"),
				 .type = str_of(shape->type),
				 .labels = &label,
				 .nlabels = 1,
				 .created = time,
				 .profile = &profile };
	struct store_meta meta;
	struct err e;

	if (!store_put(p->store, &new, &p->w.arena, &meta, &e))
		fail_msg("%s", e.text);
}

/* Under the same labels, from an instance, or from a process whose [vdso] is somewhere. */
static void put_from(struct place *p, const struct shape *shape, const char *instance,
		     uint64_t vdso, int64_t time, const char *stacks)
{
	struct profile profile = shaped(&p->w, shape, stacks);
	struct mapping mapping = { .id = 1,
				   .start = vdso,
				   .limit = vdso + 0x1000,
				   .file = strings_add(&p->w.strings, STR("[vdso]")) };
	struct store_new new = { .service = STR("api"),
				 .type = str_of(shape->type),
				 .instance = str_of(instance),
				 .created = time,
				 .profile = &profile };
	struct store_meta meta;
	struct err e;

	if (vdso) {
		profile.mappings = &mapping;
		profile.nmappings = 1;
	}
	if (!store_put(p->store, &new, &p->w.arena, &meta, &e))
		fail_msg("%s", e.text);
}

static const char *merge(struct place *p, int64_t from, int64_t to, enum store_sum how)
{
	struct store_query q = { .from = from, .to = to };
	struct store_merged merged;
	struct err e;

	if (!store_merge(p->store, &q, how, &p->w.arena, &p->w.strings, &merged, &e))
		return arena_copy(&p->w.arena, e.text, strlen(e.text) + 1);
	return samples_text(&p->w, &merged.profile);
}

static const char *merge_type(struct place *p, const char *type, int64_t from, int64_t to)
{
	struct store_matcher matcher = { .name = STR("type"), .value = str_of(type) };
	struct store_query q = { .matchers = &matcher, .nmatchers = 1, .from = from, .to = to };
	struct store_merged merged;
	struct err e;

	if (!store_merge(p->store, &q, STORE_AS_TYPE, &p->w.arena, &p->w.strings, &merged, &e))
		return arena_copy(&p->w.arena, e.text, strlen(e.text) + 1);
	return samples_text(&p->w, &merged.profile);
}

static const struct shape mutexes = { "mutex", "contentions,delay", 0 };
static const struct shape mutex_deltas = { "mutex", "contentions,delay", SECOND };
static const struct shape heap = { "heap", "alloc_space,inuse_space", 0 };
static const struct shape threads = { "threads", "threads", 0 };
static const struct shape cpu = { "cpu", "samples", SECOND };

TEST(meanings)
{
	assert_int_equal(meaning_of(STR("cpu"), STR("samples")), MEANING_COUNTER);
	assert_int_equal(meaning_of(STR("cpu"), STR("cpu")), MEANING_COUNTER);
	assert_int_equal(meaning_of(STR("wall"), STR("wall")), MEANING_COUNTER);
	assert_int_equal(meaning_of(STR("heap"), STR("inuse_space")), MEANING_GAUGE);
	assert_int_equal(meaning_of(STR("heap"), STR("alloc_space")), MEANING_CUMULATIVE);
	assert_int_equal(meaning_of(STR("allocs"), STR("alloc_objects")), MEANING_CUMULATIVE);
	assert_int_equal(meaning_of(STR("goroutine"), STR("goroutine")), MEANING_GAUGE);
	assert_int_equal(meaning_of(STR("threads"), STR("count")), MEANING_GAUGE);
	assert_int_equal(meaning_of(STR("threadcreate"), STR("threadcreate")), MEANING_GAUGE);
	assert_int_equal(meaning_of(STR("block"), STR("delay")), MEANING_CUMULATIVE);
}

TEST(what_counts_from_the_start_becomes_differences)
{
	struct place p;

	place_init(&p);
	put(&p, &mutexes, "1", 100 * SECOND, "main;work 10\nmain 5\n");
	put(&p, &mutexes, "1", 160 * SECOND, "main;work 12\nmain 5\n");
	put(&p, &mutexes, "1", 220 * SECOND, "main;work 20\nmain 6\n");
	/* the process began anew: in full */
	put(&p, &mutexes, "1", 280 * SECOND, "main;work 3\n");
	put(&p, &mutexes, "1", 340 * SECOND, "main;work 4\nmain;more 7\n");
	/* of all times the first is the base: 20 - 10 + 4, 6 - 5, 7 */
	assert_string_equal(merge(&p, 0, INT64_MAX, STORE_AS_TYPE),
			    "14: work main\n1: main\n7: more main\n");
	/* of some the one before */
	assert_string_equal(merge(&p, 150 * SECOND, 230 * SECOND, STORE_AS_TYPE),
			    "10: work main\n1: main\n");
	assert_string_equal(merge(&p, 200 * SECOND, 230 * SECOND, STORE_AS_TYPE),
			    "8: work main\n1: main\n");
	assert_string_equal(merge(&p, 230 * SECOND, 300 * SECOND, STORE_AS_TYPE), "3: work main\n");
	/* one without any before is itself */
	assert_string_equal(merge(&p, 0, 100 * SECOND, STORE_AS_TYPE), "10: work main\n5: main\n");
	assert_string_equal(merge(&p, 0, 170 * SECOND, STORE_SUM), "22: work main\n10: main\n");
	place_release(&p);
}

TEST(differences_are_of_each_process)
{
	struct place p;

	place_init(&p);
	put(&p, &mutexes, "1", 100 * SECOND, "main 1000\n");
	put(&p, &mutexes, "2", 101 * SECOND, "main 10\n");
	put(&p, &mutexes, "1", 160 * SECOND, "main 1001\n");
	put(&p, &mutexes, "2", 161 * SECOND, "main 12\n");
	assert_string_equal(merge(&p, 0, INT64_MAX, STORE_AS_TYPE), "3: main\n");
	/* after more than a day nobody knows */
	put(&p, &mutexes, "2", 30 * HOUR, "main 50\n");
	put(&p, &mutexes, "2", 31 * HOUR, "main 51\n");
	assert_string_equal(merge(&p, 0, INT64_MAX, STORE_AS_TYPE), "4: main\n");
	place_release(&p);
}

TEST(processes_under_the_same_labels_are_told_apart)
{
	struct place p;
	char before[200];

	place_init(&p);
	/* Two that interleave, one by its vdso, the other by its instance. */
	for (int64_t i = 0; i < 10; i++) {
		char one[50], two[50];

		snprintf(one, sizeof(one), "main;one %d\n", (int)(1000 + i));
		snprintf(two, sizeof(two), "main;two %d\n", (int)(10 + 5 * i));
		put_from(&p, &mutexes, "", 0x7000, (100 + 60 * i) * SECOND, one);
		put_from(&p, &mutexes, "pod-2", 0, (101 + 60 * i) * SECOND, two);
	}
	assert_string_equal(merge(&p, 0, INT64_MAX, STORE_AS_TYPE), "9: one main\n45: two main\n");
	/* What was before a time is looked for among both. */
	assert_string_equal(merge(&p, 400 * SECOND, INT64_MAX, STORE_AS_TYPE),
			    "5: one main\n25: two main\n");
	/* The first begins anew, elsewhere: it counts in full. */
	put_from(&p, &mutexes, "", 0x9000, 700 * SECOND, "main;one 4\n");
	put_from(&p, &mutexes, "pod-2", 0, 701 * SECOND, "main;two 60\n");
	put_from(&p, &mutexes, "", 0x9000, 760 * SECOND, "main;one 6\n");
	assert_string_equal(merge(&p, 0, INT64_MAX, STORE_AS_TYPE), "15: one main\n50: two main\n");
	assert_string_equal(merge(&p, 750 * SECOND, INT64_MAX, STORE_AS_TYPE), "2: one main\n");
	/* The second begins anew under its name. */
	put_from(&p, &mutexes, "pod-2", 0, 761 * SECOND, "main;two 7\n");
	assert_string_equal(merge(&p, 0, INT64_MAX, STORE_AS_TYPE), "15: one main\n57: two main\n");
	/* One that is older than all others has been somewhere else: nobody knows since when. */
	put_from(&p, &mutexes, "pod-3", 0, 762 * SECOND, "main;three 50000\n");
	put_from(&p, &mutexes, "pod-3", 0, 822 * SECOND, "main;three 50001\n");
	snprintf(before, sizeof(before), "%s", merge(&p, 0, INT64_MAX, STORE_AS_TYPE));
	assert_string_equal(before, "15: one main\n57: two main\n1: three main\n");
	/* Sums of windows say the same. */
	reopen(&p, NULL);
	assert_string_equal(merge(&p, 0, INT64_MAX, STORE_AS_TYPE), before);
	assert_true(store_tidy(p.store, 50 * HOUR, &(struct err){ 0 }));
	assert_string_equal(merge(&p, 0, 24 * HOUR - 1, STORE_AS_TYPE), before);
	place_release(&p);
}

/* When a fleet is looked at for the first time, what it did before does not count. */
TEST(the_first_profiles_of_a_fleet_count_nothing)
{
	struct place p;

	place_init(&p);
	for (int64_t round = 0; round < 3; round++)
		for (int64_t i = 0; i < 50; i++) {
			char pod[20], stack[50];

			snprintf(pod, sizeof(pod), "pod-%d", (int)i);
			snprintf(stack, sizeof(stack), "main %d\n", (int)(1000 * (50 - i) + round));
			put_from(&p, &mutexes, pod, 0, (100 + 60 * round + i) * SECOND, stack);
		}
	assert_string_equal(merge(&p, 0, INT64_MAX, STORE_AS_TYPE), "100: main\n");
	place_release(&p);
}

TEST(differences_that_were_taken_are_added)
{
	struct place p;

	place_init(&p);
	put(&p, &mutex_deltas, "1", 100 * SECOND, "main 10\n");
	put(&p, &mutex_deltas, "1", 160 * SECOND, "main 12\n");
	assert_string_equal(merge(&p, 0, INT64_MAX, STORE_AS_TYPE), "22: main\n");
	place_release(&p);
}

/* Values of the second type. */
static int64_t second_total(struct place *p, int64_t from, int64_t to, enum store_sum how)
{
	struct store_query q = { .from = from, .to = to };
	struct store_merged merged;
	int64_t total = 0;
	struct err e;

	if (!store_merge(p->store, &q, how, &p->w.arena, &p->w.strings, &merged, &e))
		fail_msg("%s", e.text);
	for (uint32_t i = 0; i < merged.profile.nsamples; i++)
		total += sample_values(&merged.profile, &merged.profile.samples[i])[1];
	return total;
}

TEST(memory_in_use_is_averaged_beside_differences)
{
	struct place p;

	place_init(&p);
	put(&p, &heap, "1", 100 * SECOND, "main 10\n");
	put(&p, &heap, "1", 160 * SECOND, "main 30\n");
	put(&p, &heap, "1", 220 * SECOND, "main 80\n");
	assert_string_equal(merge(&p, 0, INT64_MAX, STORE_AS_TYPE), "70: main\n");
	assert_int_equal(second_total(&p, 0, INT64_MAX, STORE_AS_TYPE), 400);
	/* the base is no part of the mean */
	assert_string_equal(merge(&p, 150 * SECOND, INT64_MAX, STORE_AS_TYPE), "70: main\n");
	assert_int_equal(second_total(&p, 150 * SECOND, INT64_MAX, STORE_AS_TYPE), 550);
	place_release(&p);
}

/* Most of what a program allocates is not in use any more. */
TEST(what_is_not_in_use_was_allocated)
{
	struct place p;
	const char *names[] = { "main;a 10\nmain;b 1\n", "main;a 30\nmain;b 2\n" };
	struct store_query q = { .to = INT64_MAX };
	struct store_merged merged;
	struct store_meta meta;
	struct store_id ids[2];
	struct err e;

	place_init(&p);
	for (int i = 0; i < 2; i++) {
		struct profile profile = shaped(&p.w, &heap, names[i]);
		struct store_new new = { .service = STR("api"),
					 .type = STR("heap"),
					 .created = (100 + 60 * i) * SECOND,
					 .profile = &profile };
		int64_t *values = arena_copy(&p.w.arena, profile.values, 4 * sizeof(*values));

		/* Of the first stack nothing is left. */
		values[profile.samples[0].row * 2 + 1] = 0;
		profile.values = values;
		assert_true(store_put(p.store, &new, &p.w.arena, &meta, &e));
		ids[i] = meta.id;
	}
	assert_string_equal(merge(&p, 0, INT64_MAX, STORE_AS_TYPE), "20: a main\n1: b main\n");
	assert_true(store_merge(p.store, &q, STORE_AS_TYPE, &p.w.arena, &p.w.strings, &merged, &e));
	assert_int_equal(second_total(&p, 0, INT64_MAX, STORE_AS_TYPE), 15);
	if (!store_merge_ids(p.store, ids, 2, NULL, &p.w.arena, &p.w.strings, &merged, &e))
		fail_msg("%s", e.text);
	assert_string_equal(samples_text(&p.w, &merged.profile), "20: a main\n1: b main\n");
	/* One alone is what was pushed. */
	assert_true(
		store_merge_ids(p.store, ids + 1, 1, NULL, &p.w.arena, &p.w.strings, &merged, &e));
	assert_string_equal(samples_text(&p.w, &merged.profile), "30: a main\n2: b main\n");
	place_release(&p);
}

/* Each adds what it adds to a sum over time: what lies between them does not count. */
TEST(profiles_that_are_named_are_differences_to_those_before_them)
{
	struct store_query q = { .to = INT64_MAX, .limit = 1 };
	struct store_merged merged;
	struct store_meta *metas;
	struct store_id ids[3];
	struct place p;
	struct err e;
	size_t n;

	place_init(&p);
	put(&p, &heap, "1", 100 * SECOND, "main 10\n");
	put(&p, &heap, "1", 160 * SECOND, "main 30\n");
	put(&p, &heap, "1", 220 * SECOND, "main 80\n");
	put(&p, &heap, "1", 280 * SECOND, "main 81\n");
	put(&p, &heap, "2", 280 * SECOND, "main 7\n");
	if (!store_merge(p.store, &q, STORE_AS_TYPE, &p.w.arena, &p.w.strings, &merged, &e))
		fail_msg("%s", e.text);
	q.limit = 0;
	assert_true(store_find(p.store, &q, &p.w.arena, &metas, &n, &e));
	assert_int_equal(n, 5);
	ids[0] = metas[4].id;
	ids[1] = metas[3].id;
	ids[2] = metas[1].id;
	assert_true(store_merge_ids(p.store, ids, 3, NULL, &p.w.arena, &p.w.strings, &merged, &e));
	assert_string_equal(samples_text(&p.w, &merged.profile), "21: main\n");
	assert_int_equal(merged.nprofiles, 3);
	ids[2].at[0] ^= 1;
	assert_false(store_merge_ids(p.store, ids, 3, NULL, &p.w.arena, &p.w.strings, &merged, &e));
	assert_int_equal(e.kind, ERR_NOTFOUND);
	place_release(&p);
}

TEST(threads_are_averaged_and_samples_added)
{
	struct place p;

	place_init(&p);
	put(&p, &threads, "1", 100 * SECOND, "main 10\n");
	put(&p, &threads, "1", 160 * SECOND, "main 30\n");
	assert_string_equal(merge(&p, 0, INT64_MAX, STORE_AS_TYPE), "20: main\n");
	place_release(&p);
	place_init(&p);
	put(&p, &cpu, "1", 100 * SECOND, "main 10\n");
	put(&p, &cpu, "1", 160 * SECOND, "main 30\n");
	assert_string_equal(merge(&p, 0, INT64_MAX, STORE_AS_TYPE), "40: main\n");
	place_release(&p);
}

/* ---- tiers */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* All values of all samples, in an order of their own, and of how many profiles they are. */
static const char *merge_all(struct place *p, int64_t from, int64_t to, enum store_sum how,
			     uint64_t *ntiers)
{
	struct store_query q = { .from = from, .to = to };
	struct store_merged m;
	struct buf out = { 0 };
	char **lines;
	struct err e;

	*ntiers = 0;
	if (!store_merge(p->store, &q, how, &p->w.arena, &p->w.strings, &m, &e))
		return arena_copy(&p->w.arena, e.text, strlen(e.text) + 1);
	*ntiers = m.ntiers;
	lines = arena_many(&p->w.arena, m.profile.nsamples + 1, char *);
	for (uint32_t i = 0; i < m.profile.nsamples; i++) {
		const struct sample *s = &m.profile.samples[i];
		struct buf line = { 0 };

		for (uint32_t k = 0; k < s->nstack; k++) {
			const struct location *l =
				&m.profile.locations[m.profile.stacks[s->stack + k]];
			uint32_t f = m.profile.lines[l->first_line].function;

			buf_str(&line, profile_str(&m.profile, m.profile.functions[f].name));
			buf_char(&line, ';');
		}
		for (uint32_t t = 0; t < m.profile.ntypes; t++)
			buf_printf(&line, " %lld", (long long)sample_values(&m.profile, s)[t]);
		buf_char(&line, '\0');
		lines[i] = arena_adopt(&p->w.arena, line.p);
	}
	qsort(lines, m.profile.nsamples, sizeof(*lines), by_text);
	buf_printf(&out, "%llu profiles of %llu series, %lld-%lld, duration %lld\n",
		   (unsigned long long)m.nprofiles, (unsigned long long)m.nseries,
		   (long long)m.first, (long long)m.last, (long long)m.profile.duration_nanos);
	for (uint32_t i = 0; i < m.profile.nsamples; i++)
		buf_printf(&out, "%s\n", lines[i]);
	buf_char(&out, '\0');
	return arena_adopt(&p->w.arena, out.p);
}

static void tidy(struct place *p, int64_t now)
{
	struct err e;

	if (!store_tidy(p->store, now, &e))
		fail_msg("%s", e.text);
}

static uint64_t random_state;

static int64_t random_below(int64_t n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)(random_state >> 33) % n;
}

/* The same profile to both. Counters of a process rise until it begins anew. */
static void put_random(struct place *x, struct place *y, const struct shape *shape, int64_t time)
{
	static int64_t counts[2][3];
	int pod = (int)random_below(2);
	char stacks[100], name[2] = { (char)('1' + pod), '\0' };

	for (int i = 0; i < 3; i++)
		counts[pod][i] = random_below(50) == 0 ? 1 : counts[pod][i] + random_below(9);
	snprintf(stacks, sizeof(stacks), "main;a %lld\nmain;b %lld\nmain;%c %lld\n",
		 (long long)counts[pod][0] + 1, (long long)counts[pod][1] + 1,
		 (char)('c' + random_below(5)), (long long)counts[pod][2] + 1);
	put(x, shape, name, time, stacks);
	put(y, shape, name, time, stacks);
}

static uint64_t compare_random(struct place *x, struct place *y, int64_t end, int n)
{
	uint64_t ntiers, ignored, all = 0;

	for (int i = 0; i < n; i++) {
		int64_t from = random_below(end / SECOND) * SECOND,
			to = from + random_below(end / SECOND) * SECOND;
		enum store_sum how = i % 3 ? STORE_AS_TYPE : STORE_SUM;
		const char *with = merge_all(x, from, to, how, &ntiers);

		assert_string_equal(with, merge_all(y, from, to, how, &ignored));
		assert_int_equal(ignored, 0);
		all += ntiers;
	}
	return all;
}

static void check_tiers(const struct shape *shape, uint64_t seed)
{
	enum { N = 600 };
	struct place x, y;
	int64_t step = 300 * SECOND, end = N * step; /* two days and two hours */

	random_state = seed;
	place_init(&x);
	place_init(&y);
	for (int64_t i = 0; i < N; i++) {
		put_random(&x, &y, shape, i * step + random_below(100) * SECOND);
		if (random_below(50) == 0)
			tidy(&x, i * step + HOUR);
	}
	tidy(&x, end + 3 * HOUR);
	assert_true(compare_random(&x, &y, end, 60) > 100);
	/* what comes late counts at once, and after its windows were made again */
	for (int i = 0; i < 40; i++)
		put_random(&x, &y, shape, random_below(end / SECOND) * SECOND);
	compare_random(&x, &y, end, 30);
	tidy(&x, end + 3 * HOUR);
	assert_true(compare_random(&x, &y, end, 60) > 100);
	reopen(&x, NULL);
	assert_true(compare_random(&x, &y, end, 10) > 10);
	for (int i = 0; i < 5; i++)
		put_random(&x, &y, shape, random_below(end / SECOND) * SECOND);
	compare_random(&x, &y, end, 30);
	place_release(&x);
	place_release(&y);
}

TEST(merges_with_sums_of_windows_are_those_without)
{
	check_tiers(&cpu, 1);
	check_tiers(&threads, 2);
	check_tiers(&mutexes, 3);
	check_tiers(&heap, 4);
}

/* ---- less */

#define DAYS (24 * HOUR)

static struct store_stats stats(struct place *p)
{
	struct store_stats st;

	store_stats(p->store, &st);
	return st;
}

static size_t count_found(struct place *p)
{
	struct store_query q = { .from = INT64_MIN, .to = INT64_MAX };
	struct store_meta *metas;
	struct err e;
	size_t n;

	assert_true(store_find(p->store, &q, &p->w.arena, &metas, &n, &e));
	return n;
}

TEST(old_profiles_become_minutes_hours_and_days_and_go)
{
	const struct store_params params = { .is_passive = true,
					     .keep = { .raw_ns = 1 * DAYS,
						       .minute_ns = 2 * DAYS,
						       .hour_ns = 4 * DAYS,
						       .day_ns = 8 * DAYS } };
	static const int64_t ages[] = { 1, 2, 4 };
	struct place x, y;
	uint64_t ntiers, ignored;

	place_init(&x);
	place_init(&y);
	reopen(&x, &params);
	random_state = 7;
	for (int i = 0; i < 200; i++)
		put_random(&x, &y, &heap, 100 * DAYS + i * 400 * SECOND);
	tidy(&x, 101 * DAYS);
	assert_int_equal(count_found(&x), 200);
	for (size_t i = 0; i < 3; i++) {
		tidy(&x, (101 + ages[i]) * DAYS + HOUR);
		assert_string_equal(
			merge_all(&x, 100 * DAYS, 101 * DAYS - 1, STORE_AS_TYPE, &ntiers),
			merge_all(&y, 100 * DAYS, 101 * DAYS - 1, STORE_AS_TYPE, &ignored));
		assert_true(ntiers > 0);
		assert_int_equal(stats(&x).nprofiles, 200);
	}
	assert_int_equal(count_found(&x), 0);
	assert_int_equal(stats(&x).nthinned, 200);
	/* late, to a day of which only the sum is left */
	put_random(&x, &y, &threads, 100 * DAYS + HOUR);
	reopen(&x, &params);
	assert_int_equal(stats(&x).nprofiles, 201);
	tidy(&x, 109 * DAYS + HOUR);
	assert_int_equal(stats(&x).nprofiles, 0);
	assert_int_equal(stats(&x).nservices, 0);
	place_release(&x);
	place_release(&y);
}

TEST(what_comes_late_to_thinned_days_counts)
{
	const struct store_params params = {
		.is_passive = true,
		.keep = { .raw_ns = 1 * DAYS, .minute_ns = 1 * DAYS, .hour_ns = 1 * DAYS }
	};
	struct place x, y;
	uint64_t ntiers, ignored;

	place_init(&x);
	place_init(&y);
	reopen(&x, &params);
	random_state = 8;
	for (int i = 0; i < 100; i++)
		put_random(&x, &y, &cpu, 100 * DAYS + i * 800 * SECOND);
	tidy(&x, 103 * DAYS);
	assert_int_equal(count_found(&x), 0);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 5; i++)
			put_random(&x, &y, &cpu, 100 * DAYS + random_below(80000) * SECOND);
		for (int i = 0; i < 2; i++) {
			assert_string_equal(
				merge_all(&x, 100 * DAYS, 101 * DAYS, STORE_AS_TYPE, &ntiers),
				merge_all(&y, 100 * DAYS, 101 * DAYS, STORE_AS_TYPE, &ignored));
			assert_true(ntiers > 0);
			tidy(&x, (104 + round) * DAYS);
		}
		assert_int_equal(count_found(&x), 0);
	}
	assert_int_equal(stats(&x).nprofiles, 115);
	place_release(&x);
	place_release(&y);
}

TEST(a_service_may_be_kept_for_another_time)
{
	const struct store_rule as_all = { STR("*"), -1, -1, -1, -1, false };
	const struct store_rule fixed = { STR("a*i"), 0, -1, -1, -1, false };
	const struct store_params params = {
		.is_passive = true, .keep = { .raw_ns = 5 * DAYS }, .rules = &fixed, .nrules = 1
	};
	struct store_rule own = { STR("api"), 1 * DAYS, -1, -1, -1, false }, *rules;
	struct place p;
	struct err e;
	size_t n;

	place_init(&p);
	reopen(&p, &params);
	put(&p, &cpu, "1", 100 * DAYS, "main 1\n");
	tidy(&p, 110 * DAYS);
	assert_int_equal(count_found(&p), 1); /* for ever, by the rule of the opener */
	assert_false(store_drop_rule(p.store, STR("api"), &e));
	assert_true(store_set_rule(p.store, &as_all, &e));
	assert_true(store_set_rule(p.store, &own, &e));
	own.raw_ns = 30 * DAYS;
	assert_true(store_set_rule(p.store, &own, &e));
	reopen(&p, &params);
	store_rules(p.store, &p.w.arena, &rules, &n);
	assert_int_equal(n, 3);
	assert_true(str_eq(rules[0].service, STR("*")) && rules[0].is_stored);
	assert_true(str_eq(rules[1].service, STR("api")) && rules[1].raw_ns == 30 * DAYS);
	assert_true(str_eq(rules[2].service, STR("a*i")) && !rules[2].is_stored);
	tidy(&p, 111 * DAYS);
	assert_int_equal(count_found(&p), 1);
	/* the one for all goes before that of the opener, and keeps it as long as others */
	assert_true(store_drop_rule(p.store, STR("api"), &e));
	tidy(&p, 111 * DAYS);
	assert_int_equal(count_found(&p), 0);
	assert_string_equal(merge(&p, 0, INT64_MAX, STORE_SUM), "1: main\n");
	place_release(&p);
}

static struct store_foreseen foresee(struct place *p, const struct store_rule *rule, int64_t now)
{
	const struct store_rule_change change = { .rule = rule };
	struct store_foreseen out;
	struct err e;

	if (!store_foresee(p->store, &change, now, NULL, &out, &e))
		fail_msg("%s", e.text);
	return out;
}

TEST(what_would_go_is_what_goes)
{
	const struct store_params params = { .is_passive = true };
	const struct store_rule rule = {
		STR("api"), 5 * DAYS, 6 * DAYS, 7 * DAYS, 20 * DAYS, false
	};
	const struct store_rule none = { STR("none"), -1, -1, -1, -1, false };
	const struct store_rule_change drop = { &none, true };
	struct store_foreseen x;
	struct place p;
	struct err e;

	place_init(&p);
	reopen(&p, &params);
	for (int day = 80; day < 110; day++)
		put(&p, &cpu, day % 2 ? "1" : "2", day * DAYS + HOUR, "main 1\n");
	x = foresee(&p, NULL, 110 * DAYS);
	assert_int_equal(x.nthinned + x.ndropped + x.nseries, 0);
	x = foresee(&p, &rule, 110 * DAYS);
	assert_int_equal(x.nthinned, 15);
	assert_int_equal(x.ndropped, 10);
	assert_int_equal(x.nseries, 2);
	assert_int_equal(count_found(&p), 30);
	assert_false(store_foresee(p.store, &drop, 110 * DAYS, NULL, &x, &e));
	assert_int_equal(e.kind, ERR_NOTFOUND);
	assert_true(store_set_rule(p.store, &rule, &e));
	assert_int_equal(foresee(&p, NULL, 110 * DAYS).ndropped, 10);
	tidy(&p, 110 * DAYS);
	assert_int_equal(count_found(&p), 5);
	assert_int_equal(stats(&p).nprofiles, 20);
	x = foresee(&p, NULL, 110 * DAYS);
	assert_int_equal(x.nthinned + x.ndropped, 0);
	/* of those that are only in sums, too */
	assert_int_equal(foresee(&p, NULL, 115 * DAYS).ndropped, 5);
	place_release(&p);
}

TEST(times_that_cannot_be)
{
	static const int64_t times[] = {
		INT64_MIN, INT64_MIN + 1, -1, 1, INT64_MAX, INT64_MAX - 1
	};
	const struct store_params params = {
		.is_passive = true,
		.keep = { .raw_ns = DAYS, .minute_ns = 2 * DAYS, .hour_ns = 3 * DAYS }
	};
	int64_t now = (int64_t)time(NULL) * SECOND;
	struct place p;

	place_init(&p);
	reopen(&p, &params);
	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
		put(&p, &cpu, "1", times[i], "main 1\n");
	/* of the others it is known when they came */
	assert_int_equal(stats(&p).oldest, 1);
	assert_true(stats(&p).newest >= now && stats(&p).newest < now + HOUR);
	assert_string_equal(merge(&p, INT64_MIN, INT64_MAX, STORE_SUM), "6: main\n");
	/* the clock goes on, back, and on again */
	tidy(&p, now + HOUR);
	assert_string_equal(merge(&p, INT64_MIN, INT64_MAX, STORE_SUM), "6: main\n");
	tidy(&p, 0);
	tidy(&p, INT64_MIN + 1);
	put(&p, &cpu, "1", now - HOUR, "main 1\n");
	tidy(&p, INT64_MAX - 1);
	assert_int_equal(count_found(&p), 0);
	assert_string_equal(merge(&p, INT64_MIN, INT64_MAX, STORE_SUM), "7: main\n");
	reopen(&p, &params);
	assert_int_equal(stats(&p).nprofiles, 7);
	place_release(&p);
}

TEST(patterns_of_services)
{
	static const struct {
		const char *pattern, *name;
		bool fits;
	} cases[] = {
		{ "api", "api", true }, { "api", "apis", false },   { "api*", "apis", true },
		{ "*", "", true },	{ "a*c*e", "abcde", true }, { "a*c*e", "abcd", false },
		{ "*ab", "aab", true }, { "", "", true },	    { "", "a", false },
		{ "a**", "a", true },	{ "*a*b", "xaxaxb", true }, { "*a*b", "xbxa", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (store_rule_fits(str_of(cases[i].pattern), str_of(cases[i].name)) !=
		    cases[i].fits)
			fail_msg("%s %s", cases[i].pattern, cases[i].name);
}

/* What is left of a day's profiles of one series, a while later: raw, and the tiers' sums. */
static void assert_left(const struct store_keep *keep, int64_t days, size_t nraw, const char *left)
{
	const struct store_params params = { .is_passive = true, .keep = *keep };
	struct place p;

	place_init(&p);
	reopen(&p, &params);
	for (int i = 0; i < 4; i++)
		put(&p, &cpu, "1", 100 * DAYS + i * 10 * SECOND, "main 1\n");
	tidy(&p, (101 + days) * DAYS + HOUR);
	assert_int_equal(count_found(&p), nraw);
	assert_string_equal(merge(&p, 0, INT64_MAX, STORE_SUM), left);
	assert_int_equal(stats(&p).nthinned, stats(&p).nprofiles - nraw);
	place_release(&p);
}

TEST(what_0_and_short_ages_mean)
{
	const struct store_keep for_ever = { .minute_ns = DAYS, .hour_ns = DAYS, .day_ns = DAYS },
				never_less = { .raw_ns = 5 * DAYS, .minute_ns = 1, .hour_ns = 1 },
				only_raw = { .raw_ns = 5 * DAYS,
					     .minute_ns = 1,
					     .hour_ns = 1,
					     .day_ns = 1 };

	/* 0 is for ever, whatever coarser tiers say: they are made of it */
	assert_left(&for_ever, 1000, 4, "4: main\n");
	/* a tier that ends before a finer one takes nothing away from that */
	assert_left(&never_less, 3, 4, "4: main\n");
	assert_left(&never_less, 6, 0, "4: main\n");
	/* and none are made if none would last longer */
	assert_left(&only_raw, 3, 4, "4: main\n");
	assert_left(&only_raw, 6, 0, "nothing found");
}

/* Each with stacks of its own, so that it takes room. */
static void put_large(struct place *p, int64_t time, int number)
{
	struct buf stacks = { 0 };

	for (int i = 0; i < 300; i++)
		buf_printf(&stacks, "main;f%lld;g%lld %lld\n", (long long)random_below(30),
			   (long long)random_below(100), (long long)random_below(1000000));
	buf_char(&stacks, '\0');
	put(p, &cpu, number % 2 ? "1" : "2", time, stacks.p);
	buf_release(&stacks);
}

TEST(the_folder_stays_below_its_limit)
{
	enum { LIMIT = 2 << 20, N = 1500 };
	struct store_params params = { .is_passive = true, .keep = { .max_bytes = LIMIT } };
	struct place p;

	place_init(&p);
	reopen(&p, &params);
	for (int i = 0; i < N; i++) {
		put_large(&p, 100 * DAYS + i * HOUR / 2, i);
		if (i % 100 == 99) {
			tidy(&p, 100 * DAYS + (i + 2) * HOUR / 2);
			assert_true(stats(&p).bytes_on_disk <= LIMIT);
		}
	}
	/* the newest is there, of the oldest there is less or nothing */
	assert_true(stats(&p).newest > 100 * DAYS + (N - 5) * HOUR / 2);
	assert_true(stats(&p).nthinned + stats(&p).ndeleted > 0);
	assert_true(stats(&p).nprofiles > 10);
	reopen(&p, NULL);
	assert_true(stats(&p).newest > 100 * DAYS + (N - 5) * HOUR / 2);
	place_release(&p);
}

TEST(deleting_deletes_sums)
{
	struct place x, y;
	struct store_query q = { .from = 30 * HOUR + 7, .to = 60 * HOUR };
	uint64_t ignored, n;
	struct err e;

	place_init(&x);
	place_init(&y);
	random_state = 9;
	for (int i = 0; i < 400; i++)
		put_random(&x, &y, &mutexes, i * HOUR / 4);
	tidy(&x, 200 * HOUR);
	assert_true(store_delete(x.store, &q, false, &n, &e));
	assert_int_equal(n, 120);
	assert_true(store_delete(y.store, &q, false, &n, &e));
	compare_random(&x, &y, 100 * HOUR, 50);
	tidy(&x, 201 * HOUR);
	assert_true(compare_random(&x, &y, 100 * HOUR, 50) > 50);
	assert_string_equal(merge_all(&x, q.from, q.to, STORE_SUM, &ignored), "nothing found");
	place_release(&x);
	place_release(&y);
}

/* ---- books */

/* Of a service that has other functions with each deploy. */
static void put_deploy(struct place *p, int deploy, int64_t time)
{
	struct buf stacks = { 0 };

	buf_puts(&stacks, "main;always 1\n");
	for (int i = 0; i < 2000; i++)
		buf_printf(&stacks, "main;v%d_handler_%d;v%d_step_%d 1\n", deploy, i % 50, deploy,
			   i);
	buf_char(&stacks, '\0');
	put(p, &cpu, "1", time, stacks.p);
	buf_release(&stacks);
	/* Those of many days are too much to keep. */
	world_release(&p->w);
	world_init(&p->w);
}

static struct store_stats stats_of(struct place *p)
{
	struct store_stats stats;

	store_stats(p->store, &stats);
	return stats;
}

static void say_nothing(void *ctx, const char *line)
{
	(void)ctx;
	print_message("# %s\n", line);
}

static void assert_whole(struct place *p, uint64_t nprofiles)
{
	struct store_checked checked;
	struct err e;

	assert_true(store_check(p->store, say_nothing, NULL, &checked, &e));
	assert_int_equal(checked.nproblems, 0);
	assert_int_equal(checked.nprofiles, nprofiles);
}

TEST(compacting_drops_what_only_deleted_profiles_needed)
{
	struct place p;
	struct store_query first = { .from = 0, .to = 9 * 24 * HOUR - 1 };
	uint64_t before, n;
	struct err e;
	char *all;

	place_init(&p);
	for (int i = 0; i < 10; i++)
		put_deploy(&p, i, i * 24 * HOUR + HOUR);
	put(&p, &heap, "1", 9 * 24 * HOUR, "main 7\n");
	/* sums of the days, which need the book too */
	assert_true(store_tidy(p.store, 20 * 24 * HOUR, &e));
	assert_true(store_delete(p.store, &first, false, &n, &e));
	assert_int_equal(n, 9);
	assert_true(store_compact(p.store, &e));
	before = stats_of(&p).bytes_on_disk;
	reopen(&p, NULL);
	assert_whole(&p, 2);
	all = strdup(merge_type(&p, "cpu", 0, INT64_MAX));
	assert_non_null(strstr(all, "1: always main"));
	assert_non_null(strstr(all, "v9_step_7 "));
	assert_null(strstr(all, "v8_"));
	/* A store that never had the others is no smaller. */
	place_release(&p);
	place_init(&p);
	put_deploy(&p, 9, 9 * 24 * HOUR + HOUR);
	put(&p, &heap, "1", 9 * 24 * HOUR, "main 7\n");
	assert_true(store_tidy(p.store, 20 * 24 * HOUR, &e));
	assert_true(store_compact(p.store, &e));
	assert_string_equal(merge_type(&p, "cpu", 0, INT64_MAX), all);
	assert_true(before <= stats_of(&p).bytes_on_disk + 65536);
	free(all);
	place_release(&p);
}

static void count_rewritten(void *ctx, const char *line)
{
	*(int *)ctx += strstr(line, "nothing needed any more") != NULL;
}

/* With books of a megabyte a few deploys fill one. Days go one by one; what is left of a book that
 * had several gets into the current one. */
TEST(a_service_that_is_deployed_every_day_stays_small)
{
	struct store_params params = { .is_passive = true,
				       .max_memory = 8 << 20,
				       .keep = { .raw_ns = 24 * HOUR,
						 .minute_ns = 24 * HOUR,
						 .hour_ns = 48 * HOUR,
						 .day_ns = 7 * 24 * HOUR } };
	struct place p;
	uint64_t early = 0;
	int nrewritten = 0;
	struct err e;

	params.log = count_rewritten;
	params.log_ctx = &nrewritten;
	place_init(&p);
	reopen(&p, &params);
	for (int day = 1; day <= 100; day++) {
		uint64_t bytes;

		put_deploy(&p, day, day * 24 * HOUR);
		put_deploy(&p, day, day * 24 * HOUR + 12 * HOUR);
		if (!store_tidy(p.store, (day + 1) * 24 * HOUR + HOUR, &e))
			fail_msg("%s", e.text);
		bytes = stats_of(&p).bytes_on_disk;
		if (day > 20 && day <= 40 && bytes > early)
			early = bytes;
		if (day > 40 && bytes > early + early / 4)
			fail_msg("day %d: %llu bytes, and at most %llu until day 40", day,
				 (unsigned long long)bytes, (unsigned long long)early);
	}
	assert_true(nrewritten > 5);
	reopen(&p, &params);
	assert_whole(&p, 1);
	assert_string_equal(merge_type(&p, "cpu", 100 * 24 * HOUR, INT64_MAX),
			    merge_type(&p, "cpu", 100 * 24 * HOUR, 101 * 24 * HOUR));
	assert_non_null(strstr(merge_type(&p, "cpu", 0, INT64_MAX), "v95_step_3 "));
	assert_null(strstr(merge_type(&p, "cpu", 0, INT64_MAX), "v90_"));
	place_release(&p);
}

/* ---- out and in again */

struct twin {
	struct place *from, to;
};

static bool copy_profile(void *ctx, const struct store_id *id, struct err *e)
{
	struct twin *t = ctx;
	struct world *w = &t->to.w;
	struct store_meta meta;
	struct profile p;
	struct str bytes;
	struct store_new new = { .id = id };

	if (!store_get(t->from->store, id, &w->arena, &w->strings, &meta, &p, &bytes, e))
		return false;
	new.service = meta.service;
	new.type = meta.type;
	new.labels = meta.labels;
	new.nlabels = meta.nlabels;
	new.created = meta.created;
	new.process = meta.process;
	new.profile = &p;
	return store_put(t->to.store, &new, &w->arena, &meta, e);
}

static bool copy_window(void *ctx, const struct store_window *w, struct err *e)
{
	struct twin *t = ctx;
	bool is_put;

	return store_put_window(t->to.store, w, false, &is_put, e) && is_put;
}

static bool never(void *ctx, const struct err *e)
{
	(void)ctx;
	fail_msg("%s", e->text);
	return false;
}

TEST(what_is_carried_to_another_store_gives_the_same_answers)
{
	struct store_params params = { .is_passive = true,
				       .keep = { .raw_ns = 30 * HOUR,
						 .minute_ns = 30 * HOUR,
						 .hour_ns = 60 * HOUR,
						 .day_ns = 365 * 24 * HOUR } };
	static const char *const types[] = { "mutex", "heap", "cpu" };
	struct place p;
	struct twin t = { .from = &p };
	struct store_carrier carrier = { copy_profile, copy_window, never, &t };
	struct store_stats stats, copied;
	struct err e;

	place_init(&p);
	reopen(&p, &params);
	for (int64_t hour = 0; hour < 96; hour++) {
		char one[50], two[50];

		snprintf(one, sizeof(one), "main;one %d\n", (int)(1000 + hour));
		snprintf(two, sizeof(two), "main;two %d\n", (int)(10 + 5 * (hour % 50)));
		put_from(&p, &mutexes, "", 0x7000, hour * HOUR + SECOND, one);
		put_from(&p, &mutexes, "pod-2", 0, hour * HOUR + 2 * SECOND, two);
		put(&p, &heap, "1", hour * HOUR + SECOND, one);
		put(&p, &cpu, "2", hour * HOUR + SECOND, two);
	}
	assert_true(store_tidy(p.store, 97 * HOUR, &e));
	place_init(&t.to);
	if (!store_carry(p.store, &carrier, &e))
		fail_msg("%s", e.text);
	store_stats(p.store, &stats);
	store_stats(t.to.store, &copied);
	assert_true(stats.nthinned > 0);
	assert_int_equal(copied.nprofiles, stats.nprofiles);
	for (int opened = 0; opened < 2; opened++) {
		for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
			for (int64_t from = 0; from < 96; from += 7)
				for (int64_t to = from + 1; to < 99; to += 17)
					assert_string_equal(
						merge_type(&t.to, types[i], from * HOUR, to * HOUR),
						merge_type(&p, types[i], from * HOUR, to * HOUR));
		/* Nothing is made again, or otherwise. */
		reopen(&t.to, &params);
		assert_true(store_tidy(t.to.store, 97 * HOUR, &e));
	}
	place_release(&t.to);
	place_release(&p);
}
