#include "http/media.h"

#include <strings.h>

#include "base/buf.h"

static bool is_same_word(struct str a, struct str b)
{
	return a.n == b.n && (!a.n || strncasecmp(a.p, b.p, a.n) == 0);
}

bool http_media_is(struct str content_type, const char *lower_case_type)
{
	struct str type = str_trim(str_cut(&content_type, ';'));

	return is_same_word(type, str_of(lower_case_type));
}

/* RFC 7230: "a \"quoted\" text". Leaves what follows it in *rest. */
static struct str take_quoted(struct arena *a, struct str *rest)
{
	struct buf text = { 0 };
	struct str copy;
	size_t i = 1;

	for (; i < rest->n && rest->p[i] != '"'; i++) {
		i += rest->p[i] == '\\' && i + 1 < rest->n;
		buf_char(&text, rest->p[i]);
	}
	*rest = str_from(*rest, i < rest->n ? i + 1 : rest->n);
	copy = (struct str){ str_dup(a, buf_view(&text)), text.n };
	buf_release(&text);
	return copy;
}

static struct str take_value(struct arena *a, struct str *rest)
{
	struct str value;

	*rest = str_trim(*rest);
	if (rest->n && rest->p[0] == '"') {
		value = take_quoted(a, rest);
		str_cut(rest, ';');
		return value;
	}
	return str_trim(str_cut(rest, ';'));
}

/* A text up to one of two characters, which stays. */
static struct str take_until(struct str *rest, char a, char b)
{
	struct str word = *rest;
	size_t n = 0;

	while (n < rest->n && rest->p[n] != a && rest->p[n] != b)
		n++;
	word.n = n;
	*rest = str_from(*rest, n);
	return word;
}

struct str http_media_param(struct arena *a, struct str header, const char *name)
{
	str_cut(&header, ';');
	while (header.n) {
		struct str key = str_trim(take_until(&header, '=', ';')), value;
		bool has_value = header.n && header.p[0] == '=';

		header = header.n ? str_from(header, 1) : header;
		if (!has_value)
			continue;
		value = take_value(a, &header);
		if (is_same_word(key, str_of(name)))
			return value.p ? value : STR("");
	}
	return (struct str){ 0 };
}
