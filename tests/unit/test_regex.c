#include "test.h"

#include <pthread.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/regex.h"

static struct regex *compile(struct str pattern)
{
	struct err e = { 0 };
	struct regex *re = regex_compile(pattern, &e);

	if (!re)
		fail_msg("%.*s: %s", STR_ARG(pattern), e.text);
	return re;
}

static bool matches_str(struct str pattern, struct str subject)
{
	struct regex *re = compile(pattern);
	bool found = regex_match(re, subject);

	regex_free(re);
	return found;
}

static void matches(const char *pattern, const char *subject)
{
	if (!matches_str(str_of(pattern), str_of(subject)))
		fail_msg("/%s/ should match \"%s\"", pattern, subject);
}

static void differs(const char *pattern, const char *subject)
{
	if (matches_str(str_of(pattern), str_of(subject)))
		fail_msg("/%s/ should not match \"%s\"", pattern, subject);
}

/* Spans are written as Go's FindStringSubmatchIndex gives them: start and end of each group. */
static void check_find_str(struct str pattern, struct str subject, const char *want)
{
	struct regex *re = compile(pattern);
	struct regex_span groups[4];
	char text[200];
	size_t n = 0;

	if (!regex_find(re, subject, groups, 4)) {
		snprintf(text, sizeof(text), "none");
	} else {
		for (size_t i = 0; i < 4; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%zd %zd", i ? " " : "",
					      (ssize_t)groups[i].start, (ssize_t)groups[i].end);
	}
	assert_string_equal(text, want);
	regex_free(re);
}

static void check_find(const char *pattern, const char *subject, const char *want)
{
	check_find_str(str_of(pattern), str_of(subject), want);
}

static void rejects(const char *pattern, const char *code_and_fragment)
{
	struct err e = { 0 };
	char want[500];

	assert_null(regex_compile(str_of(pattern), &e));
	snprintf(want, sizeof(want), "error parsing regexp: %s", code_and_fragment);
	assert_string_equal(e.text, want);
	assert_int_equal(e.kind, ERR_USAGE);
}

static void repeat(struct buf *b, const char *text, size_t n)
{
	while (n-- > 0)
		buf_puts(b, text);
}

TEST(error_texts_of_groups)
{
	rejects("(a", "missing closing ): `(a`");
	rejects("ab(c", "missing closing ): `ab(c`");
	rejects("a)", "unexpected ): `a)`");
	rejects("(?=a)", "invalid or unsupported Perl syntax: `(?=`");
	rejects("(?i", "invalid or unsupported Perl syntax: `(?i`");
	rejects("(?i-)", "invalid or unsupported Perl syntax: `(?i-)`");
	rejects("(?P=n)", "invalid or unsupported Perl syntax: `(?P`");
	rejects("(?P<n", "invalid named capture: `(?P<n`");
	rejects("(?P<n >a)", "invalid named capture: `(?P<n >`");
	rejects("(?<>a)", "invalid named capture: `(?<>`");
}

TEST(error_texts_of_repeats)
{
	rejects("*", "missing argument to repetition operator: `*`");
	rejects("a|*?", "missing argument to repetition operator: `*?`");
	rejects("(?i)+", "missing argument to repetition operator: `+`");
	rejects("{1}", "missing argument to repetition operator: `{1}`");
	rejects("a**", "invalid nested repetition operator: `**`");
	rejects("a+?*", "invalid nested repetition operator: `+?*`");
	rejects("a{2}{3}", "invalid nested repetition operator: `{2}{3}`");
	rejects("a{1001}?", "invalid repeat count: `{1001}`");
	rejects("a{99999999999}", "invalid repeat count: `{99999999999}`");
	rejects("a{3,2}", "invalid repeat count: `{3,2}`");
	rejects("((a{100}){10}){2}?", "invalid repeat count: `{2}?`");
}

