#include "base/json.h"

#include <ctype.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "base/vec.h"

enum { MAX_DEPTH = 100 };

struct parser {
	struct arena *a;
	struct str text;
	size_t at;
	int depth;
	struct buf string; /* scratch */
	struct err *e;
};

static bool wrong(struct parser *p, const char *what)
{
	return err_set(p->e, ERR_FORMAT, "%s at byte %zu", what, p->at);
}

/* The next character that is no blank; 0 at the end. */
static char peek(struct parser *p)
{
	while (p->at < p->text.n && strchr(" \t\r\n", p->text.p[p->at]) && p->text.p[p->at])
		p->at++;
	return p->at < p->text.n ? p->text.p[p->at] : '\0';
}

static bool take(struct parser *p, char c)
{
	if (peek(p) != c)
		return false;
	p->at++;
	return true;
}

static bool take_word(struct parser *p, struct str word)
{
	if (!str_has_prefix(str_from(p->text, p->at), word))
		return wrong(p, "unexpected character");
	p->at += word.n;
	return true;
}

/* ---- strings */

static bool take_hex(struct parser *p, uint32_t *out)
{
	*out = 0;
	for (int i = 0; i < 4; i++, p->at++) {
		unsigned char c = p->at < p->text.n ? (unsigned char)p->text.p[p->at] : 0;

		if (!isxdigit(c))
			return wrong(p, "not four hexadecimal digits");
		*out = *out * 16 + (uint32_t)(isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
	}
	return true;
}

static void put_rune(struct buf *out, uint32_t rune)
{
	char *at = buf_room(out, UTF8_BYTES);

	out->n += utf8_encode(at, rune);
}

/* After \u. A half of a pair without the other becomes U+FFFD. */
static bool take_rune(struct parser *p)
{
	uint32_t rune, low;

	if (!take_hex(p, &rune))
		return false;
	if (rune >= 0xd800 && rune < 0xdc00 &&
	    str_has_prefix(str_from(p->text, p->at), STR("\\u"))) {
		p->at += 2;
		if (!take_hex(p, &low))
			return false;
		if (low >= 0xdc00 && low < 0xe000) {
			rune = 0x10000 + ((rune - 0xd800) << 10) + (low - 0xdc00);
		} else {
			put_rune(&p->string, UTF8_INVALID);
			rune = low;
		}
	}
	put_rune(&p->string, rune >= 0xd800 && rune < 0xe000 ? UTF8_INVALID : rune);
	return true;
}

static bool take_escape(struct parser *p)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	char c = p->at < p->text.n ? p->text.p[p->at] : '\0';
	const char *found = c ? strchr(from, c) : NULL;

	p->at++;
	if (c == 'u')
		return take_rune(p);
	if (!found)
		return wrong(p, "unknown escape");
	buf_char(&p->string, to[found - from]);
	return true;
}

static bool parse_string(struct parser *p, struct str *out)
{
	if (!take(p, '"'))
		return wrong(p, "a string is missing");
	p->string.n = 0;
	for (;;) {
		char c = p->at < p->text.n ? p->text.p[p->at] : '\0';

		if (p->at >= p->text.n || (unsigned char)c < 0x20)
			return wrong(p, "a string does not end");
		p->at++;
		if (c == '"')
			break;
		if (c != '\\')
			buf_char(&p->string, c);
		else if (!take_escape(p))
			return false;
	}
	*out = (struct str){ arena_copy(p->a, p->string.p, p->string.n), p->string.n };
	return true;
}

/* ---- values */

static bool parse_value(struct parser *p, struct json *out);

static bool parse_number(struct parser *p, struct json *out)
{
	size_t start = p->at;

	while (p->at < p->text.n && p->text.p[p->at] && strchr("+-.0123456789eE", p->text.p[p->at]))
		p->at++;
	out->type = JSON_NUMBER;
	out->text = (struct str){ p->text.p + start, p->at - start };
	return out->text.n || wrong(p, "unexpected character");
}

static bool parse_list(struct parser *p, struct json *out, bool has_names)
{
	vec(struct json) values = { 0 };
	vec(struct str) names = { 0 };
	char end = has_names ? '}' : ']';
	bool ok = ++p->depth <= MAX_DEPTH || wrong(p, "nested too deeply");

	p->at++;
	out->type = has_names ? JSON_OBJECT : JSON_ARRAY;
	for (bool more = ok && !take(p, end); more;) {
		struct json value = { 0 };
		struct str name = { 0 };

		ok = (!has_names ||
		      (parse_string(p, &name) && (take(p, ':') || wrong(p, "a : is missing")))) &&
		     parse_value(p, &value);
		vec_push(&values, value);
		vec_push(&names, name);
		more = ok && take(p, ',');
		if (ok && !more)
			ok = take(p, end) || wrong(p, "a , is missing");
	}
	p->depth--;
	out->n = values.n;
	out->at = vec_adopt(p->a, &values);
	out->names = vec_adopt(p->a, &names);
	return ok;
}

static bool parse_value(struct parser *p, struct json *out)
{
	char c = peek(p);

	*out = (struct json){ 0 };
	switch (c) {
	case '{':
	case '[':
		return parse_list(p, out, c == '{');
	case '"':
		out->type = JSON_STRING;
		return parse_string(p, &out->text);
	case 't':
	case 'f':
		out->type = JSON_BOOL;
		out->is_true = c == 't';
		return take_word(p, c == 't' ? STR("true") : STR("false"));
	case 'n':
		return take_word(p, STR("null"));
	default:
		return parse_number(p, out);
	}
}

bool json_parse(struct arena *a, struct str text, struct json *out, struct err *e)
{
	struct parser p = { .a = a, .text = text, .e = e };
	bool ok = parse_value(&p, out);

	if (ok && (peek(&p) || p.at < p.text.n))
		ok = wrong(&p, "there is more");
	buf_release(&p.string);
	return ok;
}

const struct json *json_member(const struct json *object, const char *name)
{
	for (size_t i = object->type == JSON_OBJECT ? object->n : 0; i-- > 0;)
		if (str_eq(object->names[i], str_of(name)))
			return &object->at[i];
	return NULL;
}
