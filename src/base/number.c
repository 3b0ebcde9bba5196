#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "base/regex.h"
#include "base/utf8.h"

static int lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : (unsigned char)c;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex_digit(char c)
{
	return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'f');
}

static bool take_sign(struct str *s)
{
	bool negative = s->n > 0 && s->p[0] == '-';

	if (negative || (s->n > 0 && s->p[0] == '+'))
		*s = str_from(*s, 1);
	return negative;
}

/* 16, 8 or 2 for 0x, 0o or 0b; 0 if there is no such prefix. */
static unsigned prefix_base(struct str s)
{
	if (s.n < 2 || s.p[0] != '0')
		return 0;
	switch (lower(s.p[1])) {
	case 'x':
		return 16;
	case 'o':
		return 8;
	case 'b':
		return 2;
	}
	return 0;
}

/* An underscore must have a digit, or the base prefix, before it and a digit after it. */
static bool underscores_ok(struct str unsigned_number)
{
	struct str s = unsigned_number;
	unsigned base = prefix_base(s);
	bool after_digit = base != 0, after_underscore = false;

	for (size_t i = base ? 2 : 0; i < s.n; i++) {
		bool digit = is_digit(s.p[i]) || (base == 16 && is_hex_digit(s.p[i]));

		if (s.p[i] == '_' ? !after_digit : after_underscore && !digit)
			return false;
		after_digit = digit;
		after_underscore = s.p[i] == '_';
	}
	return !after_underscore;
}

static unsigned digit_value(char c)
{
	if (is_digit(c))
		return (unsigned)(c - '0');
	if (lower(c) >= 'a' && lower(c) <= 'z')
		return (unsigned)(lower(c) - 'a') + 10;
	return 255;
}

static enum number_result parse_digits(struct str s, unsigned base, bool underscores, uint64_t *out)
{
	*out = 0;
	for (size_t i = 0; i < s.n; i++) {
		unsigned digit = digit_value(s.p[i]);

		if (underscores && s.p[i] == '_')
			continue;
		if (digit >= base) {
			*out = 0;
			return NUMBER_SYNTAX;
		}
		if (__builtin_mul_overflow(*out, base, out) ||
		    __builtin_add_overflow(*out, digit, out)) {
			*out = UINT64_MAX;
			return NUMBER_RANGE;
		}
	}
	return NUMBER_OK;
}

enum number_result number_parse_uint(struct str s, unsigned base, uint64_t *out)
{
	struct str digits = s;
	enum number_result result;
	bool choose = base == 0;

	*out = 0;
	if (s.n == 0)
		return NUMBER_SYNTAX;
	if (choose) {
		/* A prefix without digits is no prefix: the 0 is then that of an octal number. */
		base = s.n >= 3 ? prefix_base(s) : 0;
		if (base) {
			digits = str_from(s, 2);
		} else if (s.p[0] == '0') {
			base = 8;
			digits = str_from(s, 1);
		} else {
			base = 10;
		}
	}
	result = parse_digits(digits, base, choose, out);
	if (result == NUMBER_OK && choose && !underscores_ok(s)) {
		*out = 0;
		result = NUMBER_SYNTAX;
	}
	return result;
}

enum number_result number_parse_int(struct str s, unsigned base, int64_t *out)
{
	bool negative = take_sign(&s);
	uint64_t limit = (uint64_t)INT64_MAX + negative, value;
	enum number_result result = number_parse_uint(s, base, &value);

	if (value > limit) {
		value = limit;
		result = NUMBER_RANGE;
	}
	*out = (int64_t)(negative ? 0 - value : value);
	return result;
}

