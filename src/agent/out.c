#include "agent/out.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/memory.h"

enum { FIRST = 16 << 10 };

bool out_make_room(struct out *o, size_t n)
{
	size_t cap = o->cap ? o->cap : FIRST;
	char *p;

	if (o->has_failed || n > SIZE_MAX / 4)
		o->has_failed = true;
	if (o->has_failed || o->cap - o->n >= n)
		return !o->has_failed;
	while (cap - o->n < n)
		cap *= 2;
	p = pages_grow(o->p, o->cap, cap);
	o->has_failed = !p;
	if (p) {
		o->p = p;
		o->cap = cap;
	}
	return p;
}

void out_format(struct out *o, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n <= 0 || !out_has_room(o, (size_t)n + 1))
		return;
	va_start(args, format);
	vsnprintf(o->p + o->n, (size_t)n + 1, format, args);
	va_end(args);
	o->n += (size_t)n;
}

void out_release(struct out *o)
{
	pages_unmap(o->p, o->cap);
	*o = (struct out){ 0 };
}

void out_varint(struct out *o, uint64_t v)
{
	if (!out_has_room(o, 10))
		return;
	for (; v >= 0x80; v >>= 7)
		o->p[o->n++] = (char)(v | 0x80);
	o->p[o->n++] = (char)v;
}

void out_number(struct out *o, unsigned number, uint64_t v)
{
	if (!v)
		return;
	out_varint(o, number << 3);
	out_varint(o, v);
}

void out_bytes(struct out *o, unsigned number, const void *p, size_t n)
{
	out_varint(o, number << 3 | 2);
	out_varint(o, n);
	out_add(o, p, n);
}

void out_message(struct out *o, unsigned number, struct out *part)
{
	out_bytes(o, number, part->p, part->n);
	o->has_failed |= part->has_failed;
	part->n = 0;
}

bool out_to_fd(const struct out *o, int fd)
{
	for (size_t at = 0; at < o->n;) {
		ssize_t n = write(fd, o->p + at, o->n - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		at += (size_t)n;
	}
	if (o->has_failed)
		errno = ENOMEM;
	return !o->has_failed;
}
