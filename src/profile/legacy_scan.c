#include "profile/legacy_parse.h"

#include "base/number.h"
#include "base/utf8.h"

bool lines_next(struct lines *in)
{
	size_t n;

	in->line = (struct str){ "", 0 };
	if (in->is_too_long || !in->rest.n)
		return false;
	n = str_find_char(in->rest, '\n');
	if (n == STR_NONE)
		n = in->rest.n;
	if (n > LINE_MAX_BYTES) {
		in->is_too_long = true;
		return false;
	}
	in->line = (struct str){ in->rest.p, n };
	in->rest = str_from(in->rest, n < in->rest.n ? n + 1 : n);
	if (n && in->line.p[n - 1] == '\r')
		in->line.n--;
	return true;
}

bool lines_check(const struct lines *in, struct err *e)
{
	return !in->is_too_long || err_set(e, ERR_LIMIT, "bufio.Scanner: token too long");
}

bool lines_next_content(struct lines *in)
{
	while (lines_next(in))
		if (!text_is_comment(in->line))
			return true;
	return false;
}

static bool is_unicode_space(uint32_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xa0 || c == 0x1680 ||
	       (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
	       c == 0x205f || c == 0x3000;
}

/* Bytes of the space that s ends with, or 0. */
static size_t last_space(struct str s)
{
	for (size_t n = 1; n <= 3 && n <= s.n; n++) {
		uint32_t c;

		if (((unsigned char)s.p[s.n - n] & 0xc0) == 0x80)
			continue;
		return utf8_decode(str_from(s, s.n - n), &c) == n && is_unicode_space(c) ? n : 0;
	}
	return 0;
}

struct str text_trim(struct str s)
{
	uint32_t c;
	size_t n;

	while (s.n) {
		n = utf8_decode(s, &c);
		if (!is_unicode_space(c))
			break;
		s = str_from(s, n);
	}
	while ((n = last_space(s)))
		s.n -= n;
	return s;
}

bool text_is_comment(struct str line)
{
	line = text_trim(line);
	return !line.n || line.p[0] == '#';
}

bool text_is_map_sentinel(struct str line)
{
	/* Sample lines have no M: one fast look instead of two searches. */
	if (str_find_char(line, 'M') == STR_NONE)
		return false;
	return str_contains(line, STR("--- Memory map: ---")) ||
	       str_contains(line, STR("MAPPED_LIBRARIES:"));
}

bool cursor_literal(struct cursor *c, struct str want)
{
	if (!str_has_prefix(str_from(c->s, c->at), want))
		return false;
	c->at += want.n;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ';
}

static bool is_address_list(char c)
{
	return c == ' ' || c == 'x' || is_digit(c) || (c >= 'a' && c <= 'f');
}

static inline struct str run_of(struct cursor *c, bool (*is_in)(char))
{
	size_t from = c->at;

	while (c->at < c->s.n && is_in(c->s.p[c->at]))
		c->at++;
	return (struct str){ c->s.p + from, c->at - from };
}

struct str cursor_blanks(struct cursor *c)
{
	return run_of(c, is_blank);
}

struct str cursor_spaces(struct cursor *c)
{
	return run_of(c, is_regex_space);
}

struct str cursor_digits(struct cursor *c)
{
	return run_of(c, is_digit);
}

struct str cursor_hex(struct cursor *c)
{
	return run_of(c, is_hex_digit);
}

struct str cursor_address_list(struct cursor *c)
{
	return run_of(c, is_address_list);
}

bool sample_int(struct str digits, struct str line, int64_t *out, struct err *e)
{
	enum number_result why = number_parse_int(digits, 10, out);

	if (why == NUMBER_OK)
		return true;
	number_error(e, why, "ParseInt", digits);
	e->kind = ERR_FORMAT;
	return err_wrap(e, "malformed sample: %.*s", STR_ARG(line));
}
