/* amount.h - amounts as people write them in settings: 2GB, 14d, 1h30m. */
#ifndef BASE_AMOUNT_H
#define BASE_AMOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* 90s, 30m, 1h30m, 1.5h, 14d, 2w, 250ms; a number alone is seconds. From 0 up to 200 years, in
 * nanoseconds. The error is only the reason. */
bool amount_parse_time(struct str text, int64_t *ns, struct err *e);
/* 512, 64KB, 2GB, 1.5TiB; case does not matter, and all are powers of 1024. The error is only the
 * reason. */
bool amount_parse_bytes(struct str text, int64_t *bytes, struct err *e);

/* The shortest text that reads back as the same. */
void amount_print_time(struct buf *out, int64_t ns);
void amount_print_bytes(struct buf *out, int64_t bytes);

#endif
