#include "test.h"

#include "profile/profile.h"
#include "symbol/symbol.h"

static void check(const char *mangled, enum demangle_mode mode, const char *want)
{
	struct buf out = { 0 };
	bool ok = demangle_name(&out, str_of(mangled), mode);

	buf_char(&out, '\0');
	assert_string_equal(out.p, want);
	assert_int_equal(ok, want[0] != '\0');
	buf_release(&out);
}

TEST(modes_drop_what_they_say)
{
	check("_ZN3foo3barEi", DEMANGLE_DEFAULT, "foo::bar");
	check("_ZN3foo3barEi", DEMANGLE_FULL, "foo::bar(int)");
	check("_ZNSaIcEC1ERKS_", DEMANGLE_DEFAULT, "std::allocator::allocator");
	check("_ZNSaIcEC1ERKS_", DEMANGLE_TEMPLATES, "std::allocator<char>::allocator");
	check("_ZNSaIcEC1ERKS_", DEMANGLE_FULL,
	      "std::allocator<char>::allocator(std::allocator<char> const&)");
	check("_ZNSaIcEC1ERKS_", DEMANGLE_NONE, "");
	check("_ZSt4moveIRSsEONSt16remove_referenceIT_E4typeEOS2_", DEMANGLE_DEFAULT, "std::move");
	check("_ZNK1A3getEv", DEMANGLE_DEFAULT, "A::get");
	check("_ZNK1A3getEv", DEMANGLE_FULL, "A::get() const");
	check("_ZTV1AIiE", DEMANGLE_DEFAULT, "vtable for A");
	check("_ZThn8_N1A1fEi", DEMANGLE_DEFAULT, "non-virtual thunk to A::f(int)");
}

TEST(ready_made_text_of_std_string_loses_its_arguments)
{
	check("_ZNSsC1EPKcRKSaIcE", DEMANGLE_DEFAULT, "std::basic_string::basic_string");
	check("_ZNSsC1EPKcRKSaIcE", DEMANGLE_TEMPLATES,
	      "std::basic_string<char, std::char_traits<char>, std::allocator<char> >"
	      "::basic_string");
}

TEST(clone_suffixes_are_dropped)
{
	check("_Z3fooi.isra.0", DEMANGLE_DEFAULT, "foo");
	check("_Z3fooi.isra.0.cold", DEMANGLE_FULL, "foo(int)");
	check("_Z3fooi.isra.0.cold", DEMANGLE_CLONES, "foo(int) [clone .isra.0] [clone .cold]");
}

TEST(enclosing_functions_lose_their_parameters)
{
	check("_ZZN1A1fIiEEvT_ENKUlS1_E_clEi", DEMANGLE_DEFAULT,
	      "A::f()::{lambda(auto:1)#1}::operator()");
	check("_ZZN1A1fIiEEvT_ENKUlS1_E_clEi", DEMANGLE_TEMPLATES,
	      "A::f<int>()::{lambda(auto:1)#1}::operator()");
	check("_ZZNK1A1fEiE1x", DEMANGLE_DEFAULT, "A::f() const::x");
	check("_ZZNK1A1fEiE1x", DEMANGLE_FULL, "A::f(int) const::x");
	check("_ZGVZ3fooiE1x", DEMANGLE_DEFAULT, "guard variable for foo()::x");
}

TEST(conversion_to_a_dropped_template_argument)
{
	check("_ZN1AcvT_IiEEv", DEMANGLE_DEFAULT, "A::operator int");
	check("_ZN1AcvPT_IiEEv", DEMANGLE_DEFAULT, "A::operator int*");
	check("_ZN1Acv1BIT_EIiEEv", DEMANGLE_DEFAULT, "A::operator B");
	/* The argument is the operator itself. */
	check("_ZN1AcvT_IS0_EEv", DEMANGLE_DEFAULT, "");
	check("_ZN1AcvT5_IiEEv", DEMANGLE_DEFAULT, "");
}

TEST(globals_and_blocks)
{
	check("_GLOBAL__I__Z3fooi", DEMANGLE_DEFAULT, "global constructors keyed to foo(int)");
	check("_GLOBAL__D_foo", DEMANGLE_DEFAULT, "global destructors keyed to _D_foo");
	check("_GLOBAL__sub_I_foo", DEMANGLE_DEFAULT, "");
	check("___Z3fooi_block_invoke", DEMANGLE_DEFAULT, "invocation function for block in foo");
	check("___Z3fooi_block_invoke_2", DEMANGLE_FULL,
	      "invocation function for block in foo(int)");
	check("___Z3fooi_block_invokeX", DEMANGLE_FULL, "");
}

TEST(rust)
{
	check("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE", DEMANGLE_DEFAULT,
	      "core::fmt::Formatter::write_str");
	check("_RNvCs1234_7mycrate3foo", DEMANGLE_DEFAULT, "mycrate::foo");
	check("_RNvCs1234_7mycrate3foo.llvm.123", DEMANGLE_DEFAULT, "mycrate::foo");
	check("_RINvNtCs1_4core3mem4swapmE", DEMANGLE_DEFAULT, "core::mem::swap::<u32>");
	check("_Rotten", DEMANGLE_DEFAULT, "");
}

TEST(other_names_are_left_alone)
{
	check("main.(*T[...]).f", DEMANGLE_DEFAULT, "");
	check("_start", DEMANGLE_DEFAULT, "");
	check("_Z", DEMANGLE_DEFAULT, "");
	check("_", DEMANGLE_DEFAULT, "");
	check("", DEMANGLE_DEFAULT, "");
}

