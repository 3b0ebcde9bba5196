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

static size_t number_bytes(uint64_t v)
{
	return v ? (70 - (size_t)__builtin_clzll(v)) / 7 : 1;
}

static enum column_kind column_kind(const uint64_t *v, size_t n, bool may_be_same)
{
	size_t plain = 0, delta = 0;
	bool is_same = may_be_same;
	uint64_t last = n ? v[0] : 0;

	for (size_t i = 0; i < n; i++) {
		is_same &= v[i] == last;
		plain += number_bytes(v[i]);
		delta += number_bytes(zigzag((int64_t)(v[i] - last)));
		last = v[i];
	}
	return is_same ? COLUMN_SAME : delta < plain ? COLUMN_DELTA : COLUMN_PLAIN;
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
	for (size_t i = 0; i < n; i++) {
		put_number(out, kind == COLUMN_DELTA ? zigzag((int64_t)(v[i] - last)) : v[i]);
		last = v[i];
	}
}

void get_column(struct reader *r, uint64_t *v, size_t n, bool may_be_same)
{
	uint64_t kind = get_number(r), last = 0;

	if (kind > COLUMN_DELTA || (kind == COLUMN_SAME && !may_be_same))
		reader_fail(r);
	if (kind == COLUMN_SAME)
		last = get_number(r);
	for (size_t i = 0; i < n; i++) {
		if (kind == COLUMN_PLAIN)
			last = get_number(r);
		else if (kind == COLUMN_DELTA)
			last += (uint64_t)get_signed(r);
		v[i] = last;
	}
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
static bool compress_body(struct buf *out, struct str body, int level)
{
	size_t start = out->n, bound = ZSTD_compressBound(body.n), n;

	if (body.n < WORTH_COMPRESSING)
		return false;
	put_number(out, body.n);
	n = ZSTD_compress(buf_room(out, bound), bound, body.p, body.n, level);
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

void seal_end(struct buf *out, size_t begin, struct str body, int level)
{
	if (!compress_body(out, body, level)) {
		put_number(out, 0);
		buf_str(out, body);
	}
	put_checksum(out->p + begin, str_from(buf_view(out), begin + CHECKSUM_BYTES));
}

bool seal_open(struct str block, struct reader *head, struct err *e)
{
	char sum[CHECKSUM_BYTES];

	if (block.n <= CHECKSUM_BYTES)
		return err_set(e, ERR_FORMAT, "block of %zu bytes is too short", block.n);
	put_checksum(sum, str_from(block, CHECKSUM_BYTES));
	if (memcmp(sum, block.p, CHECKSUM_BYTES) != 0)
		return err_set(e, ERR_FORMAT, "checksum is wrong: the block is damaged");
	*head = reader_of(str_from(block, CHECKSUM_BYTES));
	return true;
}

bool seal_body(struct reader *head, struct buf *room, struct reader *body, struct err *e)
{
	uint64_t want = get_number(head);
	size_t have = (size_t)(head->end - head->p), n;

	if (head->is_bad)
		return err_set(e, ERR_FORMAT, "head of the block is cut short");
	*body = *head;
	if (!want)
		return true;
	if (want / (MOST_SHRINKING + 1) > have || want >= BODY_MAX)
		return err_set(e, ERR_FORMAT, "%zu bytes cannot hold %llu", have,
			       (unsigned long long)want);
	room->n = 0;
	n = ZSTD_decompress(buf_room(room, want), want, head->p, have);
	if (ZSTD_isError(n))
		return err_set(e, ERR_FORMAT, "body of the block: %s", ZSTD_getErrorName(n));
	if (n != want)
		return err_set(e, ERR_FORMAT, "body has %zu bytes, not %llu", n,
			       (unsigned long long)want);
	room->n = n;
	*body = reader_of(buf_view(room));
	return true;
}
