#include "test.h"

#include "fetch/symbolz.h"

static void check_url(const char *source, const char *want)
{
	struct buf got = { 0 };

	assert_true(symbolz_url(&got, str_of(source)));
	buf_char(&got, '\0');
	assert_string_equal(got.p, want);
	buf_release(&got);
}

TEST(where_to_ask)
{
	struct buf out = { 0 };

	check_url("http://h:1/debug/pprof/heap?debug=1", "http://h:1/debug/pprof/symbol");
	check_url("http://h:1/x/pprof/contention", "http://h:1/x/pprof/symbol");
	check_url("http://h:1/pprof/other", "http://h:1/pprof/symbolz");
	check_url("http://h:1/profilez?seconds=5", "http://h:1/symbolz");
	check_url("https+insecure://h/", "https+insecure://h/symbolz");
	assert_false(symbolz_url(&out, STR("/tmp/file")));
	assert_int_equal(out.n, 0);
}

/* Two mappings; the locations of the first are at 0x1000, 0x2000 (with a line) and 0x3000. */
struct fixture {
	struct arena a;
	struct strings strings;
	struct mapping mappings[2];
	struct location locations[4];
	struct line lines[1];
	struct function functions[1];
	struct profile p;
};

static void setup(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	strings_init(&f->strings);
	f->mappings[0] = (struct mapping){ .id = 1, .start = 0x1000, .limit = 0x9000 };
	f->mappings[1] = (struct mapping){ .id = 2, .start = 0x9000, .limit = 0xa000 };
	for (uint32_t i = 0; i < 4; i++)
		f->locations[i] = (struct location){ .id = i + 1,
						     .address = 0x1000 * (i + 1),
						     .mapping = i == 3 };
	f->locations[1].nlines = 1;
	f->functions[0] =
		(struct function){ .id = 1, .name = strings_add(&f->strings, STR("known")) };
	f->p = (struct profile){ .strings = &f->strings,
				 .mappings = f->mappings,
				 .nmappings = 2,
				 .locations = f->locations,
				 .nlocations = 4,
				 .lines = f->lines,
				 .nlines = 1,
				 .functions = f->functions,
				 .nfunctions = 1 };
}

static void teardown(struct fixture *f)
{
	arena_release(&f->a);
	strings_release(&f->strings);
}

static void check_name(const struct profile *p, uint32_t location, const char *want)
{
	const struct location *l = &p->locations[location];
	struct str name = STR("");

	if (l->nlines)
		name = profile_str(p, p->functions[p->lines[l->first_line].function].name);
	assert_true(str_eq(name, str_of(want)));
}

TEST(names_go_to_their_addresses)
{
	struct fixture f;
	struct err e;

	setup(&f);
	assert_true(symbolz_reply(&f.a, &f.p, 0,
				  STR("num_symbols: 1\n0x1100 a b<c>\n0x3100\tx\n0x4100 y\n0x1200"),
				  0x100, &e));
	check_name(&f.p, 0, "a b<c>");
	check_name(&f.p, 1, "known");
	check_name(&f.p, 2, "x");
	check_name(&f.p, 3, ""); /* of the other mapping */
	assert_int_equal(f.p.nfunctions, 4);
	teardown(&f);
}

TEST(names_are_kept_once)
{
	struct fixture f;
	struct err e;

	setup(&f);
	assert_true(symbolz_reply(&f.a, &f.p, 0, STR("0x1000 f\n0x2000 f\n0x3000 g\n0x3000 f\n"), 0,
				  &e));
	check_name(&f.p, 0, "f");
	check_name(&f.p, 1, "f");
	check_name(&f.p, 2, "f");
	assert_int_equal(f.p.nfunctions, 3);
	teardown(&f);
}

TEST(a_line_without_its_end_does_not_count)
{
	struct fixture f;
	struct err e;

	setup(&f);
	assert_true(symbolz_reply(&f.a, &f.p, 0, STR("0x1000 f"), 0, &e));
	check_name(&f.p, 0, "");
	assert_true(symbolz_reply(&f.a, &f.p, 0, STR(""), 0, &e));
	teardown(&f);
}

TEST(addresses_that_do_not_fit)
{
	struct fixture f;
	struct err e;

	setup(&f);
	assert_false(symbolz_reply(&f.a, &f.p, 0, STR("0x11112222333344445 f\n"), 0, &e));
	assert_non_null(strstr(e.text, "unexpected parse failure 0x11112222333344445"));
	assert_false(symbolz_reply(&f.a, &f.p, 0, STR("0x10 f\n"), 0x100, &e));
	assert_non_null(strstr(e.text, "cannot adjust address 16 by -256, it would overflow"));
	teardown(&f);
}
