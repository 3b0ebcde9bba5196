#include "server/columns.h"

#include "test.h"

#include "profiles.h"

TEST(counts_become_cpu_time_by_the_period)
{
	struct world w;
	struct profile p;

	world_init(&w);
	p = folded(&w, "main;f 3\nmain;g 4\n");
	columns_name(&p, profile_type_row(STR("cpu")));
	p.period = 20;
	columns_add_cpu(&w.arena, &p, false);
	assert_int_equal(p.ntypes, 2);
	assert_true(str_eq(profile_str(&p, p.types[0].type), STR("samples")));
	assert_true(str_eq(profile_str(&p, p.types[1].unit), STR("nanoseconds")));
	assert_true(str_eq(profile_str(&p, p.period_type.type), STR("cpu")));
	assert_int_equal(sample_values(&p, &p.samples[1])[0], 4);
	assert_int_equal(sample_values(&p, &p.samples[1])[1], 80);
	world_release(&w);
}

TEST(cpu_time_becomes_counts)
{
	struct world w;
	struct profile p;

	world_init(&w);
	p = folded(&w, "main;f 60\n");
	p.period = 20;
	columns_add_cpu(&w.arena, &p, true);
	assert_int_equal(sample_values(&p, &p.samples[0])[0], 3);
	assert_int_equal(sample_values(&p, &p.samples[0])[1], 60);
	world_release(&w);
}

TEST(products_stay_in_bounds)
{
	struct world w;
	struct profile p;

	world_init(&w);
	p = folded(&w, "main;f 4611686018427387904\nmain;g 2\n");
	columns_scale(&p, 3);
	assert_int_equal(p.values[0], INT64_MAX);
	assert_int_equal(p.values[1], 6);
	world_release(&w);
}
