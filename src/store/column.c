#include "store/column.h"

#include <libdeflate.h>
#include <zstd.h>

uint64_t get_long_number(struct reader *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70 && r->p < r->end; shift += 7) {
		uint8_t byte = *r->p++;

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return v;
	}
	reader_fail(r);
	return 0;
}

/* ---- columns */

enum column_kind { COLUMN_SAME, COLUMN_PLAIN, COLUMN_DELTA };

static enum column_kind column_kind(const uint64_t *v, size_t n, bool may_be_same)
{
	size_t plain = 0, delta = 0;
	uint64_t last = n ? v[0] : 0, others = 0;

	/* How many take more than a byte is near enough. */
	for (size_t i = 0; i < n; i++) {
		others |= v[i] ^ last;
		plain += v[i] >= 0x80;
		delta += zigzag((int64_t)(v[i] - last)) >= 0x80;
		last = v[i];
	}
	return may_be_same && !others ? COLUMN_SAME : delta < plain ? COLUMN_DELTA : COLUMN_PLAIN;
}

void put_column(struct buf *out, const uint64_t *v, size_t n, bool may_be_same)
{
	enum column_kind kind = column_kind(v, n, may_be_same);
	uint64_t last = 0;

	buf_char(out, (char)kind);
	if (kind == COLUMN_SAME) {
		put_number(out, n ? v[0] : 0);
		return;
	}
	buf_room(out, n * NUMBER_BYTES);
	for (size_t i = 0; i < n; i++) {
		put_number(out, kind == COLUMN_DELTA ? zigzag((int64_t)(v[i] - last)) : v[i]);
		last = v[i];
	}
}

static void get_numbers(struct reader *r, uint64_t *v, size_t n)
{
	const uint8_t *p = r->p;
	size_t i = 0;

	/* Most are one byte or two. */
	while (i < n && r->end - p >= 2) {
		if (p[0] < 0x80) {
			v[i++] = *p++;
		} else if (p[1] < 0x80) {
			v[i++] = (p[0] & 0x7fu) | (uint64_t)p[1] << 7;
			p += 2;
		} else {
			r->p = p;
			v[i++] = get_long_number(r);
			p = r->p;
		}
	}
	r->p = p;
	while (i < n)
		v[i++] = get_number(r);
}

void get_column(struct reader *r, uint64_t *v, size_t n, bool may_be_same)
{
	uint64_t kind = get_number(r), last = 0;

	if (kind > COLUMN_DELTA || (kind == COLUMN_SAME && !may_be_same))
		reader_fail(r);
	if (kind == COLUMN_SAME) {
		last = get_number(r);
		for (size_t i = 0; i < n; i++)
			v[i] = last;
		return;
	}
	get_numbers(r, v, n);
	if (kind == COLUMN_DELTA)
		for (size_t i = 0; i < n; i++)
			v[i] = last += (uint64_t)unzigzag(v[i]);
}

/* ---- rows */

enum { ROWS_IN_ORDER = 0, ROWS_BITS_MAX = 32, NEAR = 64 };

static unsigned bits_of(uint32_t v)
{
	return v ? 32 - (unsigned)__builtin_clz(v) : 1;
}

static void put_bits(struct buf *out, const uint32_t *v, size_t n, unsigned width)
{
	uint8_t *to = (uint8_t *)buf_room(out, n * width / 8 + 16), *start = to;
	uint64_t bits = 0;
	unsigned nbits = 0;

	for (size_t i = 0; i < n; i++) {
		bits |= (uint64_t)v[i] << nbits;
		nbits += width;
		for (; nbits >= 8; nbits -= 8, bits >>= 8)
			*to++ = (uint8_t)bits;
	}
	if (nbits)
		*to++ = (uint8_t)bits;
	out->n += (size_t)(to - start);
}

static void get_bits(struct reader *r, uint32_t *v, size_t n, unsigned width)
{
	size_t bytes = (n * width + 7) / 8, bit = 0, i = 0;
	uint64_t mask = ((uint64_t)1 << width) - 1, word = 0;

	if (bytes > (size_t)(r->end - r->p)) {
		reader_fail(r);
		memset(v, 0, n * sizeof(*v));
		return;
	}
	for (; i < n && bit / 8 + sizeof(word) <= bytes; i++, bit += width) {
		memcpy(&word, r->p + bit / 8, sizeof(word));
		v[i] = (uint32_t)(word >> bit % 8 & mask);
	}
	for (; i < n; i++, bit += width) {
		word = 0;
		memcpy(&word, r->p + bit / 8, bytes - bit / 8);
		v[i] = (uint32_t)(word >> bit % 8 & mask);
	}
	r->p += bytes;
}

