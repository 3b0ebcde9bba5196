#include "base/utf8.h"

bool utf8_is_valid(struct str s)
{
	size_t i = 0;

	while (i < s.n) {
		uint64_t eight;
		uint32_t rune;
		size_t used;

		if (s.n - i >= sizeof(eight)) {
			memcpy(&eight, s.p + i, sizeof(eight));
			if (!(eight & 0x8080808080808080u)) {
				i += sizeof(eight);
				continue;
			}
		}
		used = utf8_decode(str_from(s, i), &rune);
		if (rune == UTF8_INVALID && used == 1)
			return false;
		i += used;
	}
	return true;
}

void utf8_repair(struct buf *out, struct str s)
{
	while (s.n > 0) {
		uint32_t rune;
		size_t used = utf8_decode(s, &rune);

		out->n += utf8_encode(buf_room(out, UTF8_BYTES), rune);
		s = str_from(s, used);
	}
}
