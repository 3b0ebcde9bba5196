#include "profile/legacy.h"

#include "report/raw.h"
#include "test.h"

struct read {
	struct arena a;
	struct strings strings;
	struct profile p;
	struct buf raw;
	struct err e;
	bool ok;
};

static struct read read_bytes(struct str data)
{
	struct read r = { 0 };

	strings_init(&r.strings);
	r.ok = legacy_read(&r.p, &r.a, &r.strings, data, &r.e);
	if (r.ok)
		raw_write(&r.raw, &r.p);
	buf_char(&r.raw, 0);
	return r;
}

static void read_release(struct read *r)
{
	buf_release(&r->raw);
	strings_release(&r->strings);
	arena_release(&r->a);
}

static void assert_raw_bytes(struct str data, const char *want)
{
	struct read r = read_bytes(data);

	if (!r.ok)
		assert_string_equal(r.e.text, "");
	assert_string_equal(r.raw.p, want);
	read_release(&r);
}

static void assert_raw(const char *text, const char *want)
{
	assert_raw_bytes(str_of(text), want);
}

/* The text must be a profile whose locations and mappings are these. */
static void assert_locations(const char *text, const char *want)
{
	struct read r = read_bytes(str_of(text));
	const char *locations = r.ok ? strstr(r.raw.p, "Locations\n") : "";

	assert_string_equal(locations, want);
	read_release(&r);
}

static void assert_fails(const char *text, const char *want)
{
	struct read r = read_bytes(str_of(text));

	assert_false(r.ok);
	assert_string_equal(r.e.text, want);
	read_release(&r);
}

#define UNKNOWN "unrecognized profile format"
#define HEAP "heap profile: 1: 8 [1: 8] @ heapprofile\n"

TEST(nothing_is_unrecognized)
{
	assert_fails("", UNKNOWN);
	assert_fails("\n", UNKNOWN);
	assert_fails("hello, world\n", UNKNOWN);
}

TEST(heap_with_allocations)
{
	assert_raw("heap profile: 1: 100 [2: 300] @ heapprofile\n"
		   "# a comment\n"
		   "  1: 100 [2: 300] @ 0x11 0x21\n"
		   "\n"
		   "MAPPED_LIBRARIES:\n"
		   "00000000-00000100 r-xp 00000000 fc:00 34 /bin/x\n",
		   "PeriodType: space bytes\nPeriod: 1\nSamples:\n"
		   "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes\n"
		   "          2        300          1        100: 1 2 \n"
		   "                bytes:[100]\n"
		   "Locations\n     1: 0x10 M=1 \n     2: 0x20 M=1 \n"
		   "Mappings\n1: 0x0/0x100/0x0 /bin/x  \n");
}

TEST(heap_is_unbiased_by_its_rate)
{
	assert_raw("heap profile: 1: 1024 [1: 1024] @ heap/2048\n1: 1024 [1: 1024] @ 0x11\n",
		   "PeriodType: space bytes\nPeriod: 1024\nSamples:\nobjects/count space/bytes\n"
		   "          1       1619: 1 \n                bytes:[1024]\n"
		   "Locations\n     1: 0x10 M=1 \n"
		   "Mappings\n1: 0x0/0xffffffffffffffff/0x0   \n");
}

TEST(heap_header_is_searched_and_its_kind_checked)
{
	struct read r = read_bytes(STR("x heap profile: heap profile: 1: 2 [ 1: 2 ]@heapz_v2/7\n"));

	assert_true(r.ok);
	assert_int_equal(r.p.period, 7);
	assert_int_equal(r.p.ntypes, 2);
	read_release(&r);
	assert_fails("heap profile: 1: 2 [1: 2] @ heap_v3/7\n", UNKNOWN);
	assert_fails("heap profile: 1: 2 [1: 2]@ growth\n", UNKNOWN);
	assert_fails("heap profile: 1: 2 [1: 2] @ heap/99999999999999999999\n", UNKNOWN);
}

