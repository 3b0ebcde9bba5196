#include "profile/varints.h"

/* Four bytes at a time; at least that many must be there. */
static bool read_one(struct wire *w, uint32_t *v)
{
	uint32_t x, ends, mask;

	memcpy(&x, w->p, 4);
	ends = ~x & 0x80808080;
	if (!ends || (size_t)__builtin_ctz(ends) / 8 >= (size_t)(w->end - w->p))
		return false;
	mask = ends ^ (ends - 1); /* up to the top bit of the last byte */
	x &= mask & 0x7f7f7f7f;
	*v = (x & 0x7f) | (x >> 1 & 0x3f80) | (x >> 2 & 0x1fc000) | (x >> 3 & 0xfe00000);
	w->p += (__builtin_ctz(ends) >> 3) + 1;
	return true;
}

uint32_t read_varints_plain(struct wire *w, const uint8_t *readable, uint32_t *to)
{
	uint32_t n = 0;

	while (w->p < w->end && readable - w->p >= 4 && read_one(w, &to[n]))
		n++;
	return n;
}

#ifdef __x86_64__

#define BMI2 __attribute__((target("bmi,bmi2,lzcnt,popcnt")))

/* Takes four numbers off *x. `ends` has the top bit of each one's last byte set; where there are
 * fewer than four, the rest of what is written means nothing. */
BMI2 static inline void take_four(uint64_t *x, uint64_t *ends, uint32_t *to)
{
	for (int i = 0; i < 4; i++) {
		uint64_t bits = (*ends ^ (*ends - 1)) & 0x7f7f7f7f7f7f7f7f;
		int n = __builtin_ctzll(*ends | 1ull << 62) + 1;

		to[i] = (uint32_t)__builtin_ia32_pext_di(*x, bits);
		*x >>= n;
		*ends >>= n;
	}
}

/* Four numbers of one byte or two, off *x. `is_two` says which, from its lowest bit on. Their bytes
 * go to the lanes of a word, then the bits of each lane together. */
BMI2 static inline void take_short(uint64_t *x, uint64_t is_two, uint32_t *to)
{
	const uint64_t lanes = 0x0001000100010001, pair = 0x0000ffff0000ffff;
	uint64_t bytes = __builtin_ia32_pdep_di(is_two, lanes) * 0xff00 | lanes * 0xff;
	uint64_t v = __builtin_ia32_pdep_di(*x, bytes), two[2];

	v = (v & lanes * 0x7f) | (v >> 1 & lanes * 0x3f80);
	two[0] = __builtin_ia32_pdep_di(v, pair);
	two[1] = __builtin_ia32_pdep_di(v >> 32, pair);
	memcpy(to, two, sizeof(two));
	*x >>= __builtin_popcountll(bytes) & 63;
}

/* As long as there are eight bytes at a time, and their numbers take one or two. Bit i of `more`:
 * byte i is not the last of its number. There are no branches that are hard to predict. */
BMI2 static uint32_t read_short(struct wire *w, uint32_t *to)
{
	const uint8_t *p = w->p;
	uint32_t n = 0;

	while (w->end - p >= 8) {
		uint64_t x, more, is_two;

		memcpy(&x, p, 8);
		more = __builtin_ia32_pext_di(x, 0x8080808080808080);
		if (more & more >> 1)
			break;
		is_two = __builtin_ia32_pext_di(more, ~(more << 1) & 0xff);
		take_short(&x, is_two, to + n);
		take_short(&x, is_two >> 4, to + n + 4);
		n += 8 - (uint32_t)__builtin_popcountll(more);
		p += 8 - (more >> 7);
	}
	w->p = p;
	return n;
}

/* Eight bytes at a time, and no branch on how long each number is: that is hard to predict. */
BMI2 static uint32_t read_words(struct wire *w, const uint8_t *readable, uint32_t *to)
{
	const uint64_t tops = 0x8080808080808080;
	uint32_t n = read_short(w, to);
	const uint8_t *p = w->p;

	while (p < w->end && readable - p >= 8) {
		size_t left = (size_t)(w->end - p);
		uint64_t x, ends, more;
		int count;

		memcpy(&x, p, 8);
		more = x & tops;
		ends = ~x & tops & (left < 8 ? (1ull << left * 8) - 1 : UINT64_MAX);
		if (!ends || (more & more >> 8 & more >> 16 & more >> 24))
			break;
		count = __builtin_popcountll(ends);
		p += 8 - __builtin_clzll(ends) / 8;
		take_four(&x, &ends, to + n);
		if (count > 4)
			take_four(&x, &ends, to + n + 4);
		n += (uint32_t)count;
	}
	w->p = p;
	return n;
}

uint32_t read_varints(struct wire *w, const uint8_t *readable, uint32_t *to)
{
	return __builtin_cpu_supports("bmi2") ? read_words(w, readable, to)
					      : read_varints_plain(w, readable, to);
}

#else

uint32_t read_varints(struct wire *w, const uint8_t *readable, uint32_t *to)
{
	return read_varints_plain(w, readable, to);
}

#endif
