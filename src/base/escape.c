#include "base/escape.h"

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
