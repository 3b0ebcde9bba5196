#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"

enum { FLUSH_BYTES = 1 << 18 };

static void write_out(struct buf *b)
{
	size_t done = 0;

	while (done < b->n && !b->write_errno) {
		bool is_stopped = b->stop && *b->stop;
		ssize_t n = is_stopped ? -1 : write(b->fd, b->p + done, b->n - done);

		if (is_stopped)
			b->write_errno = ECANCELED;
		else if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			b->write_errno = errno;
	}
	b->n = 0;
}

char *buf_room_slow(struct buf *b, size_t n)
{
	if (b->has_fd && b->n + n > FLUSH_BYTES)
		write_out(b);
	if (b->cap - b->n < n) {
		size_t cap = b->cap ? b->cap : 256;

		if (b->has_fd && cap < FLUSH_BYTES)
			cap = FLUSH_BYTES;
		while (cap - b->n < n)
			cap *= 2;
		b->p = xrealloc(b->p, cap);
		b->cap = cap;
	}
	return b->p + b->n;
}

void buf_to_fd(struct buf *b, int fd)
{
	b->fd = fd;
	b->has_fd = true;
}

bool buf_flush(struct buf *b, struct err *e)
{
	write_out(b);
	if (b->write_errno)
		return err_set(e, ERR_IO, "write: %s", strerror(b->write_errno));
	return true;
}

void buf_release(struct buf *b)
{
	free(b->p);
	*b = (struct buf){ 0 };
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n <= 0)
		return;
	va_start(ap, fmt);
	vsnprintf(buf_room(b, (size_t)n + 1), (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->n += (size_t)n;
}

void buf_fill(struct buf *b, char c, size_t n)
{
	if (n)
		memset(buf_room(b, n), c, n);
	b->n += n;
}

void buf_pad_left(struct buf *b, struct str s, size_t width)
{
	size_t has = str_width(s);

	if (has < width)
		buf_fill(b, ' ', width - has);
	buf_str(b, s);
}

void buf_pad_right(struct buf *b, struct str s, size_t width)
{
	size_t has = str_width(s);

	buf_str(b, s);
	if (has < width)
		buf_fill(b, ' ', width - has);
}

static size_t digits(char out[20], uint64_t v)
{
	size_t n = 0;

	do
		out[19 - n++] = (char)('0' + v % 10);
	while (v /= 10);
	return n;
}

void buf_uint(struct buf *b, uint64_t v)
{
	char text[20];
	size_t n = digits(text, v);

	buf_add(b, text + 20 - n, n);
}

void buf_int(struct buf *b, int64_t v)
{
	if (v < 0)
		buf_char(b, '-');
	buf_uint(b, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void buf_int_pad(struct buf *b, int64_t v, size_t width)
{
	char text[20];
	size_t n = digits(text, v < 0 ? -(uint64_t)v : (uint64_t)v);
	size_t has = n + (v < 0);

	if (has < width)
		buf_fill(b, ' ', width - has);
	if (v < 0)
		buf_char(b, '-');
	buf_add(b, text + 20 - n, n);
}

void buf_hex16(struct buf *b, uint64_t v)
{
	char text[16];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = "0123456789abcdef"[v >> (60 - 4 * i) & 15];
	buf_add(b, text, sizeof(text));
}

void buf_hex(struct buf *b, uint64_t v)
{
	char text[16];
	size_t n = 0;

	do
		text[15 - n++] = "0123456789abcdef"[v & 15];
	while (v >>= 4);
	buf_add(b, text + 16 - n, n);
}
