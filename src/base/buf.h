/* buf.h - text that grows, and may flow into a file as it does.
 *
 * Zero-initialised it collects in memory until buf_release. With `fd` set through buf_to_fd, what
 * has collected is written whenever it gets large and at buf_flush; the first write error is kept
 * and returned there, and nothing more is written. So it is once *stop, if given, is not 0.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"

struct buf {
	char *p;
	size_t n, cap;
	bool has_fd;
	int fd, write_errno; /* ECANCELED: stopped */
	const volatile sig_atomic_t *stop;
};

void buf_to_fd(struct buf *b, int fd);
bool buf_flush(struct buf *b, struct err *e);
void buf_release(struct buf *b);

/* Makes room for n more bytes and returns where they go; add what was used to b->n. */
char *buf_room_slow(struct buf *b, size_t n);
static inline char *buf_room(struct buf *b, size_t n)
{
	return b->cap - b->n >= n ? b->p + b->n : buf_room_slow(b, n);
}

static inline void buf_add(struct buf *b, const void *p, size_t n)
{
	if (n) {
		memcpy(buf_room(b, n), p, n);
		b->n += n;
	}
}

static inline void buf_char(struct buf *b, char c)
{
	*buf_room(b, 1) = c;
	b->n++;
}

static inline void buf_str(struct buf *b, struct str s)
{
	buf_add(b, s.p, s.n);
}

static inline void buf_puts(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_fill(struct buf *b, char c, size_t n);
/* Padded with blanks to `width` code points: on the left (as %10s) or on the right (as %-10s). */
void buf_pad_left(struct buf *b, struct str s, size_t width);
void buf_pad_right(struct buf *b, struct str s, size_t width);
void buf_uint(struct buf *b, uint64_t v);
void buf_int(struct buf *b, int64_t v);
/* As %*d. */
void buf_int_pad(struct buf *b, int64_t v, size_t width);
void buf_hex(struct buf *b, uint64_t v);
/* As %016x. */
void buf_hex16(struct buf *b, uint64_t v);

static inline struct str buf_view(const struct buf *b)
{
	return (struct str){ b->p, b->n };
}

#endif
