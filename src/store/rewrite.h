/* rewrite.h - books without what nothing needs any more.
 *
 * A book only grows, and goes when nothing needs it: but one sum of a day may need some of what the
 * profiles of two weeks had. Then all that needs the book is put into the current one of its
 * service, some rows in a commit: at any time each row is in one book. The old one stays for a
 * while, as somebody may be reading what was before, and goes with others that are empty.
 */
#ifndef STORE_REWRITE_H
#define STORE_REWRITE_H

#include "store/inside.h"

/* Rewrites books of which less than this share is in use. With `is_online` only those that are not
 * written to any more, and have no profiles but sums: they are few, and so quickly read. */
bool rewrite_books(struct store *s, double share, bool is_online, uint64_t *nbooks, struct err *e);

#endif