TEST(error_texts_of_classes_and_escapes)
{
	rejects("x[abc", "missing closing ]: `[abc`");
	rejects("[]", "missing closing ]: `[]`");
	rejects("[z-a]", "invalid character class range: `z-a`");
	rejects("[[:foo:]]", "invalid character class range: `[:foo:]`");
	rejects("\\p{Foo}", "invalid character class range: `\\p{Foo}`");
	rejects("\\p{Foo", "invalid character class range: `\\p{Foo`");
	rejects("\\pX", "invalid character class range: `\\pX`");
	rejects("[a-\\d]", "invalid escape sequence: `\\d`");
	rejects("\\y", "invalid escape sequence: `\\y`");
	rejects("\\Z", "invalid escape sequence: `\\Z`");
	rejects("\\1", "invalid escape sequence: `\\1`");
	rejects("\\x{zz}", "invalid escape sequence: `\\x{z`");
	rejects("\\x{110000}", "invalid escape sequence: `\\x{110000`");
	rejects("a\\", "trailing backslash at end of expression: ``");
	rejects("a\xff", "invalid UTF-8: `\xff`");
	rejects("[\xff]", "invalid UTF-8: `\xff]`");
}

TEST(nesting_is_limited)
{
	struct buf b = { 0 };
	struct err e = { 0 };

	for (size_t depth = 999; depth <= 1000; depth++) {
		struct regex *re;

		b.n = 0;
		repeat(&b, "(", depth);
		repeat(&b, "a", 1);
		repeat(&b, ")", depth);
		re = regex_compile(buf_view(&b), &e);
		assert_int_equal(re != NULL, depth == 999);
		regex_free(re);
	}
	assert_non_null(strstr(e.text, "expression nests too deeply: `(((("));
	buf_release(&b);
}

TEST(size_is_limited)
{
	struct buf b = { 0 };
	struct err e = { 0 };

	repeat(&b, "a{1000}", 5000);
	assert_null(regex_compile(buf_view(&b), &e));
	assert_non_null(strstr(e.text, "expression too large: `a{1000}"));
	b.n = 0;
	repeat(&b, "[[:", 60000);
	assert_null(regex_compile(buf_view(&b), &e));
	assert_non_null(strstr(e.text, "missing closing ]: `[[:[[:"));
	buf_release(&b);
}

TEST(literals)
{
	matches("", "");
	matches("", "x");
	matches("main.main", "main.main");
	matches("\\Qa.b\\E", "xa.by");
	differs("\\Qa.b\\E", "axb");
	matches("a\\.b", "a.b");
	matches("{,2}", "{,2}");
	matches("a{,2}", "a{,2}");
	matches("]}-", "]}-");
	matches("\\x41\\x{42}\\103\\_", "ABC_");
	check_find("b", "abc", "1 2 -1 -1 -1 -1 -1 -1");
	assert_true(matches_str(STR("a\0b"), STR("xa\0by")));
	assert_false(matches_str(STR("a\0b"), STR("xa\0c")));
	assert_true(matches_str(STR("[\\x00]."), STR("\0b")));
}

TEST(anchors)
{
	matches("^a$", "a");
	differs("^a$", "a\n");
	differs("a$", "a\nb");
	matches("(?m)a$", "a\nb");
	matches("(?m)^$", "a\n");
	check_find("(?m)^$", "a\n", "2 2 -1 -1 -1 -1 -1 -1");
	differs("(?m)a\\z", "a\n");
	matches("\\Aab", "ab");
	differs("(?m)\\Ab", "a\nb");
	matches("^*a", "xa");
	matches("\\bfoo\\b", "a foo.");
	/* Words are of ASCII. */
	matches("\\bfoo\\b", "\u00e9foo");
	differs("\\Bfoo", "\u00e9foo");
}

TEST(flags)
{
	matches("(?i)AbC", "aBc");
	differs("(?i:a)b", "AB");
	matches("(?i:a)b", "Ab");
	matches("((?i)a)b", "Ab");
	differs("((?i)a)b", "AB");
	differs("(?i)(?-i)a", "A");
	differs("a.b", "a\nb");
	matches("(?s)a.b", "a\nb");
	matches("a.b", "a\rb");
	check_find("(?U)a+", "aaa", "0 1 -1 -1 -1 -1 -1 -1");
	check_find("(?U)a+?", "aaa", "0 3 -1 -1 -1 -1 -1 -1");
	matches("^a(?i)*b", "aab");
	matches("^a(?i)*b", "b");
}

TEST(case_folding)
{
	matches("(?i)k", "\u212a");
	matches("(?i)\u00df", "\u1e9e");
	matches("(?i)\\w", "\u017f");
	differs("\\w", "\u017f");
	differs("(?i)[^k]", "\u212a");
	differs("(?i)\\W", "\u212a");
	differs("(?i)[\\W]", "\u212a");
	matches("(?i)[x\\W]", "X");
	matches("(?i)[x\\W]", "-");
	differs("(?i)[^x\\W]", "X");
	matches("(?i)[^x\\W]", "a");
	matches("(?i)\\p{Lu}", "a");
	matches("(?i)\\p{Greek}", "\u00b5");
}