TEST(broken_heap_samples)
{
	assert_fails(HEAP "1: 2\n", "unexpected number of sample values: got 0, want 6");
	assert_fails(HEAP "0: 8 [0: 0] @ 0x1\n", "inuse count was 0 but inuse bytes was 8");
	assert_fails(HEAP "1: 1 [1: 1] @ 0x10000000000000000\n",
		     "malformed sample: 1: 1 [1: 1] @ 0x10000000000000000: "
		     "failed to parse as hex 64-bit number: 0x10000000000000000");
	assert_fails(HEAP "9223372036854775808: 1 [1: 1] @ 0x1\n",
		     "malformed sample: 9223372036854775808: 1 [1: 1] @ 0x1: strconv.ParseInt: "
		     "parsing \"9223372036854775808\": value out of range");
}

TEST(heap_numbers_wrap_as_in_go)
{
	struct read r = read_bytes(STR(HEAP "-1: -9223372036854775808 [1: 1] @ 0x1\n"));

	assert_true(r.ok);
	assert_int_equal(r.p.values[0], -1);
	assert_int_equal(r.p.values[1], INT64_MIN);
	assert_int_equal(set_labels(&r.p, r.p.samples[0].labels)->number, INT64_MIN);
	read_release(&r);
}

TEST(heap_sets_frame_filters)
{
	struct read r = read_bytes(STR(HEAP));

	assert_true(str_has_prefix(profile_str(&r.p, r.p.drop_frames), STR("calloc|cfree|")));
	assert_true(str_has_prefix(profile_str(&r.p, r.p.keep_frames), STR("runtime\\.panic|")));
	read_release(&r);
}

TEST(a_line_may_have_65535_bytes)
{
	size_t n = sizeof(HEAP) - 1 + 65537;
	char *text = malloc(n);
	struct read r;

	memcpy(text, HEAP, sizeof(HEAP) - 1);
	memset(text + sizeof(HEAP) - 1, ' ', 65536);
	text[n - 2] = '\n';
	text[n - 1] = '#';
	r = read_bytes((struct str){ text, n });
	assert_true(r.ok);
	read_release(&r);
	text[n - 2] = ' ';
	r = read_bytes((struct str){ text, n });
	assert_string_equal(r.e.text, "bufio.Scanner: token too long");
	read_release(&r);
	free(text);
}

TEST(go_count)
{
	assert_raw("# comment\n\ngoroutine profile: total 9\n"
		   "010 @ 0x11 0x21\n#\t0x10\tmain.f\n1 @ 0x11\n",
		   "PeriodType: goroutine count\nPeriod: 1\nSamples:\ngoroutine/count\n"
		   "          8: 1 2 \n          1: 1 \n"
		   "Locations\n     1: 0x10 M=1 \n     2: 0x20 M=1 \n"
		   "Mappings\n1: 0x0/0xffffffffffffffff/0x0   \n");
	assert_fails("x profile: total 1\n1 @ 0xAB\n", "malformed profile format");
	assert_fails("x profile: total 1\n1 @\n", "malformed profile format");
	assert_fails("x profile: total 1\n1 @ 0x1 \n", "malformed profile format");
	assert_fails("x profile: total 1\n08 @ 0x1\n", "malformed profile format");
	assert_fails("x profile: total 1 \nand more", UNKNOWN);
}

#define THREAD "--- Thread 1f (name: a/b/12) stack: ---\n"

TEST(threads)
{
	assert_raw("--- threadz 1 ---\nskipped\n" THREAD "  PC: @ 0x11 f\n 0x21\n" THREAD
		   "\n" THREAD "0x11 0x11\n"
		   "--- Memory map: ---\n1-40: /bin/x\n",
		   "PeriodType: thread count\nPeriod: 1\nSamples:\nthread/count\n"
		   "          2: 1 2 \n          1: 1 \n"
		   "Locations\n     1: 0x11 M=1 \n     2: 0x20 M=1 \n     3: 0x10 M=1 \n"
		   "Mappings\n1: 0x1/0x40/0x0 /bin/x  \n");
	assert_fails(THREAD "0x11\n", UNKNOWN);
	assert_fails("--- threadz 1 ---\n", UNKNOWN);
}

TEST(same_thread_again_counts)
{
	struct read r = read_bytes(STR(THREAD "0x11\n" THREAD "same as previous thread\n" THREAD
					      "\n---- no stack trace for 3\n"));

	assert_true(r.ok);
	assert_int_equal(r.p.nsamples, 1);
	assert_int_equal(r.p.values[0], 3);
	read_release(&r);
}

