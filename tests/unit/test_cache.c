/* Reports from slices that were kept must be those of fresh ones, whatever was asked before. */
#include "test.h"

#include <stdio.h>

#include "analyze/analyze.h"
#include "profiles.h"

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void session_init(struct session *s)
{
	*s = (struct session){ .threads = 2 };
	strings_init(&s->strings);
}

static void session_read(struct session *s, struct str data)
{
	struct err e;

	session_init(s);
	if (!profile_read(&s->profile, &s->arena, &s->strings, data, 1 << 26, &e))
		fail_msg("%s", e.text);
}

/* Random calls among 40 functions: enough samples for several threads. */
static void make_stacks(struct buf *out, uint32_t n)
{
	uint64_t seed = 1;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t depth = 1 + next_random(&seed) % 12;

		buf_puts(out, "main");
		for (uint32_t k = 0; k < depth; k++)
			buf_printf(out, ";f%u", next_random(&seed) % (1 + next_random(&seed) % 40));
		buf_printf(out, " %u\n", 1 + next_random(&seed) % 9);
	}
}

static const char *pick(uint64_t *seed, const char *const *values, size_t n)
{
	return values[next_random(seed) % n];
}

#define PICK(seed, ...)                                    \
	pick((seed), (const char *const[]){ __VA_ARGS__ }, \
	     sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

/* Changes one setting or two. */
static void change(struct analyze_options *o, uint64_t *seed)
{
	switch (next_random(seed) % 16) {
	case 0:
	case 1:
		o->focus = PICK(seed, "", "1", "f2", "f[3-9]$", "main", "nothing");
		break;
	case 2:
		o->ignore = PICK(seed, "", "f1$", "f7", "f3.", "g");
		break;
	case 3:
		o->hide = PICK(seed, "", "", "f1", "main");
		break;
	case 4:
		o->show = PICK(seed, "", "", "f[0-5]");
		break;
	case 5:
		o->show_from = PICK(seed, "", "", "f3");
		break;
	case 6:
		o->prune_from = PICK(seed, "", "", "f4$");
		break;
	case 7:
		o->tagfocus = PICK(seed, "", "", "eu", "zone=eu");
		break;
	case 8:
		o->tagroot = PICK(seed, "", "", "zone");
		break;
	case 9:
		o->sort = next_random(seed) % 2 ? SORT_CUM : SORT_FLAT;
		break;
	case 10:
		o->nodecount = next_random(seed) % 12;
		break;
	case 11:
		o->granularity = next_random(seed) % 2 ? GRANULARITY_LINES : GRANULARITY_FUNCTIONS;
		break;
	case 12:
		o->mean = next_random(seed) % 2;
		break;
	case 13:
		o->relative_percentages = next_random(seed) % 2;
		break;
	case 14:
		o->sample_index = PICK(seed, "", "0");
		break;
	default:
		o->unit = PICK(seed, "minimum", "auto");
	}
}

/* What the report prints, its warnings, its error. */
static void run(struct session *s, const struct analyze_request *q, struct buf *out)
{
	struct buf warnings = { 0 };
	struct err e = { 0 };
	bool ok = analyze_report(s, q, out, &warnings, &e);

	buf_printf(out, "%d %s\n", ok, ok ? "" : e.text);
	buf_str(out, buf_view(&warnings));
	buf_release(&warnings);
}

static void compare(struct session *kept, struct session *fresh, int rounds)
{
	struct analyze_options o = analyze_defaults;
	uint64_t seed = 7;

	kept->keeps_slices = true;
	for (int i = 0; i < rounds; i++) {
		const char *name = PICK(&seed, "top", "top", "top", "tree", "peek", "list", "tags",
					"dot", "raw", "traces");
		struct analyze_request q = { .report = report_find(name),
					     .argument = "",
					     .options = &o };
		struct buf a = { 0 }, b = { 0 };

		if (strcmp(name, "peek") == 0 || strcmp(name, "list") == 0)
			q.argument = PICK(&seed, "f1$", "main", "f", "nosuch", "(");
		if (next_random(&seed) % 6 == 0)
			o = analyze_defaults;
		else if (next_random(&seed) % 2)
			change(&o, &seed);
		run(kept, &q, &a);
		run(fresh, &q, &b);
		if (!str_eq(buf_view(&a), buf_view(&b)))
			fail_msg("round %d, %s %s focus=%s ignore=%s: kept\n%.*s\nfresh\n%.*s", i,
				 name, q.argument, o.focus, o.ignore, STR_ARG(buf_view(&a)),
				 STR_ARG(buf_view(&b)));
		buf_release(&a);
		buf_release(&b);
	}
}

TEST(many_samples)
{
	struct session kept, fresh;
	struct buf stacks = { 0 };

	make_stacks(&stacks, 25000);
	session_read(&kept, buf_view(&stacks));
	session_read(&fresh, buf_view(&stacks));
	compare(&kept, &fresh, 120);
	session_release(&kept);
	session_release(&fresh);
	buf_release(&stacks);
}

/* Where a filter leaves most samples, weights are counted from those that it takes. */
TEST(most_samples_left)
{
	static const char *const ignored[] = { "f39", "f3[5-9]", "f30", "f2[0-4]" };
	struct session kept, fresh;
	struct buf stacks = { 0 };
	struct analyze_options o = analyze_defaults;
	struct analyze_request q = { .report = report_find("top"), .argument = "", .options = &o };

	make_stacks(&stacks, 25000);
	session_read(&kept, buf_view(&stacks));
	session_read(&fresh, buf_view(&stacks));
	kept.keeps_slices = true;
	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++) {
		struct buf a = { 0 }, b = { 0 };

		o.ignore = "";
		run(&kept, &q, &a);
		o.ignore = ignored[i];
		a.n = 0;
		run(&kept, &q, &a);
		run(&fresh, &q, &b);
		buf_char(&a, '\0');
		buf_char(&b, '\0');
		assert_string_equal(a.p, b.p);
		buf_release(&a);
		buf_release(&b);
	}
	session_release(&kept);
	session_release(&fresh);
	buf_release(&stacks);
}

