#include "test.h"

#include "profiles.h"

static struct str text_of(const char *hex, unsigned char *room)
{
	size_t n = 0;

	for (; *hex; hex++) {
		if (*hex == ' ')
			continue;
		room[n++] = (unsigned char)strtoul((char[]){ hex[0], hex[1], 0 }, NULL, 16);
		hex++;
	}
	return (struct str){ (const char *)room, n };
}

/* Header of all below: one sample type s/c, string table "", s, c. */
#define HEADER "0a04 08011002 3200 320173 320163 "

static const char *read_error(const char *hex)
{
	static struct err e;
	unsigned char room[1000];
	struct world w;
	struct profile p;
	bool ok;

	world_init(&w);
	ok = profile_read(&p, &w.arena, &w.strings, text_of(hex, room), 1 << 20, &e);
	world_release(&w);
	return ok ? "" : e.text;
}

TEST(a_profile_without_samples_is_fine)
{
	assert_string_equal(read_error(HEADER), "");
}

TEST(rules_of_the_reference)
{
	assert_string_equal(read_error(""), "parsing profile: empty input file");
	assert_string_equal(read_error(HEADER "1202 1001 2202 0801"), "");
	assert_string_equal(read_error(HEADER "1204 0805 1001"),
			    "malformed profile: sample has nil location");
	assert_string_equal(read_error(HEADER "1204 1001 1001"),
			    "malformed profile: mismatch: sample has 2 values vs. 1 types");
	assert_string_equal(read_error(HEADER "2202 0801 2202 0801"),
			    "malformed profile: multiple locations with same id: 1");
	assert_string_equal(read_error(HEADER "2202 1800"),
			    "malformed profile: found location with reserved id=0");
	assert_string_equal(read_error(HEADER "1a02 1001"),
			    "malformed profile: found mapping with reserved ID=0");
	assert_string_equal(read_error(HEADER "2a02 1001"),
			    "malformed profile: found function with reserved ID=0");
	assert_string_equal(read_error(HEADER "2204 0801 2200"),
			    "malformed profile: location id: 1 has a line with nil function");
	assert_string_equal(read_error("3200 1202 1001"),
			    "malformed profile: missing sample type information");
	assert_string_equal(read_error(HEADER "4801 4801"),
			    "parsing profile: concatenated profiles detected");
	assert_string_equal(read_error(HEADER "7009"), /* a string that is not there */
			    "parsing profile: unrecognized profile format");
	assert_string_equal(read_error(HEADER "12ff"),
			    "parsing profile: unrecognized profile format");
	assert_string_equal(read_error("320178 3200"), /* string 0 is not "" */
			    "parsing profile: unrecognized profile format");
}

TEST(largest_ids_work)
{
	assert_string_equal(read_error(HEADER "120d 08ffffffffffffffffff01 1001"
					      "220b 08ffffffffffffffffff01"),
			    "");
}

/* All that the sample's one byte of value could not fill. */
TEST(too_many_types_for_the_values_cost_nothing)
{
	struct buf b = { 0 };
	struct world w;
	struct profile p;
	struct err e;

	for (int i = 0; i < 100000; i++)
		buf_add(&b, "\x0a\x00", 2);
	for (int i = 0; i < 100000; i++)
		buf_add(&b, "\x12\x02\x10\x01", 4);
	buf_add(&b, "\x32\x00", 2);
	world_init(&w);
	assert_false(profile_read(&p, &w.arena, &w.strings, buf_view(&b), 1 << 30, &e));
	assert_string_equal(e.text,
			    "malformed profile: mismatch: sample has 1 values vs. 100000 types");
	world_release(&w);
	buf_release(&b);
}

TEST(threads_read_what_one_reads)
{
	struct world w;
	struct buf text = { 0 }, bytes = { 0 }, one = { 0 }, many = { 0 };
	struct profile p, q;
	struct err e;

	world_init(&w);
	for (int i = 0; i < 60000; i++)
		buf_printf(&text, "main;f%d;g%d;h%d;i%d;j%d %d\n", i % 100, i % 1009, i % 77,
			   i % 13, i, i);
	buf_char(&text, '\0');
	p = folded(&w, text.p);
	profile_encode(&bytes, &p);
	for (int threads = 1; threads <= 3; threads += 2) {
		struct parse_params params = { .threads = threads };

		assert_true(profile_parse(&q, &w.arena, &w.strings, buf_view(&bytes), &params, &e));
		raw_write(threads == 1 ? &one : &many, &q);
	}
	assert_true(str_eq(buf_view(&one), buf_view(&many)));
	buf_release(&text);
	buf_release(&bytes);
	buf_release(&one);
	buf_release(&many);
	world_release(&w);
}

TEST(a_gzip_bomb_stops_at_the_limit)
{
	struct world w;
	struct buf zeros = { 0 };
	struct profile p;
	struct err e;

	world_init(&w);
	p = folded(&w, "main 1\n");
	p.comments = arena_new(&w.arena, uint32_t);
	p.ncomments = 1;
	buf_fill(&zeros, 'x', 1 << 20);
	p.comments[0] = strings_add(&w.strings, buf_view(&zeros));
	zeros.n = 0;
	profile_encode_gzip(&zeros, &p);
	assert_true(zeros.n < 5000);
	assert_true(profile_read(&p, &w.arena, &w.strings, buf_view(&zeros), 2 << 20, &e));
	assert_false(profile_read(&p, &w.arena, &w.strings, buf_view(&zeros), 1 << 20, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.text, "-max_profile_size"));
	buf_release(&zeros);
	world_release(&w);
}
