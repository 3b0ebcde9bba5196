#include "perf/perf.h"

#include <byteswap.h>
#include <stdio.h>

#include "perf/space.h"
#include "report/raw.h"
#include "symbol/symbol.h"
#include "test.h"

#define MAX_BYTES ((size_t)64 << 20)

struct loaded {
	struct strings strings;
	struct arena arena;
	struct profile p;
	struct err e;
	bool ok;
};

static void load(struct loaded *l, struct str data)
{
	const struct locate_params locate = { "tests/perf", "", "", "" };
	struct perf_params params = { .max_bytes = MAX_BYTES, .locate = &locate };

	*l = (struct loaded){ 0 };
	strings_init(&l->strings);
	l->ok = perf_parse(&l->p, &l->arena, &l->strings, data, &params, &l->e);
}

static void unload(struct loaded *l)
{
	arena_release(&l->arena);
	strings_release(&l->strings);
}

static struct str read_packed(struct arena *a, const char *path)
{
	FILE *f = fopen(path, "rb");
	char *bytes = arena_alloc(a, 1 << 20);
	struct str plain;
	struct err e;
	size_t n;

	assert_non_null(f);
	n = fread(bytes, 1, 1 << 20, f);
	fclose(f);
	assert_true(profile_unpack(a, (struct str){ bytes, n }, MAX_BYTES, &plain, &e));
	return plain;
}

static void load_file(struct loaded *l, struct arena *a, const char *path)
{
	struct str data = read_packed(a, path);

	assert_true(perf_recognizes(data));
	load(l, data);
	if (!l->ok)
		fail_msg("%s: %s", path, l->e.text);
}

/* The -raw text. */
static void assert_raw(struct loaded *l, const char *want)
{
	struct buf raw = { 0 };

	if (l->ok)
		raw_write(&raw, &l->p);
	else
		buf_puts(&raw, l->e.text);
	buf_char(&raw, 0);
	assert_string_equal(raw.p, want);
	buf_release(&raw);
}

/* ---- recordings of tests/perf/hot.c */

struct function_range {
	const char *name;
	uint64_t start, limit;
};

/* nm of the two programs; made by tests/perf/record. */
static const struct function_range with_frame_pointers[] = {
	{ "hot", 0x40017c, 0x4001b6 },	  { "warm", 0x4001b6, 0x4001ee },
	{ "deep", 0x4001ee, 0x400244 },	  { "middle", 0x400244, 0x4002a0 },
	{ "run", 0x4002a0, 0x4002e9 },	  { "start", 0x4002e9, 0x40030f },
	{ "_start", 0x40030f, 0x40031c }, { NULL, 0, 0 },
};

static const struct function_range without_frame_pointers[] = {
	{ "_start", 0x40017c, 0x400187 }, { "hot", 0x400187, 0x4001ac },
	{ "warm", 0x4001ac, 0x4001d1 },	  { "deep", 0x4001d1, 0x400207 },
	{ "middle", 0x400207, 0x400251 }, { "run", 0x400251, 0x4002a9 },
	{ "start", 0x4002a9, 0x4002c4 },  { NULL, 0, 0 },
};

static struct str name_of(const struct loaded *l, uint32_t location, const struct function_range *r)
{
	const struct location *loc = &l->p.locations[location];

	if (loc->nlines) {
		uint32_t f = l->p.lines[loc->first_line].function;

		return profile_str(&l->p, l->p.functions[f].name);
	}
	for (; r->name; r++)
		if (loc->address >= r->start && loc->address < r->limit)
			return str_of(r->name);
	return STR("?");
}

/* Per cent of the samples that have the function as leaf, or anywhere. */
static int share(const struct loaded *l, const struct function_range *r, const char *name,
		 bool is_flat)
{
	int64_t total = 0, found = 0;

	for (uint32_t i = 0; i < l->p.nsamples; i++) {
		const struct sample *s = &l->p.samples[i];
		int64_t value = sample_values(&l->p, s)[0];
		bool has = false;

		for (uint32_t k = 0; k < s->nstack && !(is_flat && k); k++)
			has |= str_eq(name_of(l, l->p.stacks[s->stack + k], r), str_of(name));
		total += value;
		found += has ? value : 0;
	}
	return total ? (int)(100 * found / total) : 0;
}

static void assert_about(int got, int want)
{
	assert_in_range(got, want - 15, want + 15);
}

