/* base64.h - bytes as text. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/buf.h"

/* Both append what they decode, and return false if the text is something else: base64 (RFC 4648)
 * with either alphabet, padded or not; pairs of hexadecimal digits. */
bool base64_decode(struct buf *out, struct str text);
bool hex_decode(struct buf *out, struct str text);
/* As base64, with padding. */
void base64_put(struct buf *out, struct str bytes);

#endif
