#include "http/media.h"

#include "test.h"

#define SAME(got, want) assert_true(str_eq(got, STR(want)))

TEST(types_are_told_whatever_their_case_and_parameters)
{
	assert_true(http_media_is(STR("Application/JSON ; charset=utf-8"), "application/json"));
	assert_true(http_media_is(STR("application/json"), "application/json"));
	assert_false(http_media_is(STR("application/json2"), "application/json"));
	assert_false(http_media_is((struct str){ 0 }, "application/json"));
}

TEST(parameters)
{
	struct arena a = { 0 };
	struct str type =
		STR("multipart/form-data; Boundary=\"a;\\\"b\" ; charset = utf-8; flag; x=");

	SAME(http_media_param(&a, type, "boundary"), "a;\"b");
	SAME(http_media_param(&a, type, "charset"), "utf-8");
	SAME(http_media_param(&a, type, "x"), "");
	assert_non_null(http_media_param(&a, type, "x").p);
	assert_null(http_media_param(&a, type, "flag").p);
	assert_null(http_media_param(&a, type, "y").p);
	assert_null(http_media_param(&a, STR("boundary=x"), "boundary").p); /* that is the type */
	SAME(http_media_param(&a, STR("a; b=\"no end"), "b"), "no end");
	SAME(http_media_param(&a, STR("a; b=\"\\"), "b"), "\\");
	arena_release(&a);
}