static void assert_hot_program(const struct loaded *l, const struct function_range *r)
{
	assert_about(share(l, r, "hot", true), 75);
	assert_about(share(l, r, "warm", true), 25);
	assert_about(share(l, r, "deep", false), 16);
	assert_about(share(l, r, "middle", false), 100);
	assert_about(share(l, r, "run", false), 100);
	assert_about(share(l, r, "start", false), 100);
	assert_about(share(l, r, "_start", false), 100);
}

static void assert_types(const struct loaded *l, const char *want)
{
	struct buf text = { 0 };

	for (uint32_t i = 0; i < l->p.ntypes; i++) {
		buf_str(&text, profile_str(&l->p, l->p.types[i].type));
		buf_char(&text, '/');
		buf_str(&text, profile_str(&l->p, l->p.types[i].unit));
		buf_char(&text, ' ');
	}
	buf_char(&text, 0);
	assert_string_equal(text.p, want);
	buf_release(&text);
}

TEST(chains_of_frame_pointers)
{
	struct arena a = { 0 };
	struct loaded l;

	load_file(&l, &a, "tests/perf/fp.data.gz");
	assert_types(&l, "samples/count cpu/nanoseconds ");
	assert_hot_program(&l, with_frame_pointers);
	assert_int_equal(l.p.period, 1000000000 / 499);
	assert_in_range(l.p.duration_nanos, 80000000, 200000000);
	assert_true(str_has_suffix(profile_str(&l.p, l.p.mappings[0].file), STR("/hot_fp")));
	assert_int_equal(profile_str(&l.p, l.p.mappings[0].build_id).n, 40);
	unload(&l);
	arena_release(&a);
}

TEST(saved_stacks_are_unwound)
{
	struct arena a = { 0 };
	struct loaded l;

	load_file(&l, &a, "tests/perf/dwarf.data.gz");
	assert_hot_program(&l, without_frame_pointers);
	unload(&l);
	arena_release(&a);
}

/* Without call chains, two events, compressed. */
TEST(compressed_records_of_two_events)
{
	struct arena a = { 0 };
	struct loaded l;

	load_file(&l, &a, "tests/perf/packed.data.gz");
	assert_types(&l, "samples/count cpu/nanoseconds page-faults/count ");
	assert_true(str_eq(profile_str(&l.p, l.p.default_type), STR("cpu")));
	assert_about(share(&l, with_frame_pointers, "hot", true), 75);
	unload(&l);
	arena_release(&a);
}

TEST(records_from_a_pipe)
{
	struct arena a = { 0 };
	struct loaded l;

	load_file(&l, &a, "tests/perf/pipe.data.gz");
	assert_types(&l, "samples/count cpu/nanoseconds ");
	assert_hot_program(&l, with_frame_pointers);
	unload(&l);
	arena_release(&a);
}

TEST(text_of_perf_script)
{
	struct arena a = { 0 };
	struct loaded l;

	load_file(&l, &a, "tests/perf/dwarf.script.gz");
	assert_types(&l, "samples/count cpu/nanoseconds ");
	assert_hot_program(&l, without_frame_pointers);
	unload(&l);
	arena_release(&a);
}

/* ---- times */

static int64_t total(const struct profile *p, uint32_t column)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->nsamples; i++)
		sum += sample_values(p, &p->samples[i])[column];
	return sum;
}

/* What the two halves of the time have is what there is. */
static void assert_times(const char *path)
{
	const struct locate_params locate = { "tests/perf", "", "", "" };
	struct perf_params params = { .max_bytes = MAX_BYTES,
				      .locate = &locate,
				      .has_times = true };
	struct arena a = { 0 };
	struct loaded l;
	struct profile halves[2];
	int64_t span;

	load_file(&l, &a, path);
	assert_null(l.p.times);
	assert_true(perf_parse(&l.p, &l.arena, &l.strings, read_packed(&a, path), &params, &l.e));
	assert_non_null(l.p.times);
	assert_int_equal(l.p.times->n, total(&l.p, 0));
	span = l.p.times->ticks[l.p.times->n - 1].at - l.p.times->ticks[0].at;
	assert_int_equal(span, l.p.duration_nanos);
	for (int i = 0; i < 2; i++) {
		halves[i] = l.p;
		profile_take_times(&l.arena, &halves[i], i * (span / 2), i ? span + 1 : span / 2,
				   NULL);
		assert_in_range(halves[i].nsamples, 1, l.p.nsamples);
	}
	for (uint32_t column = 0; column < l.p.ntypes; column++)
		assert_int_equal(total(&halves[0], column) + total(&halves[1], column),
				 total(&l.p, column));
	profile_take_times(&l.arena, &l.p, span + 1, span + 2, NULL);
	assert_int_equal(l.p.nsamples, 0);
	unload(&l);
	arena_release(&a);
}

