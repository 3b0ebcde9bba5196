#include "http/target.h"

#include <ctype.h>

#include "base/vec.h"

enum { MAX_PARAMS = 1000 };

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* False if there is a '%' that two hexadecimal digits do not follow; *bad is where. */
static bool decode(struct arena *a, struct str s, bool plus_is_blank, struct str *out, size_t *bad)
{
	char *to = arena_raw(a, s.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		int high, low;

		if (s.p[i] != '%') {
			to[n++] = plus_is_blank && s.p[i] == '+' ? ' ' : s.p[i];
			continue;
		}
		*bad = i;
		if (i + 2 >= s.n)
			return false;
		high = hex_digit(s.p[i + 1]);
		low = hex_digit(s.p[i + 2]);
		if (high < 0 || low < 0)
			return false;
		to[n++] = (char)(high * 16 + low);
		i += 2;
	}
	*out = (struct str){ to, n };
	return true;
}

static void parse_query(struct arena *a, struct str query, struct http_target *out)
{
	vec(struct http_param) params = { 0 };

	while (query.n && params.n < MAX_PARAMS) {
		struct str value = str_cut(&query, '&'), name;
		struct http_param p = { 0 };
		size_t bad;

		if (str_find_char(value, ';') != STR_NONE)
			continue;
		name = str_cut(&value, '=');
		if (name.n + value.n && decode(a, name, true, &p.name, &bad) &&
		    decode(a, value, true, &p.value, &bad))
			vec_push(&params, p);
	}
	out->nparams = params.n;
	out->params = vec_adopt(a, &params);
}

bool http_target_parse(struct arena *a, struct str target, struct http_target *out, struct err *e)
{
	struct str raw = target, path = str_cut(&target, '?');
	size_t bad;

	*out = (struct http_target){ .raw = raw, .raw_query = target };
	if (!path.n || path.p[0] != '/')
		return err_set(e, ERR_FORMAT, "the path of a request starts with /");
	if (!decode(a, path, false, &out->path, &bad))
		return err_set(e, ERR_FORMAT, "invalid URL escape in the path");
	parse_query(a, target, out);
	return true;
}

struct str http_target_param(const struct http_target *t, const char *name)
{
	for (size_t i = 0; i < t->nparams; i++)
		if (str_eq(t->params[i].name, str_of(name)))
			return t->params[i].value;
	return STR("");
}

void http_put_escaped(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c < 0x80 && (isalnum(c) || strchr("-_.~", c)) && c)
			buf_char(out, (char)c);
		else if (c == ' ')
			buf_char(out, '+');
		else
			buf_printf(out, "%%%02X", c);
	}
}

bool http_unescape(struct arena *a, struct str s, struct str *out, size_t *bad)
{
	return decode(a, s, true, out, bad);
}
