#include "test.h"

#include "web/changes.h"

enum { MAIN = 11, COPY = 12, PARSE = 13 };

/* A box, and whether its function is news. */
static uint32_t put(struct changes *c, uint32_t parent, uint32_t function, int64_t self,
		    bool is_news)
{
	bool is_new;
	uint32_t id = changes_box(c, parent, function, &(struct change_values){ self, 0 }, &is_new);

	assert_int_equal(is_new, is_news);
	return id;
}

static void begin(struct changes *c)
{
	changes_begin(c, &(struct change_values){ 0, 1 });
}

static void expect(struct changes *c, const char *want)
{
	struct buf out = { 0 };

	changes_put(c, &out);
	buf_char(&out, '\0');
	assert_string_equal(out.p, want);
	buf_release(&out);
}

static void drop(struct changes *c)
{
	struct buf out = { 0 };

	changes_put(c, &out);
	buf_release(&out);
}

TEST(all_at_first_then_what_differs)
{
	struct changes c = { 0 };
	uint32_t box;

	assert_true(changes_is_first(&c));
	begin(&c);
	box = put(&c, 0, MAIN, 5, true);
	put(&c, box, COPY, 7, true);
	expect(&c, "\"gone\":[],\"new\":[[1,0,11,5,0],[2,1,12,7,0]],\"changed\":[[0,0,1]]");
	assert_false(changes_is_first(&c));

	begin(&c);
	box = put(&c, 0, MAIN, 5, false);
	put(&c, box, COPY, 8, false);
	expect(&c, "\"gone\":[],\"new\":[],\"changed\":[[2,8,0]]");

	begin(&c);
	box = put(&c, 0, MAIN, 5, false);
	put(&c, box, COPY, 8, false);
	expect(&c, "\"gone\":[],\"new\":[],\"changed\":[]");
	changes_release(&c);
}

TEST(ids_of_what_is_gone_are_used_again)
{
	struct changes c = { 0 };
	uint32_t box;

	begin(&c);
	box = put(&c, 0, MAIN, 1, true);
	put(&c, box, COPY, 1, true);
	expect(&c, "\"gone\":[],\"new\":[[1,0,11,1,0],[2,1,12,1,0]],\"changed\":[[0,0,1]]");
	begin(&c);
	put(&c, 0, MAIN, 1, false);
	expect(&c, "\"gone\":[2],\"new\":[],\"changed\":[]");
	begin(&c);
	box = put(&c, 0, PARSE, 1, true);
	put(&c, box, COPY, 1, false); /* the page still knows what that is */
	expect(&c, "\"gone\":[1],\"new\":[[2,0,13,1,0],[3,2,12,1,0]],\"changed\":[]");
	for (int i = 0; i < 1000; i++) {
		begin(&c);
		box = put(&c, 0, i % 2 ? PARSE : MAIN, i, false);
		put(&c, box, COPY, i, false);
		drop(&c);
	}
	assert_in_range(c.boxes.n, 3, 7);
	changes_release(&c);
}

TEST(the_same_twice_is_one)
{
	struct changes c = { 0 };

	begin(&c);
	put(&c, 0, MAIN, 1, true);
	put(&c, 0, MAIN, 2, false);
	expect(&c, "\"gone\":[],\"new\":[[1,0,11,3,0]],\"changed\":[[0,0,1]]");
	begin(&c);
	put(&c, 0, MAIN, INT64_MAX, false);
	put(&c, 0, MAIN, INT64_MAX, false);
	drop(&c);
	changes_release(&c);
}

TEST(what_is_forgotten_is_sent_again)
{
	struct changes c = { 0 };

	begin(&c);
	put(&c, 0, MAIN, 1, true);
	changes_forget(&c);
	assert_true(changes_is_first(&c));
	begin(&c);
	put(&c, 0, MAIN, 1, true);
	expect(&c, "\"gone\":[],\"new\":[[1,0,11,1,0]],\"changed\":[[0,0,1]]");
	changes_release(&c);
}