TEST(contention)
{
	assert_raw("--- contentionz 1 ---\ncycles/second = 2000000000\nsampling period = 100\n"
		   "ms since reset = 1500\ndiscarded samples = 0\n"
		   "  300 2 @ 0x11 0x21\n 57 @ 0x11\n--- Memory map: ---\n",
		   "PeriodType: contentions count\nPeriod: 100\nDuration: 1.5s\nSamples:\n"
		   "contentions/count delay/nanoseconds\n"
		   "        200      15000: 1 2 \n        700        250: 1 \n"
		   "Locations\n     1: 0x10 M=1 \n     2: 0x20 M=1 \n"
		   "Mappings\n1: 0x0/0xffffffffffffffff/0x0   \n");
	assert_fails("--- mutex:\nformat = x\n", UNKNOWN);
	assert_fails("--- mutex:\nsampling period = x\n", UNKNOWN);
	assert_fails("--- mutex:\n5 @\n", UNKNOWN);
}

TEST(java_contention)
{
	assert_raw("--- contentionz 1 ---\nformat = java\nresolution = microseconds\n"
		   "sampling period = 10\n 7 2 @ 0x1 0x2 0x3 0x4 0x5\n"
		   "0x1 a.b.c (B.java:12)\n0x2 e  (/x/y.so)\n0x3 generated stub/JIT\n0x4 GC\n"
		   "0x9 unknown (A.java:1)\n",
		   "PeriodType: contentions count\nPeriod: 10\nSamples:\n"
		   "contentions/count delay/microseconds\n"
		   "         20         70: 1 2 3 4 5 \n"
		   "Locations\n"
		   "     1: 0x0 a.b.c B.java:12:0 s=0\n"
		   "     2: 0x0 e  y.so:0:0 s=0\n"
		   "     3: 0x0 STUB :0:0 s=0\n"
		   "     4: 0x0 GC :0:0 s=0\n"
		   "     5: 0x0 M=1 \n"
		   "Mappings\n1: 0x0/0xffffffffffffffff/0x0   \n");
}

TEST(java_heap_errors)
{
	assert_fails("--- heapz 1 ---\nformat = java\nresolution = bytes\n 7 0 @ 0x1\n",
		     "parsing sample 7 0 @ 0x1: second value must be non-zero");
	assert_fails("--- heapz 1 ---\nformat = java\n 7 1 @ 0x1\n",
		     "missing sample type information");
	assert_fails("--- heapz 1 ---\nformat = c\n", UNKNOWN);
	assert_fails("--- contentionz 1 ---\nformat = java\nsampling period = 1x\n",
		     "failed to parse attribute sampling period = 1x: strconv.ParseInt: "
		     "parsing \"1x\": invalid syntax");
}

struct words {
	struct buf bytes;
	unsigned size;
	bool is_big_endian;
};

static void put(struct words *w, uint64_t v)
{
	for (unsigned i = 0; i < w->size; i++) {
		unsigned at = w->is_big_endian ? w->size - 1 - i : i;

		buf_char(&w->bytes, (char)(v >> 8 * at & 0xff));
	}
}

#define PUT(w, ...)                                                                      \
	do {                                                                             \
		const uint64_t put_[] = { __VA_ARGS__ };                                 \
		for (size_t put_i_ = 0; put_i_ < sizeof(put_) / sizeof(*put_); put_i_++) \
			put((w), put_[put_i_]);                                          \
	} while (0)

