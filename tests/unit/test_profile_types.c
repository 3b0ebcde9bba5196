#include "server/profile_types.h"

#include "test.h"

#define SAME(got, want) assert_true(str_eq(got, STR(want)))

TEST(names_translate_both_ways)
{
	SAME(profile_type_name(STR("cpu")), "process_cpu");
	SAME(profile_type_of_name(STR("process_cpu")), "cpu");
	SAME(profile_type_of_name(STR("goroutines")), "goroutine");
	SAME(profile_type_of_name(STR("godeltaprof_memory")), "heap");
	SAME(profile_type_of_name(STR("godeltaprof_")), "godeltaprof_");
	SAME(profile_type_name(STR("gpu")), "gpu");
	SAME(profile_type_of_name(STR("gpu")), "gpu");
}

/* Each row is found by its own id, and its type's name leads back to a row of the same name. */
TEST(every_row_has_a_home)
{
	for (size_t i = 0; i < nprofile_types; i++) {
		const struct profile_type *t = &profile_types[i];
		struct profile_type_id id = { str_of(t->name), str_of(t->sample), str_of(t->unit),
					      str_of(t->period), str_of(t->period_unit) },
				       again;
		struct str homes[PROFILE_TYPE_HOMES];
		struct buf text = { 0 };
		bool is_there = false;
		size_t n = profile_type_homes(&id, homes);

		for (size_t k = 0; k < n; k++)
			is_there = is_there || str_eq(homes[k], str_of(t->type));
		assert_true(is_there);
		profile_type_print_id(&text, &id);
		assert_true(profile_type_parse_id(buf_view(&text), &again));
		assert_true(str_eq(again.sample, id.sample));
		assert_true(str_eq(again.period_unit, id.period_unit));
		buf_release(&text);
	}
}

TEST(ids_have_five_parts)
{
	struct profile_type_id id;

	assert_false(profile_type_parse_id(STR(""), &id));
	assert_false(profile_type_parse_id(STR("a:b:c:d"), &id));
	assert_false(profile_type_parse_id(STR("a:b:c:d:e:f"), &id));
	assert_false(profile_type_parse_id(STR(":b:c:d:e"), &id));
	assert_true(profile_type_parse_id(STR("a::c::"), &id));
	SAME(id.unit, "c");
	SAME(id.period_unit, "");
}

TEST(unknown_ids_are_stored_by_their_name)
{
	struct profile_type_id id = { .name = STR("memory"), .sample = STR("new_one") };
	struct str homes[PROFILE_TYPE_HOMES];

	assert_int_equal(profile_type_homes(&id, homes), 1);
	SAME(homes[0], "heap");
	id.name = STR("gpu");
	assert_int_equal(profile_type_homes(&id, homes), 1);
	SAME(homes[0], "gpu");
}

TEST(sample_types_tell_the_type)
{
	static const struct {
		const char *first, *second, *type;
	} cases[] = {
		{ "samples", "cpu", "cpu" },
		{ "cpu", "wall", "wall" },
		{ "alloc_objects", "inuse_space", "heap" },
		{ "mutex_count", "mutex_duration", "mutex" },
		{ "block_count", "delay", "block" },
		{ "goroutines", "", "goroutine" },
		{ "contentions", "delay", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct str names[] = { str_of(cases[i].first), str_of(cases[i].second) };

		assert_true(str_eq(profile_type_of_samples(names, 2), str_of(cases[i].type)));
	}
}
