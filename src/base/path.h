/* path.h - file names taken apart as text, the way Go's path/filepath does; no file is looked at.
 */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include "base/buf.h"
#include "base/str.h"

/* Last element without trailing slashes; "." for "", "/" for nothing but slashes. A view of `path`
 * or a constant. */
struct str path_base(struct str path);
/* Shortest equal name: no "//", no ".", no "x/..", no trailing slash; "." for "". */
void path_clean(struct buf *out, struct str path);
/* All but the last element, cleaned; "." if there is no slash. */
void path_dir(struct buf *out, struct str path);
/* `dir`/`name`, cleaned; an empty part is left out, and two empty parts give "". */
void path_join(struct buf *out, struct str dir, struct str name);

#endif
