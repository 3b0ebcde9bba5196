#include "test.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/int.h"
#include "profile/build.h"
#include "profiles.h"
#include "store/book.h"
#include "store/column.h"

static struct str file_bytes(struct world *w, const char *path)
{
	FILE *f = fopen(path, "rb");
	struct buf bytes = { 0 };
	struct str kept;
	size_t n;

	assert_non_null(f);
	while ((n = fread(buf_room(&bytes, 1 << 16), 1, 1 << 16, f)) > 0)
		bytes.n += n;
	fclose(f);
	kept = (struct str){ arena_copy(&w->arena, bytes.p, bytes.n), bytes.n };
	buf_release(&bytes);
	return kept;
}

static struct str encoded(struct world *w, const struct profile *p)
{
	struct buf out = { 0 };
	struct str kept;

	profile_encode(&out, p);
	kept = (struct str){ arena_copy(&w->arena, out.p, out.n), out.n };
	buf_release(&out);
	return kept;
}

/* A book that has read what another has written. */
static struct book *copy_of(const struct book *b)
{
	struct book *empty = book_new(), *copy = book_new();
	struct book_mark start = book_mark(empty);
	struct buf chunk = { 0 };
	struct err e;

	book_write_chunk(b, &start, &chunk);
	if (!book_read_chunk(copy, buf_view(&chunk), &e))
		fail_msg("%s", e.text);
	book_free(empty);
	buf_release(&chunk);
	return copy;
}

/* What is new is added only if it may be; then all is known, and gives the same bytes. */
static void pack_twice(struct book *b, const struct profile *p, struct buf *packed)
{
	struct packer *k = packer_new();
	struct book_mark before = book_mark(b);
	struct buf again = { 0 };

	packer_find(k, b, p, false);
	assert_true(book_is_at(b, &before));
	assert_true(packer_find(k, b, p, true));
	packer_write(k, packed);
	assert_true(packer_find(k, b, p, false));
	packer_write(k, &again);
	assert_true(str_eq(buf_view(packed), buf_view(&again)));
	buf_release(&again);
	packer_free(k);
}

static void check_same(struct book *b, const struct profile *p, const char *name)
{
	struct world w;
	struct buf packed = { 0 };
	struct profile back;
	struct book *copy;
	struct str want, got;
	struct err e;

	world_init(&w);
	pack_twice(b, p, &packed);
	copy = copy_of(b);
	if (!book_unpack(copy, buf_view(&packed), &w.arena, &w.strings, &back, &e))
		fail_msg("%s: %s", name, e.text);
	want = encoded(&w, p);
	got = encoded(&w, &back);
	if (!str_eq(want, got))
		fail_msg("%s: %zu bytes have become %zu", name, want.n, got.n);
	book_free(copy);
	buf_release(&packed);
	world_release(&w);
}

static int check_folder(struct book *b, const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *entry;
	int n = 0;

	while (d && (entry = readdir(d))) {
		char path[1000];
		struct world w;
		struct profile p;
		struct stat st;
		struct err e;

		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (stat(path, &st) != 0 || st.st_size > 4 << 20)
			continue;
		if (S_ISDIR(st.st_mode) && entry->d_name[0] != '.')
			n += check_folder(b, path);
		if (!S_ISREG(st.st_mode))
			continue;
		world_init(&w);
		if (profile_read(&p, &w.arena, &w.strings, file_bytes(&w, path), 1 << 28, &e)) {
			check_same(b, &p, path);
			n++;
		}
		world_release(&w);
	}
	if (d)
		closedir(d);
	return n;
}

/* CORPUS may name a folder with more. */
TEST(every_profile_comes_back_with_every_field)
{
	struct book *b = book_new();

	assert_true(check_folder(b, "tests") > 10);
	if (getenv("CORPUS"))
		printf("# %d more profiles\n", check_folder(b, getenv("CORPUS")));
	book_free(b);
}

/* ---- profiles that no program would write, but somebody may send */

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((random_state >> 33) % n);
}

static int64_t random_value(void)
{
	static const int64_t odd[] = { 0, 1, -1, INT64_MAX, INT64_MIN, 128, 1 << 20, 10000000 };

	return random_below(3) ? (int64_t)random_below(1000) : odd[random_below(8)];
}

static uint32_t random_name(struct builder *b)
{
	char name[20];

	snprintf(name, sizeof(name), "n%u", random_below(12));
	return random_below(6) ? builder_string(b, str_of(name)) : 0;
}

