#include "base/base64.h"

static int base64_digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_";
	const char *at = c ? strchr(digits, c) : NULL;

	/* '-' and '_' are '+' and '/' in URLs. */
	return at ? (int)(at - digits) - (at - digits > 63 ? 2 : 0) : -1;
}

bool base64_decode(struct buf *out, struct str text)
{
	uint32_t bits = 0;
	unsigned nbits = 0;

	while (text.n && text.p[text.n - 1] == '=')
		text.n--;
	for (size_t i = 0; i < text.n; i++) {
		int digit = base64_digit(text.p[i]);

		if (digit < 0)
			return false;
		bits = bits << 6 | (uint32_t)digit;
		nbits += 6;
		if (nbits >= 8)
			buf_char(out, (char)(bits >> (nbits -= 8)));
	}
	return nbits < 6; /* one digit alone is no byte */
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hex_decode(struct buf *out, struct str text)
{
	for (size_t i = 0; i + 1 < text.n; i += 2) {
		int high = hex_digit(text.p[i]), low = hex_digit(text.p[i + 1]);

		if (high < 0 || low < 0)
			return false;
		buf_char(out, (char)(high << 4 | low));
	}
	return text.n % 2 == 0;
}

void base64_put(struct buf *out, struct str bytes)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < bytes.n; i += 3) {
		unsigned char in[3] = { 0 };
		size_t n = bytes.n - i < 3 ? bytes.n - i : 3;
		uint32_t v;

		memcpy(in, bytes.p + i, n);
		v = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];
		buf_char(out, digits[v >> 18]);
		buf_char(out, digits[v >> 12 & 63]);
		buf_char(out, n > 1 ? digits[v >> 6 & 63] : '=');
		buf_char(out, n > 2 ? digits[v & 63] : '=');
	}
}