TEST(samples_have_times_for_those_who_ask)
{
	assert_times("tests/perf/fp.data.gz");
	assert_times("tests/perf/packed.data.gz");
	assert_times("tests/perf/dwarf.script.gz");
}

/* ---- files made here, of either byte order */

struct file {
	struct buf b;
	bool is_big;
};

static void put(struct file *f, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		buf_char(&f->b, (char)(v >> 8 * (f->is_big ? bytes - 1 - i : i)));
}

static void set(struct file *f, size_t at, uint64_t v, size_t bytes)
{
	size_t n = f->b.n;

	f->b.n = at;
	put(f, v, bytes);
	f->b.n = n;
}

enum { IP = 1, TID = 2, TIME = 4, CHAIN = 32, HEADER_BYTES = 104, EVENT_BYTES = 64 };

/* A header, one event with fixed period 7 and no ids, and no records yet. */
static void begin(struct file *f, bool is_big)
{
	*f = (struct file){ .is_big = is_big };
	buf_puts(&f->b, is_big ? "2ELIFREP" : "PERFILE2");
	put(f, HEADER_BYTES, 8);
	put(f, EVENT_BYTES + 16, 8);
	put(f, HEADER_BYTES, 8); /* the events */
	put(f, EVENT_BYTES + 16, 8);
	put(f, HEADER_BYTES + EVENT_BYTES + 16, 8); /* the records; their size comes later */
	for (int i = 0; i < 7; i++)
		put(f, 0, 8);
	put(f, 0, 4); /* a hardware event: cycles */
	put(f, EVENT_BYTES, 4);
	put(f, 0, 8);
	put(f, 7, 8);
	put(f, IP | TID | TIME | CHAIN, 8);
	put(f, 0, 8);
	/* sample_id_all; bit fields are filled from the other end */
	put(f, is_big ? UINT64_C(1) << (63 - 18) : 1 << 18, 8);
	for (int i = 0; i < 4; i++)
		put(f, 0, 8);
}

static size_t open_record(struct file *f, uint32_t type, uint16_t misc)
{
	put(f, type, 4);
	put(f, misc, 2);
	put(f, 0, 2);
	return f->b.n - 8;
}

static void close_record(struct file *f, size_t at)
{
	set(f, at + 6, f->b.n - at, 2);
	set(f, 48, f->b.n - (HEADER_BYTES + EVENT_BYTES + 16), 8);
}

static void put_trailer(struct file *f, uint64_t time)
{
	put(f, 0, 8); /* pid, tid */
	put(f, time, 8);
}

static void put_name(struct file *f, const char *name)
{
	char padded[32] = { 0 };

	memcpy(padded, name, strlen(name));
	buf_add(&f->b, padded, sizeof(padded));
}

static void put_mmap(struct file *f, uint64_t time, uint32_t pid, uint64_t start, uint64_t size,
		     const char *name)
{
	size_t at = open_record(f, 1, 2);

	put(f, pid, 4);
	put(f, pid, 4);
	put(f, start, 8);
	put(f, size, 8);
	put(f, 0x1000, 8);
	put_name(f, name);
	put_trailer(f, time);
	close_record(f, at);
}

static void put_comm(struct file *f, uint64_t time, uint32_t pid, const char *name, bool is_exec)
{
	size_t at = open_record(f, 3, is_exec ? 1 << 13 : 0);

	put(f, pid, 4);
	put(f, pid, 4);
	put_name(f, name);
	put_trailer(f, time);
	close_record(f, at);
}

static void put_fork(struct file *f, uint64_t time, uint32_t pid, uint32_t parent)
{
	size_t at = open_record(f, 7, 0);

	put(f, pid, 4);
	put(f, parent, 4);
	put(f, pid, 4);
	put(f, parent, 4);
	put(f, time, 8);
	put_trailer(f, time);
	close_record(f, at);
}

