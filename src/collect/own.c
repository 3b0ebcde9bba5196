/* own.c - what a target has of its own, in one block of memory. */
#include "collect/own.h"

#include "collect/scrape_config.h"

/* All texts but those of types. */
enum { NTEXTS = 6 };

static void list_texts(struct target_own *own, const char **texts[NTEXTS])
{
	texts[0] = &own->scheme;
	texts[1] = &own->path_prefix;
	texts[2] = &own->namespace;
	texts[3] = &own->secret.name;
	texts[4] = &own->secret.key;
	texts[5] = &own->secret.user;
}

static size_t text_bytes(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static void put_text(char **to, const char **text)
{
	size_t n = text_bytes(*text);

	if (n)
		*text = memcpy(*to, *text, n);
	*to += n;
}

size_t own_bytes(const struct target_own *own)
{
	struct target_own copy = *own;
	const char **texts[NTEXTS];
	size_t n = sizeof(*own) + own->ntypes * sizeof(*own->types);

	list_texts(&copy, texts);
	for (size_t i = 0; i < NTEXTS; i++)
		n += text_bytes(*texts[i]);
	for (size_t i = 0; i < own->ntypes; i++)
		n += text_bytes(own->types[i].name) + text_bytes(own->types[i].path);
	return n;
}

struct target_own *own_put(void *block, const struct target_own *own)
{
	struct target_own *copy = block;
	struct profile_type *types = (struct profile_type *)(copy + 1);
	char *to = (char *)(types + own->ntypes);
	const char **texts[NTEXTS];

	*copy = *own;
	copy->types = types;
	list_texts(copy, texts);
	for (size_t i = 0; i < NTEXTS; i++)
		put_text(&to, texts[i]);
	for (size_t i = 0; i < own->ntypes; i++) {
		types[i] = own->types[i];
		put_text(&to, &types[i].name);
		put_text(&to, &types[i].path);
	}
	return copy;
}

struct target_own *own_copy(struct arena *a, const struct target_own *own)
{
	return own_put(arena_alloc(a, own_bytes(own)), own);
}

/* ---- are they the same? */

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool profile_types_same(const struct profile_type *a, size_t na, const struct profile_type *b,
			size_t nb)
{
	if (na != nb)
		return false;
	for (size_t i = 0; i < na; i++)
		if (strcmp(a[i].name, b[i].name) != 0 || strcmp(a[i].path, b[i].path) != 0 ||
		    a[i].seconds != b[i].seconds || a[i].interval != b[i].interval)
			return false;
	return true;
}

bool own_same(const struct target_own *a, const struct target_own *b)
{
	struct target_own x, y;
	const char **of_x[NTEXTS], **of_y[NTEXTS];

	if (!a || !b)
		return a == b;
	x = *a;
	y = *b;
	list_texts(&x, of_x);
	list_texts(&y, of_y);
	for (size_t i = 0; i < NTEXTS; i++)
		if (!is_same(*of_x[i], *of_y[i]))
			return false;
	return profile_types_same(a->types, a->ntypes, b->types, b->ntypes);
}
