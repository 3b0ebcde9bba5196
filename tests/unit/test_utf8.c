#include "base/utf8.h"

#include "profile/wire.h"
#include "test.h"

TEST(what_is_valid)
{
	static const struct {
		struct str text;
		bool is_valid;
	} cases[] = {
		{ { "", 0 }, true },
		{ { "eight bytes and more", 20 }, true },
		{ { "gr\xc3\xb6\xc3\x9f"
		    "e \xef\xbf\xbd",
		    11 },
		  true },
		{ { "01234567\xff", 9 }, false },
		{ { "\xc3", 1 }, false },
		{ { "\xed\xa0\x80", 3 }, false }, /* a surrogate */
		{ { "\xc0\x80", 2 }, false },	  /* longer than need be */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(utf8_is_valid(cases[i].text), cases[i].is_valid);
}

TEST(texts_of_messages_are_valid)
{
	struct buf out = { 0 };

	put_utf8(&out, 1, STR("\xc3\xa9"));
	put_utf8(&out, 2, STR("a\xffz"));
	assert_true(str_eq(buf_view(&out), STR("\x0a\x02\xc3\xa9\x12\x05"
					       "a\xef\xbf\xbdz")));
	buf_release(&out);
}
