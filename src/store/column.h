/* column.h - numbers as bytes: one by one, or a column of them at a time; and sealed blocks of
 * bytes, compressed and with a checksum.
 *
 * What is read is untrusted: a reader that has met nonsense stays bad and gives zeros, so that it
 * is enough to look once, at the end, and wherever a number decides on memory or on a loop.
 */
#ifndef STORE_COLUMN_H
#define STORE_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum { NUMBER_BYTES = 10 }; /* at most */

struct reader {
	const uint8_t *p, *end;
	bool is_bad;
};

static inline struct reader reader_of(struct str s)
{
	const uint8_t *p = (const uint8_t *)s.p;

	return (struct reader){ p, p ? p + s.n : p, false };
}

static inline void reader_fail(struct reader *r)
{
	r->is_bad = true;
	r->p = r->end;
}

uint64_t get_long_number(struct reader *r);
static inline uint64_t get_number(struct reader *r)
{
	if (r->p < r->end && *r->p < 0x80)
		return *r->p++;
	return get_long_number(r);
}

static inline uint64_t get_below(struct reader *r, uint64_t limit)
{
	uint64_t v = get_number(r);

	if (v < limit)
		return v;
	reader_fail(r);
	return 0;
}

/* How many things follow that take at least a byte each. */
static inline uint32_t get_count(struct reader *r)
{
	uint64_t v = get_number(r);

	if (v <= (size_t)(r->end - r->p) && v < UINT32_MAX)
		return (uint32_t)v;
	reader_fail(r);
	return 0;
}

static inline void put_number(struct buf *b, uint64_t v)
{
	char *to = buf_room(b, NUMBER_BYTES);
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		to[n++] = (char)(v | 0x80);
	to[n++] = (char)v;
	b->n += n;
}

/* Numbers near 0, below it too, take few bytes. */
static inline uint64_t zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);
}

static inline int64_t unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1 ^ -(v & 1));
}

static inline void put_signed(struct buf *b, int64_t v)
{
	put_number(b, zigzag(v));
}

static inline int64_t get_signed(struct reader *r)
{
	return unzigzag(get_number(r));
}

/* Of 0 and a number, that number. */
static inline uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* n numbers of any size, most of them small. Unless `may_be_same`, a column takes at least a byte
 * for each number, so that a reader can tell how many there may be. */
void put_column(struct buf *out, const uint64_t *v, size_t n, bool may_be_same);
void get_column(struct reader *r, uint64_t *v, size_t n, bool may_be_same);

/* n numbers of rows of a table: in an order that has something to it, or in none. Then compression
 * is in vain, and they go to `dense`, as many bits for each as the largest needs. In either case
 * they take at least n bits. */
void put_rows(struct buf *out, struct buf *dense, const uint32_t *v, size_t n);
void get_rows(struct reader *r, struct reader *dense, uint32_t *v, size_t n);

/* ---- sealed blocks: head (a few numbers, readable without unpacking), body, and what is dense
 * already */

struct ZSTD_CCtx_s;

struct sealed {
	struct reader head, body, dense;
	struct buf room;
	struct ZSTD_DCtx_s *zstd; /* may serve many blocks */
};

/* Begins a block; write the head next. Returns what seal_end wants. */
size_t seal_begin(struct buf *out);
/* Adds the rest; the body is compressed if that makes it smaller. `zstd`, which may serve many
 * blocks, or NULL. */
void seal_end(struct buf *out, size_t begin, struct str body, struct str dense, int level,
	      struct ZSTD_CCtx_s *zstd);
/* Finds the head of a block whose checksum is right, and, once that is read, what comes after it,
 * which is good until the next call. `s` is zeroed, or as the last block left it. */
bool seal_open(struct sealed *s, struct str block, struct err *e);
bool seal_unpack(struct sealed *s, struct err *e);
void sealed_release(struct sealed *s);

#endif
