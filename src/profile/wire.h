/* wire.h - protobuf's wire format, just what profile.proto needs. Every length is checked here. */
#ifndef PROFILE_WIRE_H
#define PROFILE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

struct wire {
	const uint8_t *p, *end;
};

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct field {
	uint64_t number;
	enum wire_type type;
	uint64_t value;	   /* of a varint, or of WIRE_FIXED64 */
	struct wire bytes; /* of WIRE_BYTES */
};

static inline struct wire wire_of(struct str s)
{
	const uint8_t *p = (const uint8_t *)s.p;

	return (struct wire){ p, s.n ? p + s.n : p };
}

static inline struct str wire_view(struct wire w)
{
	return (struct str){ (const char *)w.p, (size_t)(w.end - w.p) };
}

/* At most 10 bytes; bits beyond 64 are dropped, as pprof does. */
static inline bool wire_varint(struct wire *w, uint64_t *v)
{
	const uint8_t *p = w->p;
	uint64_t x = 0;

	if (p < w->end && *p < 0x80) {
		*v = *p;
		w->p = p + 1;
		return true;
	}
	for (unsigned shift = 0; shift < 70 && p < w->end; shift += 7) {
		uint8_t byte = *p++;

		x |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*v = x;
			w->p = p;
			return true;
		}
	}
	return false;
}

/* Reads the next field. False: the bytes are no protobuf. Call while w->p < w->end. */
static inline bool wire_next(struct wire *w, struct field *f)
{
	uint64_t tag, n;

	if (!wire_varint(w, &tag))
		return false;
	f->number = tag >> 3;
	f->type = (enum wire_type)(tag & 7);
	switch (tag & 7) {
	case WIRE_VARINT:
		return wire_varint(w, &f->value);
	case WIRE_BYTES:
		if (!wire_varint(w, &n) || n > (size_t)(w->end - w->p))
			return false;
		f->bytes = (struct wire){ w->p, w->p + n };
		w->p += n;
		return true;
	case WIRE_FIXED64:
	case WIRE_FIXED32:
		n = (tag & 7) == WIRE_FIXED64 ? 8 : 4;
		if (n > (size_t)(w->end - w->p))
			return false;
		if (n == 8)
			memcpy(&f->value, w->p, 8); /* little endian, as all machines here */
		w->p += n;
		return true;
	default:
		return false;
	}
}

static inline double wire_double(const struct field *f)
{
	double d;

	memcpy(&d, &f->value, sizeof(d));
	return d;
}

/* ---- writing */

static inline void put_varint(struct buf *b, uint64_t v)
{
	char *to = buf_room(b, 10);
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		to[n++] = (char)(v | 0x80);
	to[n++] = (char)v;
	b->n += n;
}

static inline void put_number(struct buf *b, unsigned field, uint64_t v)
{
	put_varint(b, (uint64_t)field << 3);
	put_varint(b, v);
}

static inline void put_nonzero(struct buf *b, unsigned field, uint64_t v)
{
	if (v)
		put_number(b, field, v);
}

static inline void put_bytes(struct buf *b, unsigned field, struct str s)
{
	put_varint(b, (uint64_t)field << 3 | WIRE_BYTES);
	put_varint(b, s.n);
	buf_str(b, s);
}

/* A string: others refuse a whole message for one that is no valid UTF-8. */
static inline void put_utf8(struct buf *b, unsigned field, struct str s)
{
	struct buf repaired = { 0 };

	if (utf8_is_valid(s)) {
		put_bytes(b, field, s);
		return;
	}
	utf8_repair(&repaired, s);
	put_bytes(b, field, buf_view(&repaired));
	buf_release(&repaired);
}

static inline void put_fixed64(struct buf *b, uint64_t bits)
{
	for (unsigned shift = 0; shift < 64; shift += 8)
		buf_char(b, (char)(bits >> shift));
}

static inline void put_double(struct buf *b, unsigned field, double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	put_varint(b, (uint64_t)field << 3 | WIRE_FIXED64);
	put_fixed64(b, bits);
}

/* Appends a finished message to its parent, and empties it. */
static inline void put_message(struct buf *to, unsigned field, struct buf *message)
{
	put_bytes(to, field, buf_view(message));
	message->n = 0;
}

#endif
