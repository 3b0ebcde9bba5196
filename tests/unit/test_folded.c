#include "profile/legacy.h"

#include "report/raw.h"
#include "test.h"

/* The -raw text of what was read, or the error. */
static void assert_reads(struct str data, const char *want)
{
	struct strings strings;
	struct arena a = { 0 };
	struct profile p;
	struct buf raw = { 0 };
	struct err e;

	strings_init(&strings);
	if (legacy_read(&p, &a, &strings, data, &e))
		raw_write(&raw, &p);
	else
		buf_puts(&raw, e.text);
	buf_char(&raw, 0);
	assert_string_equal(raw.p, want);
	buf_release(&raw);
	arena_release(&a);
	strings_release(&strings);
}

#define START "PeriodType: samples count\nPeriod: 1\nSamples:\nsamples/count\n"
#define UNKNOWN "unrecognized profile format"

TEST(stacks_are_stored_leaf_first)
{
	assert_reads(STR("# comment\n\nmain;parse;read 7\r\nmain;parse 3\nmain;main 0"),
		     START "          7: 1 2 3 \n          3: 2 3 \n          0: 3 3 \n"
			   "Locations\n     1: 0x0 read :0:0 s=0\n     2: 0x0 parse :0:0 s=0\n"
			   "     3: 0x0 main :0:0 s=0\nMappings\n");
}

TEST(names_may_hold_anything)
{
	assert_reads(STR("a b::operator<<(int, x);f_[i] 2.75\n\xff;;[unknown] 12\t5\n"), START
		     "          2: 1 2 \n          5: 3 4 \n"
		     "Locations\n     1: 0x0 f_[i] :0:0 s=0\n"
		     "     2: 0x0 a b::operator<<(int, x) :0:0 s=0\n"
		     "     3: 0x0 [unknown] 12 :0:0 s=0\n     4: 0x0 \xff :0:0 s=0\nMappings\n");
}

TEST(two_counts_are_a_difference)
{
	assert_reads(STR("a;b 12 15\na 0 3\nb 4 0\n"),
		     START "         15: 1 2 \n        -12: 1 2 \n"
			   "                pprof::base:[true]\n"
			   "          3: 2 \n         -4: 1 \n"
			   "                pprof::base:[true]\n"
			   "Locations\n     1: 0x0 b :0:0 s=0\n     2: 0x0 a :0:0 s=0\nMappings\n");
}

TEST(other_text_is_not_taken)
{
	assert_reads(STR("a;b\n"), UNKNOWN);
	assert_reads(STR("12\n"), UNKNOWN);
	assert_reads(STR(" 12\n"), UNKNOWN);
	assert_reads(STR("a;b 1\nc\n"), UNKNOWN);
	assert_reads(STR("a -1\n"), UNKNOWN);
	assert_reads(STR("a .5\n"), UNKNOWN);
	assert_reads(STR("a 1.5.2\n"), UNKNOWN);
	assert_reads(STR("a 0x12\n"), UNKNOWN);
	assert_reads(STR("a\0b 12\n"), UNKNOWN);
	assert_reads(STR("a 9223372036854775808\n"), UNKNOWN);
	assert_reads(STR("# nothing but comments 1\n"), UNKNOWN);
}

TEST(the_largest_count)
{
	assert_reads(STR("a 9223372036854775807\n"),
		     START " 9223372036854775807: 1 \n"
			   "Locations\n     1: 0x0 a :0:0 s=0\nMappings\n");
}

TEST(a_stack_may_be_longer_than_lines_of_other_formats)
{
	struct buf text = { 0 }, want = { 0 };

	for (int i = 0; i < 50000; i++)
		buf_puts(&text, "f;");
	buf_puts(&text, "f 3\n");
	buf_puts(&want, START "          3: ");
	for (int i = 0; i < 50001; i++)
		buf_puts(&want, "1 ");
	buf_puts(&want, "\nLocations\n     1: 0x0 f :0:0 s=0\nMappings\n");
	buf_char(&want, 0);
	assert_reads(buf_view(&text), want.p);
	buf_release(&text);
	buf_release(&want);
}
