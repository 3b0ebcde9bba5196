/* out.h - bytes and text that are collected in memory, and the wire format of profile.proto. Once
 * memory is short nothing is added any more, and has_failed tells. */
#ifndef AGENT_OUT_H
#define AGENT_OUT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct out {
	char *p;
	size_t n, cap;
	bool has_failed;
};

void out_add(struct out *o, const void *p, size_t n);
void out_text(struct out *o, const char *s);
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
