#include "test.h"

#include "store/kind.h"
#include "stores.h"

static uint32_t add(struct kinds *k, const char *name, const char *unit, int64_t service,
		    uint64_t nprofiles)
{
	char text[16];
	uint32_t kind = kinds_find(k, str_of(name), str_of(unit));

	snprintf(text, sizeof(text), "s%lld", (long long)service);
	kinds_count(k, kind, service, str_of(text), nprofiles);
	return kind;
}

TEST(what_most_services_have_is_chosen)
{
	struct arena a = { 0 };
	struct store_left_out left;
	struct kinds k;
	uint32_t cpu;

	kinds_init(&k);
	cpu = add(&k, "cpu", "nanoseconds", 1, 1);
	assert_false(kinds_are_mixed(&k));
	add(&k, "samples", "count", 2, 1000);
	assert_int_equal(add(&k, "cpu", "nanoseconds", 3, 1), cpu);
	assert_true(kinds_are_mixed(&k));
	assert_int_equal(kinds_choose(&k), cpu);
	kinds_left_out(&k, cpu, &a, &left);
	assert_int_equal(left.nprofiles, 1000);
	assert_int_equal(left.nservices, 1);
	assert_true(str_eq(
		left.why, STR("1000 profiles of 1 service are left out, as of \"s2\": what is told "
			      "is cpu in nanoseconds, and they have samples in count; name a "
			      "service or a sample type to see them")));
	k.at.at[cpu].is_unfit = true;
	assert_int_not_equal(kinds_choose(&k), cpu);
	kinds_release(&k);
	arena_release(&a);
}

TEST(units_of_a_family_are_one_kind)
{
	struct kinds k, more;
	uint32_t cpu;

	kinds_init(&k);
	kinds_init(&more);
	cpu = add(&k, "cpu", "milliseconds", 1, 1);
	add(&more, "cpu", "ns", 2, 1);
	assert_false(kinds_are_mixed(&k));
	kinds_join(&k, &more);
	assert_true(kinds_are_mixed(&k));
	assert_int_equal(kinds_choose(&k), cpu);
	assert_int_equal(k.at.at[cpu].nservices, 2);
	assert_true(str_eq(k.at.at[cpu].unit, STR("ns")));
	assert_true(kind_ratio(STR("milliseconds"), STR("ns")) == 1e6);
	assert_true(kind_ratio(STR("count"), STR("count")) == 1);
	assert_int_not_equal(kinds_find(&k, STR("cpu"), STR("bytes")), cpu);
	assert_int_not_equal(kinds_find(&k, STR("wall"), STR("ns")), cpu);
	kinds_release(&k);
	kinds_release(&more);
}

/* Of one kind in a series, and then more of another. */
TEST(a_series_has_what_most_of_its_profiles_have)
{
	struct store_top_params params = { .query = everything, .limit = 10 };
	struct store_top top;
	struct place p;
	struct err e;

	place_init(&p);
	put(&p, "api", "cpu", "", 100, "main;work 10\n");
	for (int i = 0; i < 2; i++) {
		struct profile profile = folded(&p.w, "main;work 3\n");
		struct value_type cpu = { strings_add(&p.w.strings, STR("cpu")),
					  strings_add(&p.w.strings, STR("nanoseconds")) };
		struct store_new new = { .service = STR("api"),
					 .type = STR("cpu"),
					 .created = (101 + i) * (int64_t)SECOND,
					 .profile = &profile };
		struct store_meta meta;

		profile.types = &cpu;
		profile.default_type = cpu.type;
		assert_true(store_put(p.store, &new, &p.w.arena, &meta, &e));
	}
	if (!store_top(p.store, &params, &p.w.arena, &top, &e))
		fail_msg("%s", e.text);
	assert_int_equal(top.total, 6);
	assert_int_equal(top.nprofiles, 2);
	assert_int_equal(top.left_out.nprofiles, 1);
	assert_true(str_eq(top.unit, STR("nanoseconds")));
	place_release(&p);
}

/* Names of services are kept beside those of kinds, which move as they become more. */
TEST(there_may_be_many_services)
{
	struct kinds k, all;
	struct store_left_out left_out;
	struct arena a = { 0 };
	uint32_t cpu, other;
	char name[20];

	kinds_init(&k);
	kinds_init(&all);
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "service-%d", i);
		kinds_count(&k, kinds_find(&k, STR("cpu"), STR("nanoseconds")), i, str_of(name), 1);
	}
	kinds_count(&k, kinds_find(&k, STR("samples"), STR("count")), 5000, STR("odd"), 2);
	kinds_join(&all, &k);
	cpu = kinds_find(&all, STR("cpu"), STR("nanoseconds"));
	other = kinds_find(&all, STR("samples"), STR("count"));
	assert_int_equal(kinds_choose(&all), cpu);
	assert_int_equal(all.at.at[cpu].nservices, 5000);
	assert_int_equal(all.at.at[other].nprofiles, 2);
	kinds_left_out(&all, cpu, &a, &left_out);
	assert_int_equal(left_out.nservices, 1);
	kinds_release(&k);
	kinds_release(&all);
	arena_release(&a);
}