/* In user mode, with a chain of `ip` and, if not 0, `caller`. */
static void put_sample(struct file *f, uint64_t time, uint32_t pid, uint64_t ip, uint64_t caller)
{
	size_t at = open_record(f, 9, 2);

	put(f, ip, 8);
	put(f, pid, 4);
	put(f, pid, 4);
	put(f, time, 8);
	put(f, caller ? 3 : 2, 8);
	put(f, (uint64_t)-512, 8);
	put(f, ip, 8);
	if (caller)
		put(f, caller, 8);
	close_record(f, at);
}

static void load_made(struct loaded *l, struct file *f)
{
	load(l, buf_view(&f->b));
	buf_release(&f->b);
}

TEST(both_byte_orders_are_read)
{
	for (int is_big = 0; is_big < 2; is_big++) {
		struct file f;
		struct loaded l;

		begin(&f, is_big);
		put_mmap(&f, 1, 10, 0x400000, 0x1000, "/bin/a");
		put_sample(&f, 3000000000, 10, 0x400010, 0x400021);
		put_sample(&f, 2000000000, 10, 0x400010, 0x400021);
		put_sample(&f, 2500000000, 10, 0x700000, 0);
		load_made(&l, &f);
		assert_raw(&l, "PeriodType: cycles count\nPeriod: 7\nDuration: 1s\nSamples:\n"
			       "samples/count cycles/count\n"
			       "          2         14: 1 2 \n"
			       "          1          7: 3 \n"
			       "Locations\n     1: 0x400010 M=1 \n     2: 0x400020 M=1 \n"
			       "     3: 0x700000 \n"
			       "Mappings\n1: 0x400000/0x401000/0x1000 /bin/a  \n");
		unload(&l);
	}
}

/* The same part of a file at another place is the same mapping; another file is not. */
TEST(processes_have_address_spaces_of_their_own)
{
	struct file f;
	struct loaded l;

	begin(&f, false);
	put_comm(&f, 1, 10, "sh", true);
	put_mmap(&f, 2, 10, 0x400000, 0x1000, "/bin/sh");
	put_fork(&f, 3, 11, 10);
	put_sample(&f, 4, 11, 0x400010, 0); /* still a copy of its parent */
	put_comm(&f, 5, 11, "a", true);
	put_sample(&f, 6, 11, 0x400010, 0); /* nothing is mapped any more */
	put_mmap(&f, 7, 11, 0x400000, 0x1000, "/bin/a");
	put_sample(&f, 8, 11, 0x400010, 0);
	put_sample(&f, 9, 10, 0x400010, 0);
	put_fork(&f, 10, 12, 10);
	put_comm(&f, 11, 12, "a", true);
	put_mmap(&f, 12, 12, 0x500000, 0x1000, "/bin/a");
	put_sample(&f, 13, 12, 0x500010, 0);
	load_made(&l, &f);
	assert_raw(&l,
		   "PeriodType: cycles count\nPeriod: 7\nDuration: 9ns\nSamples:\n"
		   "samples/count cycles/count\n"
		   "          1          7: 1 \n                comm:[sh] pid:[11]\n"
		   "          1          7: 2 \n                comm:[a] pid:[11]\n"
		   "          1          7: 3 \n                comm:[a] pid:[11]\n"
		   "          1          7: 1 \n                comm:[sh] pid:[10]\n"
		   "          1          7: 3 \n                comm:[a] pid:[12]\n"
		   "Locations\n     1: 0x400010 M=1 \n     2: 0x400010 \n     3: 0x400010 M=2 \n"
		   "Mappings\n1: 0x400000/0x401000/0x1000 /bin/sh  \n"
		   "2: 0x400000/0x401000/0x1000 /bin/a  \n");
	unload(&l);
}

TEST(lost_samples_are_told)
{
	struct file f;
	struct loaded l;
	size_t at;

	begin(&f, false);
	at = open_record(&f, 2, 0);
	put(&f, 0, 8);
	put(&f, 12, 8);
	put_trailer(&f, 1);
	close_record(&f, at);
	load_made(&l, &f);
	assert_true(l.ok);
	assert_int_equal(l.p.ncomments, 1);
	assert_true(str_eq(profile_str(&l.p, l.p.comments[0]),
			   STR("12 samples were lost while recording")));
	unload(&l);
}

/* ---- what is wrong is told, with the place */

