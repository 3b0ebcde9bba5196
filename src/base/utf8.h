/* utf8.h - code points out of bytes and back. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define UTF8_INVALID 0xfffdu
#define UTF8_MAX 0x10ffffu
#define UTF8_BYTES 4

/* Decodes the code point at the start of s, which is not empty, and returns its length in bytes.
 * What is no valid UTF-8 (overlong forms and surrogates included) gives UTF8_INVALID and the length
 * 1; a real U+FFFD has the length 3. */
static inline size_t utf8_decode(struct str s, uint32_t *rune)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = (const unsigned char *)s.p;
	uint32_t c = p[0];
	size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

	*rune = c;
	if (n == 1)
		return 1;
	*rune = UTF8_INVALID;
	if (n == 0 || n > s.n)
		return 1;
	c &= 0x7fu >> n;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 1;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < smallest[n] || c > UTF8_MAX || (c >= 0xd800 && c <= 0xdfff))
		return 1;
	*rune = c;
	return n;
}

/* Writes a code point and returns how many bytes it took. */
static inline size_t utf8_encode(char out[UTF8_BYTES], uint32_t rune)
{
	size_t n = rune < 0x80 ? 1 : rune < 0x800 ? 2 : rune < 0x10000 ? 3 : 4;

	if (n == 1) {
		out[0] = (char)rune;
		return 1;
	}
	for (size_t i = n - 1; i > 0; i--, rune >>= 6)
		out[i] = (char)(0x80 | (rune & 0x3f));
	out[0] = (char)((0xf00 >> n) | rune);
	return n;
}

bool utf8_is_valid(struct str s);
/* Appends the text; each byte that is not valid becomes a U+FFFD. */
void utf8_repair(struct buf *out, struct str s);

#endif