void put_rows(struct buf *out, struct buf *dense, const uint32_t *v, size_t n)
{
	uint32_t all = 0, last = 0;
	size_t nnear = 0;

	for (size_t i = 0; i < n; i++) {
		all |= v[i];
		nnear += v[i] - last + NEAR < 2 * NEAR;
		last = v[i];
	}
	if (nnear < n - n / 4) {
		put_number(out, bits_of(all));
		put_bits(dense, v, n, bits_of(all));
		return;
	}
	put_number(out, ROWS_IN_ORDER);
	last = 0;
	for (size_t i = 0; i < n; i++) {
		put_signed(out, (int64_t)v[i] - last);
		last = v[i];
	}
}

void get_rows(struct reader *r, struct reader *dense, uint32_t *v, size_t n)
{
	unsigned width = (unsigned)get_below(r, ROWS_BITS_MAX + 1);
	uint32_t last = 0;

	if (width != ROWS_IN_ORDER) {
		get_bits(dense, v, n, width);
		r->is_bad |= dense->is_bad;
		return;
	}
	for (size_t i = 0; i < n; i++)
		v[i] = last += (uint32_t)get_signed(r);
}

/* ---- sealed blocks */

enum {
	CHECKSUM_BYTES = 4,
	WORTH_COMPRESSING = 64,
	/* What would shrink more than this is kept as it is, so that who reads a block knows how
	 * large it can become. */
	MOST_SHRINKING = 1000,
};
#define BODY_MAX ((uint64_t)1 << 32)

size_t seal_begin(struct buf *out)
{
	size_t begin = out->n;

	buf_fill(out, '\0', CHECKSUM_BYTES);
	return begin;
}

/* False: not worth it, nothing is written. */
static bool compress_body(struct buf *out, struct str body, int level, ZSTD_CCtx *zstd)
{
	size_t start = out->n, bound = ZSTD_compressBound(body.n), n;

	if (body.n < WORTH_COMPRESSING)
		return false;
	put_number(out, body.n);
	n = zstd ? ZSTD_compressCCtx(zstd, buf_room(out, bound), bound, body.p, body.n, level)
		 : ZSTD_compress(buf_room(out, bound), bound, body.p, body.n, level);
	if (ZSTD_isError(n) || n >= body.n || body.n / MOST_SHRINKING > n) {
		out->n = start;
		return false;
	}
	out->n += n;
	return true;
}

static void put_checksum(char *to, struct str bytes)
{
	uint32_t sum = libdeflate_crc32(0, bytes.p, bytes.n);

	for (int i = 0; i < CHECKSUM_BYTES; i++)
		to[i] = (char)(sum >> 8 * i);
}

void seal_end(struct buf *out, size_t begin, struct str body, struct str dense, int level,
	      ZSTD_CCtx *zstd)
{
	put_number(out, dense.n);
	buf_str(out, dense);
	if (!compress_body(out, body, level, zstd)) {
		put_number(out, 0);
		buf_str(out, body);
	}
	put_checksum(out->p + begin, str_from(buf_view(out), begin + CHECKSUM_BYTES));
}

bool seal_open(struct sealed *s, struct str block, struct err *e)
{
	char sum[CHECKSUM_BYTES];

	if (block.n <= CHECKSUM_BYTES)
		return err_set(e, ERR_FORMAT, "block of %zu bytes is too short", block.n);
	put_checksum(sum, str_from(block, CHECKSUM_BYTES));
	if (memcmp(sum, block.p, CHECKSUM_BYTES) != 0)
		return err_set(e, ERR_FORMAT, "checksum is wrong: the block is damaged");
	s->head = reader_of(str_from(block, CHECKSUM_BYTES));
	return true;
}

static bool decompress(struct sealed *s, size_t want, struct err *e)
{
	size_t have = (size_t)(s->head.end - s->head.p), n;

	if (want / (MOST_SHRINKING + 1) > have || want >= BODY_MAX)
		return err_set(e, ERR_FORMAT, "%zu bytes cannot hold %zu", have, want);
	if (!s->zstd)
		s->zstd = ZSTD_createDCtx();
	if (!s->zstd)
		return err_set(e, ERR_LIMIT, "no memory to unpack with");
	s->room.n = 0;
	n = ZSTD_decompressDCtx(s->zstd, buf_room(&s->room, want), want, s->head.p, have);
	if (ZSTD_isError(n))
		return err_set(e, ERR_FORMAT, "body of the block: %s", ZSTD_getErrorName(n));
	if (n != want)
		return err_set(e, ERR_FORMAT, "body has %zu bytes, not %zu", n, want);
	s->room.n = n;
	s->body = reader_of(buf_view(&s->room));
	return true;
}

bool seal_unpack(struct sealed *s, struct err *e)
{
	size_t ndense = get_count(&s->head), want;

	s->dense = reader_of((struct str){ (const char *)s->head.p, ndense });
	s->head.p += ndense;
	want = get_number(&s->head);
	if (s->head.is_bad)
		return err_set(e, ERR_FORMAT, "head of the block is cut short");
	s->body = s->head;
	return !want || decompress(s, want, e);
}

void sealed_release(struct sealed *s)
{
	buf_release(&s->room);
	ZSTD_freeDCtx(s->zstd);
	s->zstd = NULL;
}
