/* shorten.h - the part of a function's name that fits into a box: no package path, no outer scopes.
 */
#ifndef REPORT_SHORTEN_H
#define REPORT_SHORTEN_H

#include "base/str.h"

struct shortener;
struct shortener *shortener_new(void);
void shortener_free(struct shortener *s);
/* Valid until the next call. */
struct str shorten(struct shortener *s, struct str name);

#endif
