#include "test.h"

#include "profile/wire.h"
#include "profiles.h"
#include "server/flamebearer.h"

static struct flame grow(struct world *w, const struct profile *p, uint32_t max_paths)
{
	static struct report_params params;
	struct report_run r = { .a = &w->arena, .p = p, .params = &params };
	struct flame f;

	params = (struct report_params){ .keep = { .inlines = true, .function = true },
					 .threads = 1 };
	flame_grow(&f, &r, max_paths, 0);
	return f;
}

static const char *json_of(struct world *w, const struct flame *f, bool is_diff)
{
	struct flamebearer b;

	flamebearer_make(&w->arena, &b, f, is_diff);
	w->text.n = 0;
	flamebearer_json(&w->text, &b);
	buf_char(&w->text, '\0');
	return w->text.p;
}

TEST(levels_go_from_left_to_right)
{
	struct world w;
	struct profile p;
	struct flame f;

	world_init(&w);
	p = folded(&w, "main;b;c 3\nmain;a 4\nmain;b 2\nmain 1\nother;a 5\n");
	f = grow(&w, &p, 0);
	/* Names in the order of the paths; callees by name, to the right of what main takes. */
	assert_string_equal(
		json_of(&w, &f, false),
		"{\"names\":[\"total\",\"main\",\"other\",\"b\",\"a\",\"c\"],\"levels\":["
		"\n[0,15,0,0],\n[0,10,1,1,0,5,0,2],\n[1,4,4,4,0,5,2,3,0,5,5,4],"
		"\n[7,3,3,5]],\"numTicks\":15,\"maxSelf\":5}");
	world_release(&w);
}

TEST(what_is_cut_is_other)
{
	struct world w;
	struct profile p;
	struct flame f;

	world_init(&w);
	p = folded(&w, "main;a 90\nmain;b 6\nmain;c 4\n");
	f = grow(&w, &p, 2);
	assert_string_equal(json_of(&w, &f, false),
			    "{\"names\":[\"total\",\"main\",\"a\",\"other\"],\"levels\":["
			    "\n[0,100,0,0],\n[0,100,0,1],\n[0,90,90,2,0,10,10,3]],"
			    "\"numTicks\":100,\"maxSelf\":90}");
	world_release(&w);
}

TEST(comparisons_have_both_sides)
{
	struct world w;
	struct profile both;
	struct flame f;
	struct err e;

	world_init(&w);
	assert_true(profile_diff(&w.arena, folded(&w, "main;a 5\nmain;b 2\n"),
				 folded(&w, "main;a 3\nmain;c 4\n"),
				 &(struct diff_params){ .mark_base = true }, &both, &e));
	f = grow(&w, &both, 0);
	/* left: a 3, c 4; right: a 5, b 2 */
	assert_string_equal(json_of(&w, &f, true),
			    "{\"names\":[\"total\",\"main\",\"a\",\"b\",\"c\"],\"levels\":["
			    "\n[0,7,0,0,7,0,0],\n[0,7,0,0,7,0,1],"
			    "\n[0,3,3,0,5,5,2,0,0,0,0,2,2,3,0,4,4,0,0,0,4]],"
			    "\"numTicks\":14,\"maxSelf\":5}");
	world_release(&w);
}

TEST(an_empty_profile_is_one_box)
{
	struct world w;
	struct profile p;
	struct flame f;

	world_init(&w);
	p = folded(&w, "main 1\n");
	p.nsamples = 0;
	f = grow(&w, &p, 10);
	assert_string_equal(json_of(&w, &f, false), "{\"names\":[\"total\"],\"levels\":["
						    "\n[0,0,0,0]],\"numTicks\":0,\"maxSelf\":0}");
	world_release(&w);
}

TEST(trees_have_callers_first)
{
	struct world w;
	struct profile p;
	struct flame f;
	struct buf out = { 0 };

	world_init(&w);
	p = folded(&w, "main;a 90\nmain;b 6\nmain;c 4\n");
	f = grow(&w, &p, 2);
	flamebearer_put_tree(&out, &f);
	assert_int_equal(out.n, sizeof("\0\0\1\4main\0\2\1a\132\0\5other\12\0") - 1);
	assert_memory_equal(out.p, "\0\0\1\4main\0\2\1a\132\0\5other\12\0", out.n);
	buf_release(&out);
	world_release(&w);
}
