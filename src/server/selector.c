#include "server/selector.h"

#include <ctype.h>
#include <stdio.h>

#include "base/utf8.h"

struct parser {
	struct selector *s;
	struct arena *a;
	struct str text;
	size_t at;
	bool in_braces;
	struct err *e;
};

static const char *const ops[] = {
	[STORE_EQUAL] = "=", [STORE_NOT_EQUAL] = "!=", [STORE_LIKE] = "=~", [STORE_NOT_LIKE] = "!~"
};

/* What stands at a place, for errors: "x", or "the end". */
static const char *found(struct parser *p, size_t at)
{
	struct str rest = str_from(p->text, at);
	struct buf out = { 0 };
	const char *text;
	uint32_t rune;

	if (!rest.n)
		return "the end";
	rest.n = utf8_decode(rest, &rune);
	if (rune < ' ' || rune == UTF8_INVALID)
		buf_printf(&out, "the byte 0x%02x", (unsigned char)*rest.p);
	else
		buf_printf(&out, "'%.*s'", STR_ARG(rest));
	text = str_dup(p->a, buf_view(&out));
	buf_release(&out);
	return text;
}

/* Columns count from 1. */
static bool fail_at(struct parser *p, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static bool fail_at(struct parser *p, size_t at, const char *fmt, ...)
{
	struct buf out = { 0 };
	char why[400];
	size_t from = at > 30 ? at - 30 : 0;
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	buf_printf(&out, "selector, column %zu", at + 1);
	if (at) {
		buf_printf(&out, ", after \"%s", from ? "..." : "");
		buf_str(&out, (struct str){ p->text.p + from, at - from });
		buf_char(&out, '"');
	}
	buf_printf(&out, ": %s", why);
	err_set(p->e, ERR_USAGE, "%.*s", STR_ARG(buf_view(&out)));
	buf_release(&out);
	return false;
}

static void skip_blanks(struct parser *p)
{
	while (p->at < p->text.n && isspace((unsigned char)p->text.p[p->at]))
		p->at++;
}

static bool is_at(const struct parser *p, char c)
{
	return p->at < p->text.n && p->text.p[p->at] == c;
}

static bool at_end(const struct parser *p)
{
	return p->in_braces ? is_at(p, '}') : p->at == p->text.n;
}

/* ---- text in quotes */

/* The number that `n` hexadecimal digits after an escape's letter make. */
static bool take_hex(struct parser *p, size_t n, uint32_t *out)
{
	*out = 0;
	for (size_t i = 0; i < n; i++, p->at++) {
		char c = p->at < p->text.n ? p->text.p[p->at] : 0;

		if (!isxdigit((unsigned char)c))
			return fail_at(p, p->at, "%zu hexadecimal digits are missing", n - i);
		*out = *out * 16 +
		       (uint32_t)(isdigit((unsigned char)c) ? c - '0' : (c | 32) - 'a' + 10);
	}
	return true;
}

static bool take_rune(struct parser *p, size_t ndigits, struct buf *out)
{
	size_t start = p->at - 2;
	uint32_t rune;

	if (!take_hex(p, ndigits, &rune))
		return false;
	if (rune >= 0xd800 && rune <= 0xdfff)
		return fail_at(p, start, "\\u%04x is half of a character", rune);
	if (rune > 0x10ffff)
		return fail_at(p, start, "\\U%08x is no character", rune);
	out->n += utf8_encode(buf_room(out, UTF8_BYTES), rune);
	return true;
}

static bool take_octal(struct parser *p, struct buf *out)
{
	unsigned byte = 0;

	for (size_t i = 0; i < 3; i++, p->at++) {
		char c = p->at < p->text.n ? p->text.p[p->at] : 0;

		if (c < '0' || c > '7')
			return fail_at(p, p->at, "%zu octal digits are missing", 3 - i);
		byte = byte * 8 + (unsigned)(c - '0');
	}
	buf_char(out, (char)byte);
	return true;
}

static bool take_escape(struct parser *p, struct buf *out)
{
	static const char letters[] = "\\\"'ntrabfv", meant[] = "\\\"'\n\t\r\a\b\f\v";
	char c = p->at < p->text.n ? p->text.p[p->at++] : 0;
	const char *letter = c ? strchr(letters, c) : NULL;
	uint32_t byte;

	if (letter) {
		buf_char(out, meant[letter - letters]);
		return true;
	}
	if (c == 'u' || c == 'U')
		return take_rune(p, c == 'u' ? 4 : 8, out);
	if (c >= '0' && c <= '3') {
		p->at--;
		return take_octal(p, out);
	}
	if (c != 'x') {
		p->at -= c != 0;
		return fail_at(p, p->at, "a backslash before %s means nothing; write \\\\ for one",
			       found(p, p->at));
	}
	if (!take_hex(p, 2, &byte))
		return false;
	buf_char(out, (char)byte);
	return true;
}

static bool take_escaped(struct parser *p, char quote, struct buf *out)
{
	while (p->at < p->text.n) {
		char c = p->text.p[p->at++];

		if (c == quote)
			return true;
		if (c != '\\' || quote == '`')
			buf_char(out, c);
		else if (!take_escape(p, out))
			return false;
	}
	return fail_at(p, p->at, "the %c that ends the text is missing", quote);
}

static bool take_quoted(struct parser *p, struct str *out)
{
	struct buf bytes = { 0 };
	bool ok = take_escaped(p, p->text.p[p->at++], &bytes);

	*out = (struct str){ arena_copy(p->a, bytes.p, bytes.n), bytes.n };
	buf_release(&bytes);
	return ok;
}

/* ---- conditions */

/* `ends` end it, and the end of all does. */
static struct str take_bare(struct parser *p, const char *ends)
{
	size_t start = p->at;

	while (p->at < p->text.n && (!p->text.p[p->at] || !strchr(ends, p->text.p[p->at])))
		p->at++;
	return str_trim((struct str){ p->text.p + start, p->at - start });
}

static bool is_quote(const struct parser *p)
{
	return is_at(p, '"') || is_at(p, '`') || is_at(p, '\'');
}

static bool take_name(struct parser *p, struct str *name)
{
	size_t start = p->at;

	if (is_quote(p))
		return take_quoted(p, name);
	*name = take_bare(p, "=!~<>,{}\"`");
	if (!name->n)
		return fail_at(p, start, "a name is missing before %s", found(p, start));
	return true;
}

static bool take_op(struct parser *p, struct str name, enum store_match *op)
{
	struct str rest;

	skip_blanks(p);
	rest = str_from(p->text, p->at);
	for (size_t i = sizeof(ops) / sizeof(*ops); i-- > 0;) {
		if (!str_has_prefix(rest, str_of(ops[i])))
			continue;
		*op = (enum store_match)i;
		p->at += strlen(ops[i]);
		return true;
	}
	return fail_at(p, p->at, "one of = != =~ !~ must follow the name %.*s, not %s",
		       STR_ARG(name), found(p, p->at));
}

static bool take_value(struct parser *p, struct str *value)
{
	skip_blanks(p);
	if (is_quote(p))
		return take_quoted(p, value);
	*value = take_bare(p, p->in_braces ? ",}" : ",");
	return true;
}

/* The whole value must match. What is wrong with a pattern is told of it as it was written. */
static bool compile(struct parser *p, size_t at, struct store_matcher *m)
{
	struct err why = { 0 };
	struct regex *re = regex_compile(m->value, &why);
	struct buf pattern = { 0 };

	regex_free(re);
	if (!re)
		return fail_at(p, at, "%s", why.text);
	buf_puts(&pattern, "^(?s:");
	buf_str(&pattern, m->value);
	buf_puts(&pattern, ")$");
	re = regex_compile(buf_view(&pattern), &why);
	buf_release(&pattern);
	if (!re)
		return fail_at(p, at, "%s", why.text);
	vec_push(&p->s->regexes, re);
	m->regex = re;
	return true;
}

static bool take_matcher(struct parser *p)
{
	struct store_matcher m = { 0 };
	size_t start = p->at, value;

	if (!take_name(p, &m.name) || !take_op(p, m.name, &m.op))
		return false;
	skip_blanks(p);
	value = p->at;
	if (!take_value(p, &m.value))
		return false;
	if ((m.op == STORE_LIKE || m.op == STORE_NOT_LIKE) && !compile(p, value, &m))
		return false;
	if (p->s->matchers.n == SELECTOR_MAX_MATCHERS)
		return fail_at(p, start, "more than %d conditions", SELECTOR_MAX_MATCHERS);
	vec_push(&p->s->matchers, m);
	return true;
}

static bool take_matchers(struct parser *p)
{
	for (skip_blanks(p); !at_end(p); skip_blanks(p)) {
		if (!take_matcher(p))
			return false;
		skip_blanks(p);
		if (at_end(p))
			return true;
		if (!is_at(p, ','))
			return fail_at(p, p->at, "a comma%s must follow, not %s",
				       p->in_braces ? " or }" : "", found(p, p->at));
		p->at++;
	}
	return true;
}

bool selector_parse(struct selector *s, struct arena *a, struct str text, struct err *e)
{
	struct parser p = { .s = s, .a = a, .text = text, .e = e };

	if (text.n > SELECTOR_MAX_BYTES)
		return err_set(e, ERR_USAGE, "selector of %zu bytes: at most %d are taken", text.n,
			       SELECTOR_MAX_BYTES);
	skip_blanks(&p);
	p.in_braces = is_at(&p, '{');
	p.at += p.in_braces;
	if (!take_matchers(&p))
		return false;
	p.at += p.in_braces;
	skip_blanks(&p);
	if (p.at < text.n)
		return fail_at(&p, p.at, "nothing may follow the }, but there is %s",
			       found(&p, p.at));
	return true;
}

void selector_add_equal(struct selector *s, struct str name, struct str value)
{
	vec_push(&s->matchers,
		 (struct store_matcher){ .name = name, .op = STORE_EQUAL, .value = value });
}

/* ---- printing */

static void print_quoted(struct buf *out, struct str text)
{
	buf_char(out, '"');
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (c == '"' || c == '\\')
			buf_char(out, '\\');
		if (c < ' ')
			buf_printf(out, "\\x%02x", c);
		else
			buf_char(out, (char)c);
	}
	buf_char(out, '"');
}

static void print_name(struct buf *out, struct str name)
{
	bool is_plain = name.n;

	for (size_t i = 0; i < name.n; i++)
		is_plain &= name.p[i] > ' ' && !strchr("=!~<>,{}\"'`\\", name.p[i]);
	if (is_plain)
		buf_str(out, name);
	else
		print_quoted(out, name);
}

void selector_print(struct buf *out, const struct selector *s)
{
	buf_char(out, '{');
	for (size_t i = 0; i < s->matchers.n; i++) {
		const struct store_matcher *m = &s->matchers.at[i];

		buf_puts(out, i ? ", " : "");
		print_name(out, m->name);
		buf_puts(out, ops[m->op]);
		print_quoted(out, m->value);
	}
	buf_char(out, '}');
}

void selector_release(struct selector *s)
{
	for (size_t i = 0; i < s->regexes.n; i++)
		regex_free(s->regexes.at[i]);
	vec_release(&s->regexes);
	vec_release(&s->matchers);
}
