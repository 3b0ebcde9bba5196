/* escape.h - any bytes as text of XML, of JSON and of HTML, and as a word of a shell. What is no
 * valid UTF-8 becomes U+FFFD in the first two. */
#ifndef BASE_ESCAPE_H
#define BASE_ESCAPE_H

#include "base/buf.h"

/* May the character stand in an XML document at all, even escaped? */
bool xml_allows(uint32_t rune);
/* For text and for values of attributes; what XML does not allow becomes U+FFFD too. */
void escape_xml(struct buf *out, struct str s);
/* For text and for values of attributes in a page, as Go's html/template does it; bytes that are no
 * valid UTF-8 stay as they are. */
void escape_html(struct buf *out, struct str s);
/* The inside of a JSON string. '<', '>' and '&' are written as \u003c and so on, so that the result
 * may stand in a script of an HTML or SVG document. */
void escape_json(struct buf *out, struct str s);
/* The same with its quotes. */
void json_put(struct buf *out, struct str s);
/* As one word of a POSIX shell, in quotes if it needs them. */
void escape_shell(struct buf *out, struct str s);

#endif
