#include "base/str.h"

#include "base/arena.h"

int str_cmp(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int c = n ? memcmp(a.p, b.p, n) : 0;

	if (c)
		return c;
	return a.n < b.n ? -1 : a.n > b.n;
}

size_t str_find(struct str s, struct str what)
{
	const char *p;

	if (!what.n)
		return 0;
	p = s.n >= what.n ? memmem(s.p, s.n, what.p, what.n) : NULL;
	return p ? (size_t)(p - s.p) : STR_NONE;
}

size_t str_find_char(struct str s, char c)
{
	const char *p = s.n ? memchr(s.p, c, s.n) : NULL;

	return p ? (size_t)(p - s.p) : STR_NONE;
}

size_t str_rfind_char(struct str s, char c)
{
	const char *p = s.n ? memrchr(s.p, c, s.n) : NULL;

	return p ? (size_t)(p - s.p) : STR_NONE;
}

bool str_has_prefix(struct str s, struct str prefix)
{
	return s.n >= prefix.n && (!prefix.n || memcmp(s.p, prefix.p, prefix.n) == 0);
}

bool str_has_suffix(struct str s, struct str suffix)
{
	return s.n >= suffix.n &&
	       (!suffix.n || memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
}

bool str_contains(struct str s, struct str what)
{
	return str_find(s, what) != STR_NONE;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
	while (s.n && is_space(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n && is_space(s.p[s.n - 1]))
		s.n--;
	return s;
}

struct str str_cut(struct str *rest, char sep)
{
	size_t at = str_find_char(*rest, sep);
	struct str head = *rest;

	if (at == STR_NONE) {
		*rest = (struct str){ NULL, 0 };
		return head;
	}
	head.n = at;
	*rest = str_from(*rest, at + 1);
	return head;
}

/* Length of the valid UTF-8 sequence at p, or 1. */
static size_t rune_bytes(const unsigned char *p, size_t n)
{
	unsigned char c = p[0], lo = 0x80, hi = 0xbf;
	size_t want;

	if (c < 0x80)
		return 1;
	if (c >= 0xc2 && c <= 0xdf)
		want = 2;
	else if (c >= 0xe0 && c <= 0xef)
		want = 3;
	else if (c >= 0xf0 && c <= 0xf4)
		want = 4;
	else
		return 1;
	if (c == 0xe0)
		lo = 0xa0;
	else if (c == 0xed)
		hi = 0x9f;
	else if (c == 0xf0)
		lo = 0x90;
	else if (c == 0xf4)
		hi = 0x8f;
	if (n < want || p[1] < lo || p[1] > hi)
		return 1;
	for (size_t i = 2; i < want; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 1;
	return want;
}

size_t str_width(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t width = 0;

	for (size_t i = 0; i < s.n; width++)
		i += rune_bytes(p + i, s.n - i);
	return width;
}

char *str_dup(struct arena *a, struct str s)
{
	char *p = arena_alloc(a, s.n + 1);

	if (s.n)
		memcpy(p, s.p, s.n);
	return p;
}