static bool same_word(struct str s, const char *word)
{
	return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

static bool parse_special(struct str s, double *out)
{
	if (same_word(s, "nan")) {
		*out = NAN;
		return true;
	}
	*out = take_sign(&s) ? -INFINITY : INFINITY;
	return same_word(s, "inf") || same_word(s, "infinity");
}

/* Length of the digits and underscores at the start of s; *found when a digit is among them. */
static size_t span_digits(struct str s, bool hex, bool *found)
{
	size_t i = 0;

	while (i < s.n && (s.p[i] == '_' || is_digit(s.p[i]) || (hex && is_hex_digit(s.p[i])))) {
		if (s.p[i] != '_')
			*found = true;
		i++;
	}
	return i;
}

static bool is_float(struct str s)
{
	bool hex = s.n > 2 && prefix_base(s) == 16, mantissa = false, exponent = false;
	struct str rest = str_from(s, hex ? 2 : 0);

	rest = str_from(rest, span_digits(rest, hex, &mantissa));
	if (rest.n > 0 && rest.p[0] == '.') {
		rest = str_from(rest, 1);
		rest = str_from(rest, span_digits(rest, hex, &mantissa));
	}
	if (!mantissa)
		return false;
	if (rest.n > 0 && lower(rest.p[0]) == (hex ? 'p' : 'e')) {
		rest = str_from(rest, 1);
		take_sign(&rest);
		if (rest.n == 0 || !is_digit(rest.p[0]))
			return false;
		rest = str_from(rest, span_digits(rest, false, &exponent));
	}
	return rest.n == 0 && (exponent || !hex) && underscores_ok(s);
}

enum number_result number_parse_float(struct str s, double *out)
{
	struct buf text = { 0 };
	struct str digits = s;

	if (parse_special(s, out))
		return NUMBER_OK;
	*out = 0;
	take_sign(&digits);
	if (digits.n == 0 || !is_float(digits))
		return NUMBER_SYNTAX;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] != '_')
			buf_char(&text, s.p[i]);
	}
	buf_char(&text, '\0');
	/* What is_float lets pass is a number to strtod too, so there is no end to check. */
	*out = strtod(text.p, NULL);
	buf_release(&text);
	return isinf(*out) ? NUMBER_RANGE : NUMBER_OK;
}

enum number_result number_parse_bool(struct str s, bool *out)
{
	static const char *const words[2][6] = {
		{ "0", "f", "F", "false", "FALSE", "False" },
		{ "1", "t", "T", "true", "TRUE", "True" },
	};

	for (size_t value = 0; value < 2; value++) {
		for (size_t i = 0; i < 6; i++) {
			if (str_eq(s, str_of(words[value][i]))) {
				*out = value == 1;
				return NUMBER_OK;
			}
		}
	}
	*out = false;
	return NUMBER_SYNTAX;
}

bool number_error(struct err *e, enum number_result why, const char *function, struct str s)
{
	struct buf quoted = { 0 };

	quote_go(&quoted, s);
	err_set(e, ERR_USAGE, "strconv.%s: parsing %.*s: %s", function, STR_ARG(buf_view(&quoted)),
		why == NUMBER_RANGE ? "value out of range" : "invalid syntax");
	buf_release(&quoted);
	return false;
}

static void quote_ascii(struct buf *out, char c)
{
	static const char letters[] = "abtnvfr"; /* of the codes 7 to 13 */

	if (c == '"' || c == '\\') {
		buf_char(out, '\\');
		buf_char(out, c);
	} else if (c >= ' ' && c <= '~') {
		buf_char(out, c);
	} else if (c >= '\a' && c <= '\r') {
		buf_char(out, '\\');
		buf_char(out, letters[c - '\a']);
	} else {
		buf_printf(out, "\\x%02x", (unsigned)c);
	}
}

static void quote_rune(struct buf *out, struct str bytes, uint32_t rune,
		       const struct regex *printable)
{
	if (bytes.n == 1)
		buf_printf(out, "\\x%02x", (unsigned char)bytes.p[0]);
	else if (printable && regex_match(printable, bytes))
		buf_str(out, bytes);
	else
		buf_printf(out, rune < 0x10000 ? "\\u%04x" : "\\U%08x", rune);
}

void quote_go(struct buf *out, struct str s)
{
	struct regex *printable = NULL;
	struct err ignored;

	buf_char(out, '"');
	while (s.n > 0) {
		uint32_t rune;
		size_t used = utf8_decode(s, &rune);

		if (rune < 0x80) {
			quote_ascii(out, s.p[0]);
		} else {
			/* Made when first needed: most strings are ASCII. */
			if (!printable)
				printable = regex_compile(STR("[\\pL\\pM\\pN\\pP\\pS]"), &ignored);
			quote_rune(out, (struct str){ s.p, used }, rune, printable);
		}
		s = str_from(s, used);
	}
	buf_char(out, '"');
	regex_free(printable);
}
