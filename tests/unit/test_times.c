#include "test.h"

#include "profiles.h"

/* Samples of 1 with a number of this key and unit, one for each of `numbers`. */
static struct profile timed(struct world *w, const char *key, const char *unit,
			    const int64_t *numbers, uint32_t n)
{
	struct profile p = folded(w, "main;work 1\nmain 1");
	struct sample *samples = arena_many(&w->arena, n, struct sample);
	struct label *labels = arena_many(&w->arena, n, struct label);
	struct label_set *sets = arena_many(&w->arena, n, struct label_set);
	int64_t *values = arena_many(&w->arena, n, int64_t);

	for (uint32_t i = 0; i < n; i++) {
		samples[i] = p.samples[i % p.nsamples];
		samples[i].labels = samples[i].row = i;
		values[i] = 1;
		labels[i] = (struct label){ .key = strings_add(p.strings, str_of(key)),
					    .text = strings_add(p.strings, str_of(unit)),
					    .number = numbers[i] };
		sets[i] = (struct label_set){ .first = i, .nnumbers = 1 };
	}
	p.samples = samples;
	p.values = values;
	p.labels = labels;
	p.label_sets = sets;
	p.nsamples = p.nlabel_sets = n;
	profile_find_times(&w->arena, &p);
	return p;
}

static const int64_t some[] = { 3000, 1000, 2000, 2000 };

TEST(labels_that_are_times)
{
	static const struct {
		const char *key, *unit;
		int64_t scale; /* to nanoseconds; 0: it is none */
	} cases[] = { { "timestamp", "nanoseconds", 1 },
		      { "timestamp", "ms", 1000000 },
		      { "time", "us", 1000 },
		      { "timestamp_ns", "", 1 },
		      { "timestamp_ms", "", 1000000 },
		      { "timestamp_ns", "nanoseconds", 1 },
		      { "timestamp", "", 0 },
		      { "timestamp", "bytes", 0 },
		      { "bytes", "nanoseconds", 0 },
		      { "latency", "ms", 0 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct world w;
		struct profile p;

		world_init(&w);
		p = timed(&w, cases[i].key, cases[i].unit, some, 4);
		if (cases[i].scale) {
			assert_non_null(p.times);
			assert_int_equal(p.times->n, 4);
			assert_int_equal(p.times->ticks[0].at, 1000 * cases[i].scale);
			assert_int_equal(p.times->ticks[3].at, 3000 * cases[i].scale);
		} else {
			assert_null(p.times);
		}
		world_release(&w);
	}
}

TEST(a_part_of_the_time)
{
	struct world w;
	struct profile all, p;

	world_init(&w);
	all = p = timed(&w, "timestamp", "ns", some, 4);
	profile_take_times(&w.arena, &p, 0, 1, NULL);
	assert_int_equal(p.nsamples, 1);
	assert_int_equal(p.samples[0].labels, 1);
	p = all;
	profile_take_times(&w.arena, &p, 1000, 2000, NULL);
	assert_int_equal(p.nsamples, 2);
	p = all;
	profile_take_times(&w.arena, &p, 1000, INT64_MAX, NULL);
	assert_int_equal(p.nsamples, 3);
	assert_int_equal(profile_tick_at(all.times, 0), 0);
	assert_int_equal(profile_tick_at(all.times, -5), 0);
	assert_int_equal(profile_tick_at(all.times, 1), 1);
	assert_int_equal(profile_tick_at(all.times, 2001), 4);
	world_release(&w);
}

TEST(times_that_cannot_be)
{
	static const int64_t wild[] = { INT64_MAX, INT64_MIN, 0, -1 };
	struct world w;
	struct profile p;

	world_init(&w);
	p = timed(&w, "timestamp", "ns", wild, 4);
	assert_non_null(p.times);
	assert_int_equal(p.times->ticks[0].at, INT64_MIN);
	profile_take_times(&w.arena, &p, 0, INT64_MAX, NULL);
	assert_true(p.nsamples >= 1);
	p = timed(&w, "timestamp", "hours", wild, 4); /* two are too far away */
	assert_non_null(p.times);
	assert_int_equal(p.times->n, 2);
	world_release(&w);
}

/* One odd label makes no time axis. */
TEST(few_of_many_samples_with_times)
{
	struct world w;
	struct profile p;

	world_init(&w);
	p = timed(&w, "timestamp", "ns", some, 4);
	p.times = NULL;
	for (uint32_t i = 1; i < 4; i++)
		p.label_sets[i].nnumbers = 0;
	profile_find_times(&w.arena, &p);
	assert_null(p.times);
	world_release(&w);
}
