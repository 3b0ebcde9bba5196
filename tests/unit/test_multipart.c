#include "http/multipart.h"

#include "test.h"

#define TYPE STR("multipart/form-data; boundary=XX")
#define PART(name) "--XX\r\nContent-Disposition: form-data; name=\"" name "\"\r\n"
#define SAME(got, want) assert_true(str_eq(got, STR(want)))

enum { MAX = 4 };

static void assert_wrong(struct str type, struct str body, const char *want)
{
	struct http_part parts[MAX];
	struct arena a = { 0 };
	struct err e;
	size_t n;

	assert_false(http_multipart_parse(&a, type, body, parts, MAX, &n, &e));
	assert_string_equal(e.text, want);
	arena_release(&a);
}

TEST(parts_have_names_types_and_bodies)
{
	struct http_part parts[MAX];
	struct arena a = { 0 };
	struct err e;
	size_t n;

	assert_true(http_multipart_parse(
		&a, TYPE,
		STR("before\r\n--XX\r\ncontent-disposition: form-data; name=\"a\"; "
		    "filename=\"f\"\r\n"
		    "Content-Type: text/plain\r\n\r\none\r\n--X\r\ntwo\0three\r\n" PART(
			    "b") "\r\n\r\n--XX  \r\n\r\nno headers\r\n" PART("c") "\r\n--XX--"
										  "\r\nafter"),
		parts, MAX, &n, &e));
	assert_int_equal(n, 4);
	SAME(parts[0].name, "a");
	SAME(parts[0].filename, "f");
	SAME(parts[0].type, "text/plain");
	SAME(parts[0].body, "one\r\n--X\r\ntwo\0three");
	SAME(parts[1].name, "b");
	SAME(parts[1].filename, "");
	SAME(parts[1].body, "");
	SAME(parts[2].name, "");
	SAME(parts[2].body, "no headers");
	SAME(parts[3].body, "");
	arena_release(&a);
}

TEST(no_parts)
{
	struct arena a = { 0 };
	struct err e;
	size_t n = 7;

	assert_true(http_multipart_parse(&a, TYPE, STR("--XX--"), NULL, 0, &n, &e));
	assert_int_equal(n, 0);
	arena_release(&a);
}

TEST(what_is_wrong_is_told)
{
	assert_wrong(STR("multipart/form-data"), STR(""),
		     "multipart: the Content-Type has no boundary of 1 to 70 characters");
	assert_wrong(TYPE, STR("x"), "multipart: the body has no boundary");
	assert_wrong(TYPE, STR("--XX"), "multipart: part 0: no line end after the boundary");
	assert_wrong(TYPE, STR("--XXY\r\n\r\n\r\n--XX--"),
		     "multipart: part 0: no line end after the boundary");
	assert_wrong(TYPE, STR(PART("a")), "multipart: part 0: its headers do not end");
	assert_wrong(TYPE, STR(PART("a") "\r\nbody"),
		     "multipart: part 0: it does not end in the boundary");
	assert_wrong(TYPE, STR(PART("a") "\r\nbody\r\n--XX"),
		     "multipart: part 1: no line end after the boundary");
	assert_wrong(TYPE,
		     STR(PART("a") "\r\n\r\n" PART("a") "\r\n\r\n" PART("a") "\r\n\r\n" PART(
			     "a") "\r\n\r\n" PART("a") "\r\n\r\n--XX--"),
		     "multipart: more than 4 parts");
}
