#include "base/json.h"

#include <ctype.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "base/vec.h"

enum { MAX_DEPTH = 100 };

bool json_wrong(struct json_reader *p, const char *what)
{
	if (!p->failed)
		err_set(p->e, ERR_FORMAT, "%s at byte %zu", what, p->at);
	p->failed = true;
	return false;
}

/* The next character that is no blank; 0 at the end. */
static char peek(struct json_reader *p)
{
	while (p->at < p->text.n && strchr(" \t\r\n", p->text.p[p->at]) && p->text.p[p->at])
		p->at++;
	return p->at < p->text.n ? p->text.p[p->at] : '\0';
}

static bool take(struct json_reader *p, char c)
{
	if (peek(p) != c)
		return false;
	p->at++;
	return true;
}

static bool take_word(struct json_reader *p, struct str word)
{
	if (!str_has_prefix(str_from(p->text, p->at), word))
		return json_wrong(p, "unexpected character");
	p->at += word.n;
	return true;
}

/* ---- strings */

static bool take_hex(struct json_reader *p, uint32_t *out)
{
	*out = 0;
	for (int i = 0; i < 4; i++, p->at++) {
		unsigned char c = p->at < p->text.n ? (unsigned char)p->text.p[p->at] : 0;

		if (!isxdigit(c))
			return json_wrong(p, "not four hexadecimal digits");
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
static bool take_rune(struct json_reader *p)
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

static bool take_escape(struct json_reader *p)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	char c = p->at < p->text.n ? p->text.p[p->at] : '\0';
	const char *found = c ? strchr(from, c) : NULL;

	p->at++;
	if (c == 'u')
		return take_rune(p);
	if (!found)
		return json_wrong(p, "unknown escape");
	buf_char(&p->string, to[found - from]);
	return true;
}

bool json_read_string(struct json_reader *p, struct str *out)
{
	if (!take(p, '"'))
		return json_wrong(p, "a string is missing");
	p->string.n = 0;
	for (;;) {
		char c = p->at < p->text.n ? p->text.p[p->at] : '\0';

		if (p->at >= p->text.n || (unsigned char)c < 0x20)
			return json_wrong(p, "a string does not end");
		p->at++;
		if (c == '"')
			break;
		if (c != '\\')
			buf_char(&p->string, c);
		else if (!take_escape(p))
			return false;
	}
	*out = buf_view(&p->string);
	return true;
}

/* ---- values */

void json_reader_init(struct json_reader *p, struct str text, struct err *e)
{
	*p = (struct json_reader){ .text = text, .e = e };
}

void json_reader_release(struct json_reader *p)
{
	buf_release(&p->string);
}

bool json_peek(struct json_reader *p, enum json_type *type)
{
	static const char firsts[] = "{[\"tfn";
	static const enum json_type types[] = { JSON_OBJECT, JSON_ARRAY, JSON_STRING,
						JSON_BOOL,   JSON_BOOL,	 JSON_NULL };
	char c = peek(p);
	const char *found = c ? strchr(firsts, c) : NULL;

	*type = found ? types[found - firsts] : JSON_NUMBER;
	return !p->failed && p->at < p->text.n;
}

bool json_open(struct json_reader *p, char bracket)
{
	if (p->failed || !take(p, bracket))
		return json_wrong(p, bracket == '{' ? "an object is missing" : "a list is missing");
	if (++p->depth > MAX_DEPTH)
		return json_wrong(p, "nested too deeply");
	if (!take(p, bracket == '{' ? '}' : ']'))
		return true;
	p->depth--;
	return false;
}

bool json_more(struct json_reader *p, char end)
{
	if (p->failed)
		return false;
	if (take(p, ','))
		return true;
	p->depth--;
	return take(p, end) ? false : json_wrong(p, "a , is missing");
}

bool json_read_name(struct json_reader *p, struct str *name)
{
	return json_read_string(p, name) && (take(p, ':') || json_wrong(p, "a : is missing"));
}

bool json_read_number(struct json_reader *p, struct str *text)
{
	size_t start;

	peek(p);
	start = p->at;
	while (p->at < p->text.n && p->text.p[p->at] && strchr("+-.0123456789eE", p->text.p[p->at]))
		p->at++;
	*text = (struct str){ p->text.p + start, p->at - start };
	return text->n || json_wrong(p, "unexpected character");
}

bool json_read_bool(struct json_reader *p, bool *value)
{
	*value = peek(p) == 't';
	return take_word(p, *value ? STR("true") : STR("false"));
}

bool json_skip(struct json_reader *p)
{
	struct str ignored;
	enum json_type type;
	bool flag;

	if (!json_peek(p, &type))
		return json_wrong(p, "a value is missing");
	switch (type) {
	case JSON_NULL:
		return take_word(p, STR("null"));
	case JSON_BOOL:
		return json_read_bool(p, &flag);
	case JSON_NUMBER:
		return json_read_number(p, &ignored);
	case JSON_STRING:
		return json_read_string(p, &ignored);
	case JSON_ARRAY:
		for (bool more = json_open(p, '['); more; more = json_more(p, ']'))
			json_skip(p);
		return !p->failed;
	case JSON_OBJECT:
		for (bool more = json_open(p, '{'); more; more = json_more(p, '}'))
			if (json_read_name(p, &ignored))
				json_skip(p);
		return !p->failed;
	}
	return false;
}

bool json_finish(struct json_reader *p)
{
	return !p->failed && ((!peek(p) && p->at >= p->text.n) || json_wrong(p, "there is more"));
}

/* ---- trees */

static bool parse_value(struct arena *a, struct json_reader *p, struct json *out);

static struct str keep(struct arena *a, struct str s)
{
	return (struct str){ arena_copy(a, s.p, s.n), s.n };
}

static bool parse_list(struct arena *a, struct json_reader *p, struct json *out, bool has_names)
{
	vec(struct json) values = { 0 };
	vec(struct str) names = { 0 };
	bool more = json_open(p, has_names ? '{' : '[');

	for (; more; more = json_more(p, has_names ? '}' : ']')) {
		struct json value = { 0 };
		struct str name = { 0 };

		if ((has_names && !json_read_name(p, &name)) || p->failed)
			break;
		if (has_names)
			vec_push(&names, keep(a, name));
		parse_value(a, p, &value);
		vec_push(&values, value);
	}
	out->n = values.n;
	out->at = vec_adopt(a, &values);
	out->names = vec_adopt(a, &names);
	return !p->failed;
}

static bool parse_value(struct arena *a, struct json_reader *p, struct json *out)
{
	bool ok;

	*out = (struct json){ 0 };
	if (!json_peek(p, &out->type))
		return json_wrong(p, "unexpected character");
	switch (out->type) {
	case JSON_OBJECT:
	case JSON_ARRAY:
		return parse_list(a, p, out, out->type == JSON_OBJECT);
	case JSON_STRING:
		ok = json_read_string(p, &out->text);
		out->text = keep(a, out->text);
		return ok;
	case JSON_BOOL:
		return json_read_bool(p, &out->is_true);
	case JSON_NULL:
		return take_word(p, STR("null"));
	case JSON_NUMBER:
		break;
	}
	return json_read_number(p, &out->text);
}

bool json_parse(struct arena *a, struct str text, struct json *out, struct err *e)
{
	struct json_reader p;
	bool ok;

	json_reader_init(&p, text, e);
	ok = parse_value(a, &p, out) && json_finish(&p);
	json_reader_release(&p);
	return ok;
}

const struct json *json_member(const struct json *object, const char *name)
{
	for (size_t i = object->type == JSON_OBJECT ? object->n : 0; i-- > 0;)
		if (str_eq(object->names[i], str_of(name)))
			return &object->at[i];
	return NULL;
}
