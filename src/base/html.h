/* html.h - text made safe to stand in a page. */
#ifndef BASE_HTML_H
#define BASE_HTML_H

#include "base/buf.h"

/* Appends `s` for the text of an element or a quoted attribute, as Go's html/template does. */
void html_text(struct buf *out, struct str s);

#endif