/* Ids that go up by 1, or by something else. */
static uint64_t next_id(uint64_t id, bool is_odd)
{
	return id + 1 + (is_odd ? (uint64_t)random_below(1000) << random_below(50) : 0);
}

static void add_mappings(struct builder *b, uint32_t n, bool is_odd)
{
	uint64_t id = next_id(0, is_odd);

	for (uint32_t i = 0; i < n; i++, id = next_id(id, is_odd)) {
		struct mapping m = { .id = id,
				     .start = (uint64_t)random_below(3) << 20,
				     .offset = random_below(2),
				     .file = random_name(b),
				     .build_id = random_name(b),
				     .has_functions = random_below(2),
				     .has_inline_frames = random_below(2) };

		m.limit = m.start + (random_below(4) ? 4096 : (uint64_t)-1);
		vec_push(&b->mappings, m);
	}
}

static void add_functions(struct builder *b, uint32_t n, bool is_odd)
{
	uint64_t id = next_id(0, is_odd);

	for (uint32_t i = 0; i < n; i++, id = next_id(id, is_odd))
		vec_push(&b->functions, (struct function){ .id = id,
							   .start_line = random_value(),
							   .name = random_name(b),
							   .system_name = random_name(b),
							   .filename = random_name(b) });
}

static void add_locations(struct builder *b, uint32_t n, bool is_odd)
{
	uint64_t id = next_id(0, is_odd);

	for (uint32_t i = 0; i < n; i++, id = next_id(id, is_odd)) {
		struct location l = { .id = id,
				      .address = random_below(4) ? random_below(5) : UINT64_MAX,
				      .mapping = NONE,
				      .first_line = (uint32_t)b->lines.n,
				      .nlines = random_below(3),
				      .is_folded = random_below(2) };

		if (b->mappings.n && random_below(3))
			l.mapping = random_below((uint32_t)b->mappings.n);
		if (!b->functions.n)
			l.nlines = 0;
		for (uint32_t k = 0; k < l.nlines; k++)
			vec_push(&b->lines,
				 (struct line){ random_value(), random_below(3),
						random_below((uint32_t)b->functions.n) });
		vec_push(&b->locations, l);
	}
}

static uint32_t random_labels(struct builder *b)
{
	struct label_input labels[5];
	uint32_t n = random_below(3) ? 0 : random_below(5);

	for (uint32_t i = 0; i < n; i++) {
		labels[i].is_number = random_below(2);
		labels[i].label = (struct label){ .key = random_name(b) };
		if (labels[i].is_number) {
			labels[i].label.number = random_value();
			labels[i].label.text = random_name(b);
		} else {
			labels[i].label.text = builder_string(b, STR("text"));
		}
	}
	return label_table_add(&b->labels, b->head.strings, labels, n);
}

static void add_samples(struct builder *b, uint32_t n, bool is_odd)
{
	uint32_t stack[20], nlocations = (uint32_t)b->locations.n;
	int64_t values[12];

	for (uint32_t i = 0; i < n; i++) {
		uint32_t depth = nlocations ? random_below(20) : 0;

		for (uint32_t k = 0; k < depth; k++)
			stack[k] = random_below(nlocations);
		for (size_t t = 0; t < b->types.n; t++)
			values[t] = is_odd ? random_value() : 1 + random_below(1000);
		builder_sample(b, stack, depth, random_labels(b), values);
	}
}

static struct profile random_profile(struct world *w, uint32_t ntypes, bool is_odd)
{
	struct builder b;
	struct profile p;
	bool has_odd_ids = is_odd && random_below(2);

	builder_init(&b, &w->strings);
	for (uint32_t i = 0; i < ntypes; i++)
		vec_push(&b.types, (struct value_type){ i ? random_name(&b) : 0, 0 });
	add_mappings(&b, random_below(4), has_odd_ids);
	add_functions(&b, random_below(30), has_odd_ids);
	add_locations(&b, random_below(60), has_odd_ids);
	add_samples(&b, ntypes ? random_below(100) : 0, is_odd);
	b.head.time_nanos = random_value();
	b.head.duration_nanos = random_value();
	b.head.period = random_value();
	if (is_odd) {
		b.head.period_type.type = random_name(&b);
		b.head.default_type = random_name(&b);
		b.head.drop_frames = random_name(&b);
		b.head.doc_url = random_name(&b);
		for (uint32_t i = random_below(4); i; i--)
			vec_push(&b.comments, random_name(&b));
	}
	builder_finish(&b, &w->arena, &p);
	return p;
}

