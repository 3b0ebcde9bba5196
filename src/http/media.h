/* media.h - a Content-Type taken apart: its type, and parameters such as charset and boundary. */
#ifndef HTTP_MEDIA_H
#define HTTP_MEDIA_H

#include "base/arena.h"
#include "base/str.h"

/* "Text/Plain; charset=utf-8" is of the type text/plain. */
bool http_media_is(struct str content_type, const char *lower_case_type);
/* Value of a parameter, whose name may be in any case, without its quotes, in `a`; p == NULL if it
 * is not there. Also for what else is written so, as Content-Disposition. */
struct str http_media_param(struct arena *a, struct str header, const char *name);

#endif
