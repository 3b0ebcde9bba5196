/* by.h - what a query's result is split by: "", "service", "type", a label, or "week"; or several
 * of them with a NUL between one and the next, and then so are the values. */
#ifndef STORE_BY_H
#define STORE_BY_H

#include "base/strings.h"
#include "store/catalog.h"

/* The value for a profile of this series and time; may lie in `scratch`, which is overwritten. */
struct str by_value(const struct picked *series, int64_t time, struct str by, struct buf *scratch);

#endif