TEST(odd_profiles_come_back_too)
{
	struct book *b = book_new();

	for (uint32_t i = 0; i < 300; i++) {
		struct world w;
		struct profile p;
		char name[20];

		if (i % 20 == 0) { /* large books take long to copy */
			book_free(b);
			b = book_new();
		}

		world_init(&w);
		random_state = i;
		p = random_profile(&w, random_below(12), true);
		snprintf(name, sizeof(name), "seed %u", i);
		check_same(b, &p, name);
		world_release(&w);
	}
	book_free(b);
}

/* ---- what a book learns */

static struct profile loaded_at(struct world *w, uint64_t start)
{
	struct builder b;
	struct profile p;
	int64_t value = 1;

	builder_init(&b, &w->strings);
	vec_push(&b.types, (struct value_type){ builder_string(&b, STR("cpu")), 0 });
	vec_push(&b.mappings, (struct mapping){ .id = 1,
						.start = start,
						.limit = start + 0x1000,
						.file = builder_string(&b, STR("/bin/x")) });
	for (uint32_t i = 0; i < 10; i++) {
		vec_push(&b.locations, (struct location){ .id = i + 1, .address = start + i });
		builder_sample(&b, &i, 1, 0, &value);
	}
	builder_finish(&b, &w->arena, &p);
	return p;
}

TEST(a_program_that_is_loaded_elsewhere_is_the_same_program)
{
	struct world w;
	struct book *b = book_new();
	struct profile p[2];
	struct book_mark mark;
	struct buf packed = { 0 };

	world_init(&w);
	p[0] = loaded_at(&w, 0x400000);
	p[1] = loaded_at(&w, 0x7f0000000000);
	check_same(b, &p[0], "the first");
	mark = book_mark(b);
	check_same(b, &p[1], "the second");
	mark.nlayouts++;
	assert_true(book_is_at(b, &mark));
	book_pack(b, &p[0], &packed);
	assert_true(book_is_at(b, &mark));
	buf_release(&packed);
	book_free(b);
	world_release(&w);
}

/* ---- times */

static struct label_input number_label(struct builder *b, const char *key, const char *unit,
				       int64_t number)
{
	return (struct label_input){ .label = { .key = builder_string(b, str_of(key)),
						.text = builder_string(b, str_of(unit)),
						.number = number },
				     .is_number = true };
}

/* Samples of 1 at times from `start` on, with `nlabels` others each. */
static struct profile stamped(struct world *w, uint32_t n, int64_t start, uint32_t nlabels)
{
	static const uint32_t stack[] = { 0 };
	struct builder b;
	struct profile p;
	int64_t value = 1;

	builder_init(&b, &w->strings);
	vec_push(&b.types, (struct value_type){ builder_string(&b, STR("cpu")), 0 });
	vec_push(&b.locations, (struct location){ .id = 1, .address = 5, .mapping = NONE });
	for (uint32_t i = 0; i < n; i++) {
		vec(struct label_input) labels = { 0 };

		vec_push(&labels, number_label(&b, "timestamp", "nanoseconds", start + i * 1000));
		for (uint32_t k = 0; k < nlabels; k++)
			vec_push(&labels, number_label(&b, k % 2 ? "cpu" : "zone", "", k + 1));
		builder_sample(&b, stack, 1,
			       label_table_add(&b.labels, &w->strings, labels.at, labels.n),
			       &value);
		vec_release(&labels);
	}
	builder_finish(&b, &w->arena, &p);
	return p;
}

TEST(times_of_samples_are_no_part_of_the_book)
{
	struct world w;
	struct book *b = book_new();
	struct book_mark mark;
	struct profile p[2];

	world_init(&w);
	p[0] = stamped(&w, 1000, 1700000000000000000, 3);
	p[1] = stamped(&w, 1000, 1700000005000000000, 3);
	check_same(b, &p[0], "the first");
	mark = book_mark(b);
	assert_int_equal(mark.nlabel_sets, 2);
	check_same(b, &p[1], "the second");
	assert_true(book_is_at(b, &mark));
	book_free(b);
	world_release(&w);
}

/* With them a set of labels for each sample is made again. */
TEST(times_with_many_labels_stay_labels)
{
	struct world w;
	struct book *b = book_new();
	struct profile p;

	world_init(&w);
	p = stamped(&w, 100, 1, 15);
	check_same(b, &p, "few");
	assert_int_equal(book_mark(b).nlabel_sets, 2);
	p = stamped(&w, 100, 1, 16);
	check_same(b, &p, "many");
	assert_int_equal(book_mark(b).nlabel_sets, 102);
	book_free(b);
	world_release(&w);
}