TEST(classes)
{
	matches("[]a]", "]");
	matches("[^]a]", "b");
	matches("[a-]", "-");
	matches("[^a]", "\n");
	matches("^[[:word:]]+$", "a_1");
	differs("[[:^alpha:]]", "abc");
	matches("[[:foo]", "f");
	differs("\\s", "\v");
	matches("[[:space:]]", "\v");
	matches("\\v", "\v");
	matches("^\\pL+$", "a\u00e9\u03b8");
	matches("\\p{Greek}", "\u03b8");
	matches("\\P{^Greek}", "\u03b8");
	differs("\\PL", "a");
	/* Not of the script Katakana, though used with it. */
	differs("\\p{Katakana}", "\u30fc");
	differs("[^\\x00-\\x{10FFFF}]", "a\u00e9");
	matches("[\\x00-\\x{10FFFF}]", "\U0010ffff");
	differs("\\x{d800}|[\\x{d800}-\\x{dfff}]", "a");
	differs("\\pC", "\u0378");
	matches("\\PC", "\u0378");
}

TEST(captures)
{
	check_find("(a+)(b)?", "xaac", "1 3 1 3 -1 -1 -1 -1");
	check_find("a|ab", "ab", "0 1 -1 -1 -1 -1 -1 -1");
	check_find("(a*)*", "b", "0 0 0 0 -1 -1 -1 -1");
	check_find("(|a)*", "aa", "0 0 0 0 -1 -1 -1 -1");
	check_find("(?P<x>a)(?<y>b)", "ab", "0 2 0 1 1 2 -1 -1");
	check_find("(?:(a)|b)*", "ab", "0 2 0 1 -1 -1 -1 -1");
	check_find("(a){0}b", "b", "0 1 -1 -1 -1 -1 -1 -1");
	check_find("x", "y", "none");
}

TEST(invalid_utf8_counts_as_replacement_characters)
{
	check_find("(.)b",
		   "a\xff\xfe"
		   "b",
		   "2 4 2 3 -1 -1 -1 -1");
	check_find("\\x{fffd}(b)|x",
		   "\xffz\xc3"
		   "b",
		   "2 4 3 4 -1 -1 -1 -1");
	matches("^...$", "\xe2\x82z");
	differs("^[[:ascii:]]*$", "ab\xff");
	assert_true(matches_str(STR("a.b"), STR("a\xff"
						"b")));
}

static void *match_often(void *re)
{
	size_t wrong = 0;

	for (int i = 0; i < 2000; i++) {
		wrong += !regex_match(re, STR("runtime.mallocgc"));
		wrong += regex_match(re, STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"));
	}
	return (void *)wrong;
}

TEST(threads_share_a_regex)
{
	struct regex *re = compile(STR("(a|aa)+$|m[a-o]+[g][c]"));
	pthread_t threads[4];

	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, match_often, re), 0);
	for (size_t i = 0; i < 4; i++) {
		void *wrong;

		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	regex_free(re);
}

/* Each of these would take PCRE2 alone longer than anyone waits. */
TEST(time_is_bounded)
{
	static const char *const never[] = {
		"(a+)+[cd]$",	 "(a|aa)+$",	       "(a*)*[xy]",  "(.*)(.*)(.*)(.*)(.*)(.*)[xy]",
		"a+a+[xy]",	 "(?i)a+a[xy]",	       "a.*a.*[xy]", "(?:a?){100}a{100}[xy]",
		"(\\pL|a)+\\pN", "((a|\u00e9)+)+[xy]",
	};
	struct buf b = { 0 };

	repeat(&b, "a", 20000);
	buf_char(&b, 'b');
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		assert_false(matches_str(str_of(never[i]), buf_view(&b)));
	check_find_str(STR("(a|aa)+(b)$"), buf_view(&b), "0 20001 19999 20000 20000 20001 -1 -1");
	/* Every one of the a's is tried both ways before the last one can be the x. */
	buf_puts(&b, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaax");
	check_find_str(STR("b((?:a|a)+y|(a)*)x"), buf_view(&b),
		       "20000 20053 20001 20052 20051 20052 -1 -1");
	buf_release(&b);
}
