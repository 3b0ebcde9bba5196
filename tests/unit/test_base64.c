#include "base/base64.h"

#include "test.h"

static void assert_decodes(bool decode(struct buf *out, struct str text), const char *text,
			   struct str want)
{
	struct buf out = { 0 };

	assert_true(decode(&out, str_of(text)));
	assert_true(str_eq(buf_view(&out), want));
	buf_release(&out);
}

static void assert_wrong(bool decode(struct buf *out, struct str text), const char *text)
{
	struct buf out = { 0 };

	assert_false(decode(&out, str_of(text)));
	buf_release(&out);
}

TEST(base64_with_both_alphabets)
{
	assert_decodes(base64_decode, "", STR(""));
	assert_decodes(base64_decode, "TQ==", STR("M"));
	assert_decodes(base64_decode, "TWE", STR("Ma"));
	assert_decodes(base64_decode, "TWFu", STR("Man"));
	assert_decodes(base64_decode, "+/+/", STR("\xfb\xff\xbf"));
	assert_decodes(base64_decode, "-_-_", STR("\xfb\xff\xbf"));
	assert_wrong(base64_decode, "T");
	assert_wrong(base64_decode, "T!==");
	assert_wrong(base64_decode, "TW=u");
}

TEST(hexadecimal)
{
	assert_decodes(hex_decode, "", STR(""));
	assert_decodes(hex_decode, "00aFf1", STR("\0\xaf\xf1"));
	assert_wrong(hex_decode, "0");
	assert_wrong(hex_decode, "0g");
}
