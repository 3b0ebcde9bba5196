#include "test.h"

#include <stdio.h>
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
	*p = (struct place){ .dir = "/tmp/kiln-store-XXXXXX" };
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

static const char *merge(struct place *p, int64_t from, int64_t to, enum store_sum how)
{
	struct store_query q = { .from = from, .to = to };
	struct store_merged merged;
	struct err e;

	if (!store_merge(p->store, &q, how, &p->w.arena, &p->w.strings, &merged, &e))
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