/* Of any number, beside others like them, of some samples. */
TEST(odd_times_come_back_too)
{
	static const char *const keys[] = { "timestamp", "timestamp_ns", "time", "a", "z" };
	static const char *const units[] = { "", "ns", "nanoseconds", "ms", "bytes" };
	struct book *b = book_new();

	for (uint32_t seed = 0; seed < 200; seed++) {
		struct label_input labels[4];
		struct world w;
		struct builder x;
		struct profile p;
		int64_t value = 1;

		world_init(&w);
		random_state = seed;
		builder_init(&x, &w.strings);
		x.head.time_nanos = random_value();
		vec_push(&x.types, (struct value_type){ 0 });
		for (uint32_t i = random_below(20); i; i--) {
			uint32_t n = random_below(5);

			for (uint32_t k = 0; k < n; k++)
				labels[k] = number_label(&x, keys[random_below(5)],
							 units[random_below(5)], random_value());
			builder_sample(&x, NULL, 0,
				       label_table_add(&x.labels, &w.strings, labels, n), &value);
		}
		builder_finish(&x, &w.arena, &p);
		check_same(b, &p, "odd times");
		world_release(&w);
	}
	book_free(b);
}

TEST(chunks_are_read_in_order_or_not_at_all)
{
	struct world w;
	struct book *b = book_new(), *copy = book_new();
	struct book_mark start = book_mark(b), middle;
	struct profile p[2], back;
	struct buf packed = { 0 }, first = { 0 }, second = { 0 };
	struct err e;

	world_init(&w);
	random_state = 7;
	p[0] = random_profile(&w, 2, true);
	p[1] = random_profile(&w, 3, true);
	book_pack(b, &p[0], &packed);
	middle = book_mark(b);
	book_write_chunk(b, &start, &first);
	packed.n = 0;
	book_pack(b, &p[1], &packed);
	book_write_chunk(b, &middle, &second);

	assert_false(book_read_chunk(copy, buf_view(&second), &e));
	assert_string_equal(e.text, "chunk of a book: another chunk belongs before this one");
	assert_true(book_read_chunk(copy, buf_view(&first), &e));
	assert_true(book_is_at(copy, &middle));
	assert_false(book_read_chunk(copy, buf_view(&first), &e));
	assert_true(book_read_chunk(copy, buf_view(&second), &e));
	assert_true(book_unpack(copy, buf_view(&packed), &w.arena, &w.strings, &back, &e));
	assert_true(str_eq(encoded(&w, &p[1]), encoded(&w, &back)));
	/* It knows what it has read. */
	middle = book_mark(copy);
	packed.n = 0;
	book_pack(copy, &p[0], &packed);
	assert_true(book_is_at(copy, &middle));
	buf_release(&packed);
	buf_release(&first);
	buf_release(&second);
	book_free(b);
	book_free(copy);
	world_release(&w);
}

TEST(a_damaged_block_is_refused_and_leaves_the_book_as_it_was)
{
	struct world w;
	struct book *b = book_new(), *copy = book_new();
	struct book_mark start = book_mark(b);
	struct buf packed = { 0 }, chunk = { 0 };
	struct profile p, back;
	struct err e;

	world_init(&w);
	random_state = 3;
	p = random_profile(&w, 2, true);
	book_pack(b, &p, &packed);
	book_write_chunk(b, &start, &chunk);
	for (size_t i = 0; i < chunk.n; i++) {
		chunk.p[i] ^= 4;
		assert_false(book_read_chunk(copy, buf_view(&chunk), &e));
		assert_true(book_is_at(copy, &start));
		chunk.p[i] ^= 4;
		assert_false(book_read_chunk(copy, (struct str){ chunk.p, i }, &e));
	}
	for (size_t i = 0; i < packed.n; i++) {
		packed.p[i] ^= 4;
		assert_false(book_unpack(b, buf_view(&packed), &w.arena, &w.strings, &back, &e));
		packed.p[i] ^= 4;
		assert_false(book_unpack(b, (struct str){ packed.p, i }, &w.arena, &w.strings,
					 &back, &e));
	}
	assert_true(book_read_chunk(copy, buf_view(&chunk), &e));
	assert_true(book_unpack(copy, buf_view(&packed), &w.arena, &w.strings, &back, &e));
	buf_release(&packed);
	buf_release(&chunk);
	book_free(b);
	book_free(copy);
	world_release(&w);
}