TEST(cpu_in_all_word_formats)
{
	static const struct words formats[] = {
		{ .size = 4 },
		{ .size = 4, .is_big_endian = true },
		{ .size = 8 },
		{ .size = 8, .is_big_endian = true },
	};

	for (int i = 0; i < 4; i++) {
		struct words w = formats[i];

		PUT(&w, 0, 3, 0, 10000, 0);
		PUT(&w, 5, 3, 0x11, 0x21, 0x31);
		PUT(&w, 2, 3, 0x12, 0x41, 0x31);
		PUT(&w, 1, 2, 0x12, 0x12); /* the leaf repeated */
		PUT(&w, 0, 1, 0);
		buf_puts(&w.bytes, "0-1000: /bin/x\n");
		assert_raw_bytes(buf_view(&w.bytes),
				 "PeriodType: cpu nanoseconds\nPeriod: 10000000\nSamples:\n"
				 "samples/count cpu/nanoseconds\n"
				 "          5   50000000: 1 2 3 \n"
				 "          2   20000000: 4 5 3 \n"
				 "          1   10000000: 4 \n"
				 "Locations\n     1: 0x11 M=1 \n     2: 0x20 M=1 \n"
				 "     3: 0x30 M=1 \n     4: 0x12 M=1 \n     5: 0x40 M=1 \n"
				 "Mappings\n1: 0x0/0x1000/0x0 /bin/x  \n");
		buf_release(&w.bytes);
	}
}

TEST(cpu_signal_frames_are_dropped_twice)
{
	struct words w = { .size = 8 };
	struct read r;

	PUT(&w, 0, 3, 0, 1, 0);
	for (uint64_t i = 0; i < 32; i++)
		PUT(&w, 1, 4, i < 31 ? 0x100 + i : 0x100, i < 31 ? 0x21 : 0x99, 0x31, 0x41);
	r = read_bytes(buf_view(&w.bytes));
	assert_true(r.ok);
	assert_int_equal(r.p.samples[0].nstack, 2);
	assert_int_equal(r.p.locations[r.p.stacks[r.p.samples[0].stack + 1]].address, 0x40);
	assert_int_equal(r.p.samples[31].nstack, 4);
	read_release(&r);
	buf_release(&w.bytes);
}

TEST(cpu_that_breaks_off)
{
	struct words w = { .size = 8 };
	struct read r;

	PUT(&w, 0, 3, 0, 1, 0, 1, 4, 0x11, 0x21);
	r = read_bytes(buf_view(&w.bytes));
	assert_true(r.ok);
	assert_int_equal(r.p.samples[0].nstack, 2); /* two looked like signal frames */
	assert_int_equal(r.p.locations[r.p.stacks[3]].address, UINT64_MAX);
	read_release(&r);
	w.bytes.n -= 8;
	r = read_bytes(buf_view(&w.bytes));
	assert_false(r.ok);
	assert_string_equal(r.e.text, UNKNOWN);
	read_release(&r);
	buf_release(&w.bytes);
}

TEST(map_lines_in_every_form)
{
	static const struct {
		const char *line, *want;
	} cases[] = {
		{ "00400000-00410000 r-xp 00001000 fc:00 3408 /bin/x y",
		  "0x400000/0x410000/0x1000 /bin/x  " },
		{ "0x400000-0x410000: /bin/x (@1000) abcdef",
		  "0x400000/0x410000/0x1000 /bin/x abcdef " },
		{ "  400000 410000 fc:00 12 /bin/x", "0x400000/0x410000/0x0 /bin/x  " },
		{ "400000-410000 rwxp", "0x400000/0x410000/0x0   " },
		{ "400000- 0x410000:", "0x400000/0x410000/0x0   " },
		/* Where only backtracking finds a match. */
		{ "400000f", "0x400000/0xf/0x0   " },
		{ "400000x900000 fc:0 1 f", "0x40000/0x900000/0x0 f  " },
		{ "400000 fc:00 3408 file", "0x40000/0x0/0x0 file  " },
		{ "W1 12:00 maps.cc:12] 400000-410000 /bin/x", "0x400000/0x410000/0x0 /bin/x  " },
		{ "build = /bin/x \n400000-410000 $build.1$b",
		  "0x400000/0x410000/0x0 /bin/x.1$b  " },
		{ "p=1\npq=2\np=3\n400000-410000 /$pq", "0x400000/0x410000/0x0 /1q  " },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf text = { 0 }, want = { 0 };

		buf_printf(&text, HEAP "MAPPED_LIBRARIES:\n%s\n", cases[i].line);
		buf_char(&text, 0);
		buf_printf(&want, "Locations\nMappings\n1: %s\n", cases[i].want);
		buf_char(&want, 0);
		assert_locations(text.p, want.p);
		buf_release(&text);
		buf_release(&want);
	}
}

