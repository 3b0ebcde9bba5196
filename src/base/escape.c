#include "base/escape.h"

#include <string.h>

#include "base/utf8.h"

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

bool xml_allows(uint32_t rune)
{
	return rune == '\t' || rune == '\n' || rune == '\r' ||
	       (rune >= 0x20 && rune != 0xfffe && rune != 0xffff);
}

static const char *xml_entity(uint32_t rune)
{
	switch (rune) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\n': /* or a reader of attributes makes a blank of it */
		return "&#10;";
	case '\r':
		return "&#13;";
	case '\t':
		return "&#9;";
	default:
		return xml_allows(rune) ? NULL : replacement;
	}
}

void escape_xml(struct buf *out, struct str s)
{
	while (s.n) {
		uint32_t rune;
		size_t n = utf8_decode(s, &rune);
		const char *entity = rune == UTF8_INVALID ? replacement : xml_entity(rune);

		if (entity)
			buf_puts(out, entity);
		else
			buf_add(out, s.p, n);
		s = str_from(s, n);
	}
}

static const char *html_entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&#34;";
	case '\'':
		return "&#39;";
	case '+':
		return "&#43;";
	case '\0':
		return replacement; /* a page may not hold a NUL */
	default:
		return NULL;
	}
}

void escape_html(struct buf *out, struct str s)
{
	size_t done = 0;

	for (size_t i = 0; i < s.n; i++) {
		const char *text = html_entity(s.p[i]);

		if (!text)
			continue;
		buf_add(out, s.p + done, i - done);
		buf_puts(out, text);
		done = i + 1;
	}
	buf_add(out, s.p + done, s.n - done);
}

void escape_json(struct buf *out, struct str s)
{
	while (s.n) {
		uint32_t rune;
		size_t n = utf8_decode(s, &rune);

		if (rune == UTF8_INVALID)
			buf_puts(out, replacement);
		else if (rune == '"' || rune == '\\')
			buf_printf(out, "\\%c", (char)rune);
		else if (rune < 0x20 || rune == 0x7f || rune == '<' || rune == '>' || rune == '&' ||
			 !xml_allows(rune))
			buf_printf(out, "\\u%04x", rune);
		else
			buf_add(out, s.p, n);
		s = str_from(s, n);
	}
}

void json_put(struct buf *out, struct str s)
{
	buf_char(out, '"');
	escape_json(out, s);
	buf_char(out, '"');
}

static bool is_plain_for_shell(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("_@%+=:,./-", c));
}

void escape_shell(struct buf *out, struct str s)
{
	bool is_plain = s.n > 0;

	for (size_t i = 0; i < s.n; i++)
		is_plain &= is_plain_for_shell(s.p[i]);
	if (is_plain) {
		buf_str(out, s);
		return;
	}
	buf_char(out, '\'');
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\'')
			buf_puts(out, "'\\''");
		else
			buf_char(out, s.p[i]);
	}
	buf_char(out, '\'');
}
