/* usage.h - how much of a book is still needed: by packed profiles and sums that are given to it.
 */
#ifndef STORE_USAGE_H
#define STORE_USAGE_H

#include "store/book.h"

struct book_usage;

struct book_usage *book_usage_new(const struct book *b);
void book_usage_free(struct book_usage *x);
/* False: it is damaged. */
bool book_usage_add(struct book_usage *x, struct str packed, struct err *e);
/* From 0 to 1: of its stacks or of its sets of labels, whichever is less. */
double book_usage_share(const struct book_usage *x);

#endif
