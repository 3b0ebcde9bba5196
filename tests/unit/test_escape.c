#include "test.h"

#include "base/escape.h"

static void check(void (*escape)(struct buf *, struct str), struct str in, const char *want)
{
	struct buf out = { 0 };

	escape(&out, in);
	buf_char(&out, '\0');
	assert_string_equal(out.p, want);
	buf_release(&out);
}

TEST(xml_text_is_escaped)
{
	check(escape_xml, STR("a<b>&\"c\"'"), "a&lt;b&gt;&amp;&quot;c&quot;'");
	check(escape_xml, STR("größe 日本"), "größe 日本");
	check(escape_xml, STR("a\tb\nc\rd"), "a&#9;b&#10;c&#13;d");
}

TEST(what_xml_does_not_allow_is_replaced)
{
	check(escape_xml, STR("\0\x01\x1f"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	check(escape_xml, STR("\xff.\xc3"), "\xef\xbf\xbd.\xef\xbf\xbd");
	check(escape_xml, STR("\xef\xbf\xbe"), "\xef\xbf\xbd");
	assert_false(xml_allows(0xffff));
	assert_true(xml_allows(0x1f600));
}

TEST(json_strings_are_escaped)
{
	check(escape_json, STR("\"\\/"), "\\\"\\\\/");
	check(escape_json, STR("\0\n\x7f"), "\\u0000\\u000a\\u007f");
	check(escape_json, STR("</script>]]>&"), "\\u003c/script\\u003e]]\\u003e\\u0026");
	check(escape_json, STR("größe \xff"), "größe \xef\xbf\xbd");
}

TEST(words_of_a_shell_are_quoted)
{
	check(escape_shell, STR("/usr/bin/a-b_c.so.1"), "/usr/bin/a-b_c.so.1");
	check(escape_shell, STR(""), "''");
	check(escape_shell, STR("a b"), "'a b'");
	check(escape_shell, STR("x;$(rm *)`"), "'x;$(rm *)`'");
	check(escape_shell, STR("it's"), "'it'\\''s'");
	check(escape_shell, STR("~"), "'~'");
}