/* ---- sums */

static struct profile sum_of(struct world *w, struct book_sum *s, const struct book *b)
{
	struct buf packed = { 0 };
	struct profile p;
	struct err e;

	book_sum_pack(s, &packed);
	if (!book_unpack(b, buf_view(&packed), &w->arena, &w->strings, &p, &e))
		fail_msg("%s", e.text);
	buf_release(&packed);
	return p;
}

static void add_times(struct book *b, struct book_sum *s, const struct profile *p, double factor)
{
	struct buf packed = { 0 };
	double factors[8];
	struct err e;

	for (int i = 0; i < 8; i++)
		factors[i] = factor;
	book_pack(b, p, &packed);
	if (!book_sum_add(s, buf_view(&packed), factors, &e))
		fail_msg("%s", e.text);
	buf_release(&packed);
}

static struct profile merged(struct world *w, const struct profile *profiles, size_t n)
{
	struct merger *m = merger_new(&w->strings);
	struct profile sum;
	struct err e;

	for (size_t i = 0; i < n; i++)
		assert_true(merger_add(m, &profiles[i], &e));
	merger_finish(m, &w->arena, &sum);
	return sum;
}

TEST(a_sum_has_no_times)
{
	struct world w;
	struct book *b = book_new();
	struct book_sum *s = book_sum_new(b);
	struct profile p, sum;

	world_init(&w);
	p = stamped(&w, 100, 1700000000000000000, 1);
	add_times(b, s, &p, 1);
	p = stamped(&w, 100, 1700000005000000000, 1);
	add_times(b, s, &p, 1);
	sum = sum_of(&w, s, b);
	assert_int_equal(sum.nsamples, 1);
	assert_int_equal(sum.values[0], 200);
	assert_int_equal(sum.label_sets[sum.samples[0].labels].nnumbers, 1);
	book_sum_free(s);
	book_free(b);
	world_release(&w);
}

/* The merger joins what a book keeps apart (mappings of nearly the same size), so the sum is merged
 * too. */
TEST(a_sum_is_what_merging_gives)
{
	for (uint32_t seed = 0; seed < 50; seed++) {
		struct world w;
		struct book *b = book_new();
		struct book_sum *s = book_sum_new(b);
		struct profile p[5], sum, want;

		world_init(&w);
		random_state = seed;
		for (int i = 0; i < 5; i++) {
			p[i] = random_profile(&w, 1, false);
			add_times(b, s, &p[i], 1); /* the book grows meanwhile */
		}
		sum = sum_of(&w, s, b);
		sum = merged(&w, &sum, 1);
		want = merged(&w, p, 5);
		if (!str_eq(encoded(&w, &sum), encoded(&w, &want)))
			fail_msg("seed %u", seed);
		book_sum_free(s);
		book_free(b);
		world_release(&w);
	}
}

TEST(what_is_added_and_taken_away_leaves_nothing)
{
	struct world w;
	struct book *b = book_new();
	struct book_sum *s = book_sum_new(b);
	struct profile p[2], sum;

	world_init(&w);
	p[0] = folded(&w, "main;a 5\nmain;b 2\n");
	p[1] = folded(&w, "main;a 5\n");
	add_times(b, s, &p[0], 1);
	add_times(b, s, &p[1], -1);
	sum = sum_of(&w, s, b);
	assert_string_equal(samples_text(&w, &sum), "2: b main\n");
	assert_int_equal(sum.nfunctions, 2);
	add_times(b, s, &p[0], -1);
	add_times(b, s, &p[1], 1);
	assert_int_equal(sum_of(&w, s, b).nsamples, 0);
	book_sum_free(s);
	book_free(b);
	world_release(&w);
}

TEST(sums_are_exact_until_they_are_scaled_and_then_rounded)
{
	struct world w;
	struct book *b = book_new();
	struct book_sum *s = book_sum_new(b);
	struct profile p, sum;

	world_init(&w);
	p = folded(&w, "main;a 9007199254740993\nmain;b 5\n"); /* no double is that */
	add_times(b, s, &p, 1);
	add_times(b, s, &p, 2);
	sum = sum_of(&w, s, b);
	assert_string_equal(samples_text(&w, &sum), "27021597764222979: a main\n15: b main\n");
	add_times(b, s, &p, -3);
	p = folded(&w, "main;a 5\nmain;c 1\n");
	add_times(b, s, &p, 1);
	p = folded(&w, "main;b 5\n");
	add_times(b, s, &p, -1);
	book_sum_scale(s, 0, 0.5);
	sum = sum_of(&w, s, b);
	assert_string_equal(samples_text(&w, &sum), "3: a main\n-3: b main\n1: c main\n");
	add_times(b, s, &p, 0.25);
	assert_true(book_sum_total(s, 0) == 1.75);
	book_sum_free(s);
	book_free(b);
	world_release(&w);
}

