#include "test.h"

#include "profiles.h"

static struct profile merge(struct world *w, const struct profile *profiles, size_t n)
{
	struct merger *m = merger_new(&w->strings);
	struct profile sum;
	struct err e;

	for (size_t i = 0; i < n; i++)
		assert_true(merger_add(m, &profiles[i], &e));
	merger_finish(m, &w->arena, &sum);
	return sum;
}

TEST(equal_stacks_are_summed_in_order_of_first_use)
{
	struct world w;
	struct profile p[2], sum;

	world_init(&w);
	p[0] = folded(&w, "main;a 1\nmain;b 2\n");
	p[1] = folded(&w, "main;c 4\nmain;a 8\nmain;b;d 16\n");
	sum = merge(&w, p, 2);
	assert_string_equal(samples_text(&w, &sum),
			    "9: a main\n2: b main\n4: c main\n16: d b main\n");
	for (uint32_t i = 0; i < sum.nlocations; i++)
		assert_int_equal(sum.locations[i].id, i + 1);
	world_release(&w);
}

TEST(what_cancels_out_leaves_nothing_behind)
{
	struct world w;
	struct profile p[2], sum;
	double minus = -1;

	world_init(&w);
	p[0] = folded(&w, "main;a 5\nmain;b 2\n");
	p[1] = folded(&w, "main;a 5\n");
	profile_scale(&w.arena, &p[1], &minus);
	sum = merge(&w, p, 2);
	assert_string_equal(samples_text(&w, &sum), "2: b main\n");
	assert_int_equal(sum.nfunctions, 2);
	world_release(&w);
}

TEST(a_difference_has_two_sides)
{
	struct world w;
	struct profile p, before, after;

	world_init(&w);
	p = before = after = folded(&w, "main;a 1 5\nmain;b 2 0\nmain;c 0 3\nmain;d 0 0\n");
	profile_take_side(&w.arena, &before, true);
	profile_take_side(&w.arena, &after, false);
	assert_string_equal(samples_text(&w, &p), "5: a main\n-1: a main\n-2: b main\n3: c main\n");
	assert_string_equal(samples_text(&w, &before), "1: a main\n2: b main\n");
	assert_string_equal(samples_text(&w, &after), "5: a main\n3: c main\n");
	for (uint32_t i = 0; i < before.nsamples; i++)
		assert_false(label_set_is_base(&before, before.samples[i].labels));
	profile_take_side(&w.arena, &after, true);
	assert_int_equal(after.nsamples, 0);
	world_release(&w);
}

TEST(many_more_samples_than_a_block_merge_as_one_by_one)
{
	struct world w;
	struct buf text = { 0 };
	struct profile p[3], sum;

	world_init(&w);
	for (int i = 0; i < 3; i++) {
		text.n = 0;
		for (int k = 0; k < 500; k++)
			buf_printf(&text, "main;f%d;g%d;h%d 1\n", k % 50, k % (7 + i), k % 11);
		buf_char(&text, '\0');
		p[i] = folded(&w, text.p);
	}
	sum = merge(&w, p, 3);
	for (uint32_t i = 0; i < sum.nsamples; i++) { /* count each stack by hand */
		const struct sample *s = &sum.samples[i];
		int64_t want = 0;

		for (int k = 0; k < 3; k++) {
			for (uint32_t j = 0; j < p[k].nsamples; j++) {
				const struct sample *t = &p[k].samples[j];
				bool same = t->nstack == s->nstack;

				for (uint32_t d = 0; same && d < t->nstack; d++) {
					uint32_t x = p[k].stacks[t->stack + d];
					uint32_t y = sum.stacks[s->stack + d];
					uint32_t fx =
						p[k].lines[p[k].locations[x].first_line].function;
					uint32_t fy =
						sum.lines[sum.locations[y].first_line].function;

					same = p[k].functions[fx].name == sum.functions[fy].name;
				}
				want += same ? sample_values(&p[k], t)[0] : 0;
			}
		}
		assert_int_equal(sample_values(&sum, s)[0], want);
	}
	buf_release(&text);
	world_release(&w);
}

TEST(other_types_are_refused)
{
	struct world w;
	struct merger *m;
	struct profile p, q;
	struct err e;

	world_init(&w);
	p = q = folded(&w, "main 1\n");
	q.types = arena_copy(&w.arena, p.types, sizeof(*p.types));
	q.types[0].unit = strings_add(&w.strings, STR("bytes"));
	m = merger_new(&w.strings);
	assert_true(merger_add(m, &p, &e));
	assert_false(merger_add(m, &q, &e));
	assert_string_equal(
		e.text, "incompatible sample types &{samples count 0 0} and &{samples bytes 0 0}");
	merger_free(m);
	world_release(&w);
}

TEST(a_rebased_profile_reads_the_same)
{
	struct world w, other;
	struct profile p;
	struct buf before = { 0 }, after = { 0 };

	world_init(&w);
	world_init(&other);
	strings_add(&other.strings, STR("something else"));
	p = folded(&w, "main;a 1\nmain;b 2\n");
	raw_write(&before, &p);
	profile_rebase(&p, &other.strings);
	raw_write(&after, &p);
	assert_true(str_eq(buf_view(&before), buf_view(&after)));
	buf_release(&before);
	buf_release(&after);
	world_release(&w);
	world_release(&other);
}
