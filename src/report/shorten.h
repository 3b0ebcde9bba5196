/* shorten.h - parts of a function's name: its package, and what fits into a box: no package path,
 * no outer scopes. */
#ifndef REPORT_SHORTEN_H
#define REPORT_SHORTEN_H

#include "base/str.h"

/* The part of a name that functions which belong together share: a Go package, a C++ namespace, a
 * Java class. "" if there is none. */
struct str name_package(struct str name);

struct shortener;
struct shortener *shortener_new(void);
void shortener_free(struct shortener *s);
/* Valid until the next call. */
struct str shorten(struct shortener *s, struct str name);

#endif
