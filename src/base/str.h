/* str.h - a view of bytes that somebody else owns. May hold any byte, NUL included. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct arena;

struct str {
	const char *p;
	size_t n;
};

/* For printf: printf("%.*s", STR_ARG(s)); cuts at 2^31 and at a NUL. */
#define STR_ARG(s) (int)((s).n > 0x7fffffff ? 0x7fffffff : (s).n), ((s).p ? (s).p : "")
#define STR(literal) ((struct str){ "" literal, sizeof(literal) - 1 })

static inline struct str str_of(const char *nul_terminated)
{
	return (struct str){ nul_terminated, strlen(nul_terminated) };
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline struct str str_from(struct str s, size_t start)
{
	return start ? (struct str){ s.p + start, s.n - start } : s;
}

#define STR_NONE SIZE_MAX

/* Bytewise order, as strcmp. */
int str_cmp(struct str a, struct str b);
/* Offset of the first (last) occurrence, or STR_NONE. */
size_t str_find(struct str s, struct str what);
size_t str_find_char(struct str s, char c);
size_t str_rfind_char(struct str s, char c);
bool str_has_prefix(struct str s, struct str prefix);
bool str_has_suffix(struct str s, struct str suffix);
bool str_contains(struct str s, struct str what);
/* Without the spaces, tabs and line ends (\t\n\v\f\r) at both sides. */
struct str str_trim(struct str s);
/* Splits *rest at the first `sep`: returns what stands before it, leaves what comes after.
 * Without `sep` returns everything and leaves an empty view with p == NULL. */
struct str str_cut(struct str *rest, char sep);
/* Number of UTF-8 code points; each invalid byte counts as one. */
size_t str_width(struct str s);
/* NUL-terminated copy. */
char *str_dup(struct arena *a, struct str s);

#endif
