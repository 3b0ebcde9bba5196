/* out.h - bytes and text that are collected in memory, and the wire format of profile.proto. Once
 * memory is short nothing is added any more, and has_failed tells. */
#ifndef AGENT_OUT_H
#define AGENT_OUT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct out {
	char *p;
	size_t n, cap;
	bool has_failed;
};

/* Room for `n` more bytes at p + n; false: there is no memory. */
bool out_make_room(struct out *o, size_t n);

static inline bool out_has_room(struct out *o, size_t n)
{
	return (o->cap - o->n >= n && !o->has_failed) || out_make_room(o, n);
}

static inline void out_add(struct out *o, const void *p, size_t n)
{
	if (n && out_has_room(o, n)) {
		memcpy(o->p + o->n, p, n);
		o->n += n;
	}
}

/* Inline, so that the compiler knows how long a literal is. */
static inline void out_text(struct out *o, const char *s)
{
	out_add(o, s, strlen(s));
}

void out_format(struct out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
void out_release(struct out *o);

void out_varint(struct out *o, uint64_t v);
/* Field `number`, left out if v is 0. */
void out_number(struct out *o, unsigned number, uint64_t v);
void out_bytes(struct out *o, unsigned number, const void *p, size_t n);
/* The same for what `part` has collected, which is emptied. */
void out_message(struct out *o, unsigned number, struct out *part);

/* Writes all of it. False: errno. */
bool out_to_fd(const struct out *o, int fd);

#endif
