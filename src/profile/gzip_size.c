#include "profile/gzip_size.h"

#include <string.h>

/* RFC 1951. */
enum {
	CODE_BITS = 15, /* at most */
	LITERALS = 288, /* and lengths */
	DISTANCES = 32,
	LENGTH_CODES = 19,
	END_OF_BLOCK = 256,
	FIRST_LENGTH = 257,
	COPY_LENGTH = 16, /* of the codes for lengths of codes: the one before, or zeros */
};

/* ---- bits, the lowest of a byte first */

struct bits {
	struct str left;
	uint64_t word;
	unsigned n; /* in the word */
	bool has_ended;
};

static void refill(struct bits *b)
{
	for (; b->n <= 56 && b->left.n; b->n += 8) {
		b->word |= (uint64_t)(unsigned char)b->left.p[0] << b->n;
		b->left = str_from(b->left, 1);
	}
}

/* 0 from the end on. */
static unsigned take(struct bits *b, unsigned n)
{
	unsigned value;

	if (b->n < n)
		refill(b);
	if (b->n < n) {
		b->has_ended = true;
		b->n = 0;
		b->word = 0;
		return 0;
	}
	value = (unsigned)(b->word & ((1u << n) - 1));
	b->word >>= n;
	b->n -= n;
	return value;
}

/* From the next whole byte on. */
static struct str rest(const struct bits *b)
{
	size_t kept = b->n / 8;

	return (struct str){ b->left.p - kept, b->left.n + kept };
}

/* ---- Huffman codes: those of a length are numbers that follow each other */

struct code {
	uint16_t count[CODE_BITS + 1]; /* of each length */
	uint16_t symbols[LITERALS];    /* by length, then by number */
};

static void code_init(struct code *c, const uint8_t *lengths, unsigned n)
{
	uint16_t next[CODE_BITS + 1] = { 0 };

	memset(c->count, 0, sizeof(c->count));
	for (unsigned i = 0; i < n; i++)
		c->count[lengths[i]]++;
	c->count[0] = 0;
	for (unsigned i = 1; i <= CODE_BITS; i++)
		next[i] = (uint16_t)(next[i - 1] + c->count[i - 1]);
	for (unsigned i = 0; i < n; i++)
		if (lengths[i])
			c->symbols[next[lengths[i]]++] = (uint16_t)i;
}

/* LITERALS: there is no such code, or the bits have ended. */
static unsigned take_symbol(struct bits *b, const struct code *c)
{
	unsigned code = 0, first = 0, index = 0;

	if (b->n < CODE_BITS)
		refill(b);
	for (unsigned length = 1; length <= CODE_BITS; length++) {
		code |= (unsigned)(b->word >> (length - 1)) & 1;
		if (code - first < c->count[length]) {
			take(b, length);
			return b->has_ended ? LITERALS : c->symbols[index + code - first];
		}
		index += c->count[length];
		first = (first + c->count[length]) << 1;
		code <<= 1;
	}
	return LITERALS;
}

/* ---- blocks */

struct codes {
	struct code literals, distances;
};

static void set_fixed_codes(struct codes *c)
{
	uint8_t lengths[LITERALS];

	memset(lengths, 8, sizeof(lengths));
	memset(lengths + 144, 9, 256 - 144);
	memset(lengths + 256, 7, 280 - 256);
	code_init(&c->literals, lengths, LITERALS);
	memset(lengths, 5, DISTANCES);
	code_init(&c->distances, lengths, DISTANCES);
}

/* How often a symbol stands for a length, and the bits that say so. */
static unsigned take_repeats(struct bits *b, unsigned symbol)
{
	switch (symbol) {
	case COPY_LENGTH:
		return 3 + take(b, 2);
	case COPY_LENGTH + 1:
		return 3 + take(b, 3);
	case COPY_LENGTH + 2:
		return 11 + take(b, 7);
	default:
		return 1;
	}
}

static bool take_lengths(struct bits *b, const struct code *c, uint8_t *lengths, unsigned n)
{
	for (unsigned i = 0; i < n;) {
		unsigned symbol = take_symbol(b, c), times = take_repeats(b, symbol);

		if (symbol == LITERALS || (symbol == COPY_LENGTH && i == 0) || times > n - i)
			return false;
		memset(lengths + i,
		       symbol < COPY_LENGTH    ? (int)symbol
		       : symbol == COPY_LENGTH ? lengths[i - 1]
					       : 0,
		       times);
		i += times;
	}
	return true;
}