static void assert_fails(struct file *f, const char *want)
{
	struct loaded l;

	load_made(&l, f);
	assert_false(l.ok);
	if (!strstr(l.e.text, want))
		fail_msg("\"%s\" is not in \"%s\"", want, l.e.text);
	unload(&l);
}

#define FIRST_RECORD (HEADER_BYTES + EVENT_BYTES + 16)

TEST(records_with_wrong_sizes_are_refused)
{
	static const struct {
		size_t at;
		uint64_t v;
		size_t bytes;
		const char *want;
	} cases[] = {
		{ FIRST_RECORD + 6, 0, 2, "record at offset 184 has a size below" },
		{ FIRST_RECORD + 6, 7, 2, "record at offset 184 has a size below" },
		{ FIRST_RECORD + 6, 9000, 2, "record at offset 184 is larger than what is left" },
		{ FIRST_RECORD + 32, 100, 8, "record at offset 184 is shorter than its fields" },
		{ FIRST_RECORD + 32, UINT64_MAX, 8, "offset 184 is shorter than its fields" },
		{ FIRST_RECORD + 32, UINT64_C(1) << 61, 8, "offset 184 is shorter than its" },
		{ 48, 4, 8, "record at offset 184 is cut short" },
		{ 48, UINT64_MAX, 8, "records of 18446744073709551615 bytes at offset 184" },
		{ 40, UINT64_MAX, 8, "at offset 18446744073709551615, but the file has" },
		{ 24, 1 << 30, 8, "table of events of 80 bytes at offset 1073741824" },
		{ 16, 0, 8, "table of events has 80 bytes, each event 0" },
		{ 16, 79, 8, "table of events has 80 bytes, each event 79" },
		{ 8, 100, 8, "header of 100 bytes" },
		{ 72, UINT64_MAX, 8, "the list of features ends at offset" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct file f;

		begin(&f, false);
		put_sample(&f, 1, 10, 0x400010, 0);
		set(&f, cases[i].at, cases[i].v, cases[i].bytes);
		assert_fails(&f, cases[i].want);
	}
}

TEST(too_many_events_are_refused)
{
	struct file f = { 0 };

	buf_puts(&f.b, "PERFILE2");
	put(&f, 16, 8);
	for (int i = 0; i < 300; i++) {
		size_t at = open_record(&f, 64, 0);

		put(&f, 0, 4);
		put(&f, EVENT_BYTES, 4);
		for (int k = 0; k < 7; k++)
			put(&f, 0, 8);
		set(&f, at + 6, f.b.n - at, 2);
	}
	assert_fails(&f, "more than 256 events");
}

TEST(every_cut_of_a_file_ends_well)
{
	struct arena a = { 0 };
	struct str whole = read_packed(&a, "tests/perf/packed.data.gz");
	struct loaded l;

	for (size_t n = 8; n < whole.n; n += 97) {
		char *copy = malloc(n); /* so that reading beyond it is seen */

		memcpy(copy, whole.p, n);
		load(&l, (struct str){ copy, n });
		assert_false(l.ok);
		unload(&l);
		free(copy);
	}
	arena_release(&a);
}

/* ---- spaces */

TEST(later_ranges_replace_earlier_ones)
{
	struct spaces all;
	struct space s = { 0 }, copy;

	spaces_init(&all);
	for (uint64_t i = 0; i < 100; i++)
		space_insert(&all, &s, &(struct range){ 10 * i, 10 * i + 10, 0, (uint32_t)i });
	copy = space_fork(&all, &s);
	space_insert(&all, &s, &(struct range){ 25, 75, 0, 1000 });
	space_insert(&all, &s, &(struct range){ 40, 50, 0, 1001 });
	space_insert(&all, &s, &(struct range){ 60, 60, 0, 1002 });
	assert_int_equal(space_find(&s, 24)->mapping, 2);
	assert_int_equal(space_find(&s, 25)->mapping, 1000);
	assert_int_equal(space_find(&s, 39)->mapping, 1000);
	assert_int_equal(space_find(&s, 40)->mapping, 1001);
	assert_int_equal(space_find(&s, 50)->mapping, 1000);
	assert_int_equal(space_find(&s, 74)->mapping, 1000);
	assert_int_equal(space_find(&s, 75)->mapping, 7);
	assert_null(space_find(&s, 1000));
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(space_find(&copy, 10 * i + 5)->mapping, i);
	spaces_release(&all);
}

/* ---- the text of perf script */

static void assert_script(const char *text, const char *want)
{
	struct loaded l;

	assert_true(perf_recognizes(str_of(text)));
	load(&l, str_of(text));
	assert_raw(&l, want);
	unload(&l);
}

TEST(names_of_threads_functions_and_files_have_blanks)
{
	assert_script("# a comment\n\n"
		      "my thread: 2  12/13 [001] 5.000000:     7 cycles:u: \n"
		      "\t  55d0 ns::f(int, char (*)[3]) const+0x9 (/tmp/my prog (deleted))\n"
		      "\t  55e0 operator+ (/lib/x.so)\n"
		      "\t  ffff [unknown] ([unknown])\n\n",
		      "PeriodType: cycles count\nPeriod: 0\nSamples:\nsamples/count cycles/count\n"
		      "          1          7: 1 2 3 \n"
		      "Locations\n     1: 0x55d0 M=1 ns::f(int, char (*)[3]) const :0:0 s=0\n"
		      "     2: 0x55e0 M=2 operator+ :0:0 s=0\n     3: 0xffff \n"
		      "Mappings\n1: 0x0/0x0/0x0 /tmp/my prog (deleted)  [FN]\n"
		      "2: 0x0/0x0/0x0 /lib/x.so  [FN]\n");
}

TEST(inlined_frames_and_lines_of_source)
{
	assert_script("a 1 5.5: 2 cpu-clock: \n"
		      "\t10 inner+0x9\n  x.c:6 (inlined)\n"
		      "\t10 outer+0x9 (/a)\n  x.c:7\n"
		      "\t20 alone+0x1 (inlined)\n"
		      "\t30 main (/a)\n",
		      "PeriodType: cpu nanoseconds\nPeriod: 0\nSamples:\n"
		      "samples/count cpu/nanoseconds\n"
		      "          1          2: 1 2 3 \n"
		      "Locations\n     1: 0x10 M=1 inner x.c:6:0 s=0\n"
		      "             outer x.c:7:0 s=0\n"
		      "     2: 0x20 alone :0:0 s=0\n     3: 0x30 M=1 main :0:0 s=0\n"
		      "Mappings\n1: 0x0/0x0/0x0 /a  [FN][FL][LN][IN]\n");
}

TEST(samples_without_chains_and_tracepoints)
{
	assert_script("            a 1 5.5: 2 cycles:  10 f+0x1 (/a)\n"
		      "            a 1 6.5: 1 sched:sched_switch: prev_comm=a (x)\n"
		      "            a 1 6.6: PERF_RECORD_COMM exec: a:1/1\n"
		      "            a 1 6.5: 1 cycles:  10 f+0x1 (/a)\n",
		      "PeriodType: cycles count\nPeriod: 0\nDuration: 1s\nSamples:\n"
		      "samples/count cycles/count[dflt] sched:sched_switch/count\n"
		      "          2          3          0: 1 \n"
		      "          1          0          1: \n"
		      "Locations\n     1: 0x10 M=1 f :0:0 s=0\n"
		      "Mappings\n1: 0x0/0x0/0x0 /a  [FN]\n");
}

TEST(without_periods_samples_are_counted)
{
	assert_script("a 1 5.5: cycles: \n\t10 f (/a)\n",
		      "PeriodType: samples count\nPeriod: 1\nSamples:\nsamples/count\n"
		      "          1: 1 \nLocations\n     1: 0x10 M=1 f :0:0 s=0\n"
		      "Mappings\n1: 0x0/0x0/0x0 /a  [FN]\n");
}

TEST(the_line_that_is_wrong_is_told)
{
	assert_script("a 1 5.5: 1 cycles: \n\t10 f (/a)\n\nsomething else\n",
		      "perf script: line 4: neither a sample nor a frame: something else");
}

TEST(other_texts_are_not_perf_script)
{
	assert_false(perf_recognizes(STR("main;f 12\n")));
	assert_false(perf_recognizes(STR("heap profile: 1: 2 [3: 4] @ heapprofile\n")));
	assert_false(perf_recognizes(STR("1 5.5: cycles:\n"))); /* no name */
	assert_false(perf_recognizes(STR("# only a comment\n")));
	assert_false(perf_recognizes(STR("")));
}