TEST(labels_and_inlined_frames)
{
	static const char *const files[] = {
		"tests/recorded/profiles/synth/labels.pb.gz",
		"tests/recorded/profiles/synth/multimap.pb.gz",
		"tests/recorded/profiles/synth/with_base_label.pb.gz",
		"tests/recorded/profiles/synth/mixed_units.pb.gz",
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		struct session kept, fresh;
		FILE *f = fopen(files[i], "r");
		struct buf data = { 0 };
		int c;

		assert_non_null(f);
		while ((c = getc(f)) != EOF)
			buf_char(&data, (char)c);
		fclose(f);
		session_read(&kept, buf_view(&data));
		session_read(&fresh, buf_view(&data));
		compare(&kept, &fresh, 500);
		session_release(&kept);
		session_release(&fresh);
		buf_release(&data);
	}
}

TEST(slices_that_were_not_used_go)
{
	struct cache c = { 0 };
	struct slice *parent = slice_new("parent");
	char key[16];

	parent->graphs = graph_memo_new(NULL, NULL, MEMO_OTHER);
	cache_add(&c, parent);
	for (int i = 0; i < 20; i++) {
		struct slice *slice;

		snprintf(key, sizeof(key), "%d", i);
		slice = slice_new(key);
		slice->parent = parent;
		slice->graphs = graph_memo_new(parent->graphs, &parent->p, MEMO_SELECTS);
		cache_add(&c, slice);
	}
	assert_int_equal(c.n, CACHE_SLICES);
	assert_ptr_equal(cache_find(&c, "parent"), parent);
	assert_non_null(cache_find(&c, "19"));
	assert_null(cache_find(&c, "1"));
	cache_release(&c);
}