static bool take_codes(struct bits *b, struct codes *c)
{
	static const uint8_t order[LENGTH_CODES] = { 16, 17, 18, 0, 8,	7, 9,  6, 10, 5,
						     11, 4,  12, 3, 13, 2, 14, 1, 15 };
	unsigned nliterals = 257 + take(b, 5), ndistances = 1 + take(b, 5), n = 4 + take(b, 4);
	uint8_t lengths[LITERALS + DISTANCES] = { 0 };

	for (unsigned i = 0; i < n; i++)
		lengths[order[i]] = (uint8_t)take(b, 3);
	code_init(&c->literals, lengths, LENGTH_CODES);
	if (!take_lengths(b, &c->literals, lengths, nliterals + ndistances))
		return false;
	code_init(&c->literals, lengths, nliterals);
	code_init(&c->distances, lengths + nliterals, ndistances);
	return true;
}

/* Of a match whose length has this symbol; 0: there is none. */
static unsigned take_match(struct bits *b, const struct codes *c, unsigned symbol)
{
	unsigned length = symbol - FIRST_LENGTH, extra = length < 8 ? 0 : (length - 4) / 4,
		 distance;

	if (length == 28)
		length = 258;
	else if (length < 28)
		length = 3 + (extra ? ((4 + length % 4) << extra) + take(b, extra) : length);
	else
		return 0;
	distance = take_symbol(b, &c->distances);
	if (distance >= 30)
		return 0;
	take(b, distance < 4 ? 0 : distance / 2 - 1);
	return b->has_ended ? 0 : length;
}

static bool count_packed(struct bits *b, const struct codes *c, uint64_t *n, uint64_t enough)
{
	while (*n < enough) {
		unsigned symbol = take_symbol(b, &c->literals), length = 1;

		if (symbol == END_OF_BLOCK)
			return true;
		if (symbol >= FIRST_LENGTH)
			length = symbol == LITERALS ? 0 : take_match(b, c, symbol);
		if (!length)
			return false;
		*n += length;
	}
	return true;
}

static bool count_stored(struct bits *b, uint64_t *n)
{
	struct str bytes = rest(b);
	size_t length, there;

	if (bytes.n < 4)
		return false;
	length = (size_t)(unsigned char)bytes.p[0] | (size_t)(unsigned char)bytes.p[1] << 8;
	bytes = str_from(bytes, 4);
	there = length < bytes.n ? length : bytes.n;
	*n += there;
	*b = (struct bits){ .left = str_from(bytes, there) };
	return there == length;
}

static bool count_block(struct bits *b, unsigned kind, uint64_t *n, uint64_t enough)
{
	struct codes c;

	if (kind == 0)
		return count_stored(b, n);
	if (kind == 1)
		set_fixed_codes(&c);
	else if (kind == 3 || !take_codes(b, &c))
		return false;
	return count_packed(b, &c, n, enough);
}

/* ---- members */

bool gzip_is(struct str s)
{
	return s.n >= 2 && (unsigned char)s.p[0] == 0x1f && (unsigned char)s.p[1] == 0x8b;
}

size_t gzip_header_bytes(struct str member)
{
	const unsigned char *p = (const unsigned char *)member.p;
	size_t n = 10;

	if (member.n < n)
		return member.n + 1;
	if (p[3] & 4) /* FEXTRA */
		n += member.n < n + 2 ? member.n : 2 + (size_t)p[n] + ((size_t)p[n + 1] << 8);
	for (int text = 8; text <= 16; text *= 2) { /* FNAME, FCOMMENT */
		while ((p[3] & text) && n < member.n && p[n])
			n++;
		n += (p[3] & text) != 0;
	}
	return p[3] & 2 ? n + 2 : n; /* FHCRC */
}

/* What comes behind it; nothing, if it is cut off or damaged. */
static struct str count_member(struct str member, uint64_t *n, uint64_t enough)
{
	enum { CHECK_BYTES = 8 };
	size_t header = gzip_header_bytes(member);
	struct bits b = { .left = str_from(member, header < member.n ? header : member.n) };
	bool is_last = false;

	while (!is_last && *n < enough) {
		is_last = take(&b, 1);
		if (!count_block(&b, take(&b, 2), n, enough) || b.has_ended)
			return STR("");
	}
	return rest(&b).n > CHECK_BYTES ? str_from(rest(&b), CHECK_BYTES) : STR("");
}

uint64_t gzip_least_size(struct str start, uint64_t enough)
{
	uint64_t n = 0;

	while (gzip_is(start) && n < enough)
		start = count_member(start, &n, enough);
	return n < enough ? n : enough;
}