TEST(map_lines_that_are_skipped)
{
	assert_locations(HEAP "--- Memory map: ---\n"
			      "400000-410000 rw-p 0 00:00 0 /bin/x\n"
			      "400000-410000 program\n"
			      "10000000000000000-2 /bin/y\n"
			      "nonsense\n"
			      "- 5\n",
			 "Locations\nMappings\n");
}

TEST(mappings_are_merged_and_the_main_binary_comes_first)
{
	assert_locations(HEAP "MAPPED_LIBRARIES:\n"
			      "1000-2000 r-xp 1000 00:00 0 /lib/libc.so.6\n"
			      "2000-3000 r-xp 2000 00:00 0 /lib/libc.so.6\n"
			      "3000-4000 r-xp 9000 00:00 0 /lib/libc.so.6\n"
			      "5000-6000 r-xp 0000 00:00 0 [vdso]\n"
			      "6000-7000 r-xp 0000 00:00 0 /bin/x(deleted)\n"
			      "7000-8000 r-xp 0000 00:00 0 /lib/y.so_1\n",
			 "Locations\nMappings\n"
			 "1: 0x6000/0x7000/0x0 /bin/x(deleted)  \n"
			 "2: 0x3000/0x4000/0x9000 /lib/libc.so.6  \n"
			 "3: 0x5000/0x6000/0x0 [vdso]  \n"
			 "4: 0x1000/0x3000/0x1000 /lib/libc.so.6  \n"
			 "5: 0x7000/0x8000/0x0 /lib/y.so_1  \n");
}

TEST(main_mapping_is_repaired)
{
	assert_locations(HEAP "MAPPED_LIBRARIES:\n"
			      "200000-401000 r-xp 0 00:00 0 /anon_hugepage(deleted)\n"
			      "401000-500000 r-xp 1000 00:00 0 /bin/x\n",
			 "Locations\nMappings\n1: 0x400000/0x500000/0x0 /bin/x  \n");
}

TEST(locations_find_their_mapping)
{
	/* 0x60 lies before a mapping with an offset, which then grows, until there is a fake one.
	 */
	assert_locations(HEAP "1: 1 [1: 1] @ 0x61 0x151 0x900 0x91 0x0\n"
			      "MAPPED_LIBRARIES:\n"
			      "100-200: /bin/x (@b0)\n"
			      "a0-f0: /lib/y.so (@60)\n",
			 "Locations\n"
			 "     1: 0x60 M=1 \n     2: 0x150 M=1 \n     3: 0x8ff M=3 \n"
			 "     4: 0x90 M=1 \n     5: 0xffffffffffffffff M=3 \n"
			 "Mappings\n"
			 "1: 0x50/0x200/0x0 /bin/x  \n2: 0xa0/0xf0/0x60 /lib/y.so  \n"
			 "3: 0x0/0xffffffffffffffff/0x0   \n");
}

TEST(substitutions_cannot_explode)
{
	struct buf text = { 0 };
	struct read r;

	buf_puts(&text, HEAP "MAPPED_LIBRARIES:\nx=aaaaaaaaaa\n");
	for (int i = 0; i < 25; i++)
		buf_printf(&text, "v%c=$v%c$v%c$v%c\n", 'b' + i, 'a' + i, 'a' + i, 'a' + i);
	r = read_bytes(buf_view(&text));
	assert_false(r.ok);
	assert_int_equal(r.e.kind, ERR_LIMIT);
	read_release(&r);
	buf_release(&text);
}

TEST(many_mappings_and_locations_are_fast)
{
	struct buf text = { 0 };
	struct read r;

	buf_puts(&text, HEAP);
	for (int i = 0; i < 50000; i++)
		buf_printf(&text, "1: 1 [1: 1] @ 0x%x\n", i * 0x100 + 2);
	buf_puts(&text, "MAPPED_LIBRARIES:\n");
	for (int i = 0; i < 50000; i++)
		buf_printf(&text, "%x-%x f%d (@%x)\n", i * 0x100, i * 0x100 + 0x80, i, i & 0xff);
	r = read_bytes(buf_view(&text));
	assert_true(r.ok);
	assert_int_equal(r.p.nmappings, 50000);
	assert_int_equal(r.p.locations[49999].mapping, 49999);
	read_release(&r);
	buf_release(&text);
}