/* Each template has the previous one as both of its arguments: 2^60 names. */
TEST(exponential_names_are_refused)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	struct buf name = { 0 }, out = { 0 };

	buf_puts(&name, "_Z1fI1aIiiE");
	for (int i = 0; i < 60; i++) {
		int previous = 1 + 2 * i;
		char s[] = { 'S', digits[previous / 36], digits[previous % 36], '_', '\0' };

		buf_printf(&name, "1bI%s%sE", s, s);
	}
	buf_puts(&name, "Ev");
	assert_true(demangle_name(&out, buf_view(&name), DEMANGLE_DEFAULT));
	assert_true(str_eq(buf_view(&out), STR("f")));
	assert_false(demangle_name(&out, buf_view(&name), DEMANGLE_TEMPLATES));
	assert_false(demangle_name(&out, buf_view(&name), DEMANGLE_FULL));
	assert_int_equal(out.n, 1);
	buf_release(&name);
	buf_release(&out);
}

TEST(deep_names_are_refused)
{
	static const char *const parts[] = { "P", "I1a", "Z", "DTcl", "F", "J", "Dw", "N1aI" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct buf name = { 0 }, out = { 0 };

		buf_puts(&name, "_Z1f");
		while (name.n < 15000)
			buf_puts(&name, parts[i]);
		demangle_name(&out, buf_view(&name), DEMANGLE_FULL);
		buf_release(&name);
		buf_release(&out);
	}
}

struct fixture {
	struct arena arena;
	struct strings strings;
	struct profile p;
	struct function function;
};

static const char *readable(const char *name, const char *system_name, enum demangle_mode mode,
			    bool force)
{
	static char result[200];
	struct fixture f = { 0 };
	struct str s;

	strings_init(&f.strings);
	f.function.name = strings_add(&f.strings, str_of(name));
	f.function.system_name = strings_add(&f.strings, str_of(system_name));
	f.p.strings = &f.strings;
	f.p.functions = &f.function;
	f.p.nfunctions = 1;
	profile_demangle(&f.arena, &f.p, mode, force);
	s = profile_str(&f.p, f.p.functions[0].name);
	assert_true(s.n < sizeof(result));
	memcpy(result, s.p, s.n);
	result[s.n] = '\0';
	/* The table that came in is shared with others. */
	s = profile_str(&f.p, f.function.name);
	assert_true(str_eq(s, str_of(name)));
	arena_release(&f.arena);
	strings_release(&f.strings);
	return result;
}

static const char *stripped(const char *name)
{
	return readable(name, name, DEMANGLE_DEFAULT, false);
}

TEST(functions_that_have_a_name_of_their_own_keep_it)
{
	assert_string_equal(readable("x", "_Z3foov", DEMANGLE_DEFAULT, false), "x");
	assert_string_equal(readable("x", "_Z3foov", DEMANGLE_DEFAULT, true), "foo");
	assert_string_equal(readable("x", "_Z3foov", DEMANGLE_NONE, true), "_Z3foov");
	assert_string_equal(readable("x", "_Z3foov", DEMANGLE_NONE, false), "x");
	assert_string_equal(readable("x", "", DEMANGLE_FULL, true), "x");
	assert_string_equal(readable("", "_Z3foov", DEMANGLE_FULL, false), "foo()");
	assert_string_equal(readable("", "plain", DEMANGLE_DEFAULT, false), "plain");
}

TEST(macos_names_have_one_underscore_more)
{
	assert_string_equal(stripped("__ZdaPv"), "operator delete[]");
}

TEST(text_that_looks_like_cxx_is_stripped)
{
	assert_string_equal(stripped("foo::baz<double>(double)"), "foo::baz");
	assert_string_equal(readable("a::b<c>(d)", "a::b<c>(d)", DEMANGLE_TEMPLATES, false),
			    "a::b<c>");
	assert_string_equal(readable("a::b<c>(d)", "a::b<c>(d)", DEMANGLE_FULL, false),
			    "a::b<c>(d)");
	assert_string_equal(stripped("foo(int (*)(char, std::vector<int>))::{lambda(auto:1)#1}"),
			    "foo::{lambda#1}");
	assert_string_equal(stripped("a<b & c>d"), "ad");
	assert_string_equal(stripped("a::b)c(d)"), "a::b)c(d)");
	assert_string_equal(stripped("a::(x)b)c(d)"), "a::b)c(d)");
	assert_string_equal(stripped("a::f(x"), "a::f(x");
	assert_string_equal(stripped("operator<<"), "operator<<");
}

TEST(text_of_other_languages_is_not)
{
	assert_string_equal(stripped("example.com/foo.(*Bar[...]).Bat"),
			    "example.com/foo.(*Bar[...]).Bat");
	assert_string_equal(stripped("java.lang.Float.<init>"), "java.lang.Float.<init>");
	assert_string_equal(stripped("operator()"), "operator()");
	assert_string_equal(stripped("main.f(x)"), "main.f(x)");
}

TEST(a_conversion_that_leads_back_to_itself_is_left_alone)
{
	struct buf out = { 0 };

	assert_false(demangle_name(
		&out,
		STR("_ZcvRRRRRRRRRRRPRRRRRRRRRRDpRRRRRRRRT_IZTh5_cv6ZRcvcvZcvT_cvT_Ecv"
		    "T_EscT_EcvT_ET_EcvT_EscEcvT_EE"),
		DEMANGLE_DEFAULT));
	assert_int_equal(out.n, 0);
	buf_release(&out);
}
