/* bundle.h - the page's modules as one script. Private to web/. */
#ifndef WEB_BUNDLE_H
#define WEB_BUNDLE_H

#include "base/arena.h"
#include "base/buf.h"

/* Appends the module after all that it imports, without comments and indentation. Modules have
 * imports of one line each, no two with the same names, and nothing that depends on blanks at the
 * start of a line. `dir` is as in asset_read. */
void bundle_script(struct buf *out, const char *dir, struct str module);
/* A style sheet without comments and indentation. */
void bundle_style(struct buf *out, const char *dir, struct str name);
/* The text so that it does not end the <script> or <style> that it stands in. */
void bundle_put_inline(struct buf *out, struct str text);

#endif