TEST(profiles_of_other_types_are_not_added)
{
	struct world w;
	struct book *b = book_new();
	struct book_sum *s = book_sum_new(b);
	struct profile p;
	struct buf packed = { 0 };
	struct book_head head;
	double factor = 1;
	struct err e;

	world_init(&w);
	p = folded(&w, "main;a 5\n");
	add_times(b, s, &p, 1);
	p.types[0].unit = strings_add(&w.strings, STR("bytes"));
	p.time_nanos = -5;
	book_pack(b, &p, &packed);
	assert_false(book_sum_add(s, buf_view(&packed), &factor, &e));
	assert_int_equal(e.kind, ERR_USAGE);
	assert_true(book_sum_total(s, 0) == 5);

	assert_true(book_read_head(b, buf_view(&packed), &head, &e));
	assert_int_equal(head.nsamples, 1);
	assert_int_equal(head.ntypes, 1);
	assert_int_equal(head.time, -5);
	assert_true(str_eq(book_type_unit(b, head.head, 0), STR("bytes")));
	buf_release(&packed);
	book_sum_free(s);
	book_free(b);
	world_release(&w);
}

static void print_function(void *ctx, const struct book_function_sum *f)
{
	buf_printf(ctx, "%.*s %.0f %.0f\n", STR_ARG(f->name), f->flat, f->cum);
}

TEST(recursion_counts_once)
{
	struct world w;
	struct book *b = book_new();
	struct book_sum *s = book_sum_new(b);
	struct buf text = { 0 };
	struct profile p;

	world_init(&w);
	p = folded(&w, "main;f;g;f 5\nmain;g 2\n");
	add_times(b, s, &p, 1);
	book_sum_functions(s, 0, NULL, print_function, &text);
	buf_char(&text, '\0');
	assert_string_equal(text.p, "f 5 5\ng 2 7\nmain 0 7\n");
	buf_release(&text);
	book_sum_free(s);
	book_free(b);
	world_release(&w);
}

/* ---- columns */

static void check_rows(const uint32_t *v, size_t n)
{
	struct buf out = { 0 }, dense = { 0 };
	uint32_t *back = xcalloc(n + 1, sizeof(*back));
	struct reader r, d;

	put_rows(&out, &dense, v, n);
	assert_true((out.n + dense.n) * 8 >= n);
	r = reader_of(buf_view(&out));
	d = reader_of(buf_view(&dense));
	get_rows(&r, &d, back, n);
	assert_false(r.is_bad);
	assert_true(r.p == r.end && d.p == d.end);
	assert_memory_equal(back, v, n * sizeof(*v));
	buf_release(&out);
	buf_release(&dense);
	free(back);
}

TEST(rows_of_any_width_come_back)
{
	uint32_t v[100];

	for (unsigned width = 0; width < 32; width++)
		for (size_t n = 0; n < 100; n++) {
			for (size_t i = 0; i < n; i++)
				v[i] = random_below(0x7fffffff) >> width;
			check_rows(v, n);
		}
	for (uint32_t i = 0; i < 100; i++)
		v[i] = UINT32_MAX - i;
	check_rows(v, 100);
}

TEST(columns_of_any_numbers_come_back)
{
	for (unsigned kind = 0; kind < 300; kind++) {
		uint64_t v[50], back[50];
		struct buf out = { 0 };
		struct reader r;

		for (int i = 0; i < 50; i++)
			v[i] = kind % 3 ? (uint64_t)random_value() << kind % 5 : kind;
		put_column(&out, v, 50, kind % 2);
		r = reader_of(buf_view(&out));
		get_column(&r, back, 50, kind % 2);
		assert_true(r.p == r.end && !r.is_bad);
		assert_memory_equal(back, v, sizeof(v));
		r = reader_of((struct str){ out.p, out.n - 1 });
		get_column(&r, back, 50, kind % 2);
		assert_true(r.is_bad);
		buf_release(&out);
	}
}
