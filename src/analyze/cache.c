#include "analyze/cache.h"

#include <stdlib.h>

struct slice *slice_new(const char *key)
{
	struct slice *slice = xcalloc(1, sizeof(*slice));

	slice->key = str_dup(&slice->arena, str_of(key));
	return slice;
}

void slice_free(struct slice *slice)
{
	graph_memo_free(slice->graphs);
	vec_release(&slice->totals);
	buf_release(&slice->warnings);
	arena_release(&slice->arena);
	free(slice);
}

static void move_to_front(struct cache *c, size_t from)
{
	struct slice *slice = c->slices[from];

	memmove(c->slices + 1, c->slices, from * sizeof(struct slice *));
	c->slices[0] = slice;
}

struct slice *cache_find(struct cache *c, const char *key)
{
	for (size_t i = 0; i < c->n; i++) {
		if (strcmp(c->slices[i]->key, key) == 0) {
			move_to_front(c, i);
			return c->slices[0];
		}
	}
	return NULL;
}

static size_t total_bytes(const struct cache *c)
{
	size_t bytes = 0;

	for (size_t i = 0; i < c->n; i++)
		bytes += arena_bytes(&c->slices[i]->arena) + graph_memo_bytes(c->slices[i]->graphs);
	return bytes;
}

static bool has_children(const struct cache *c, const struct slice *slice)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->slices[i]->parent == slice)
			return true;
	return false;
}

/* Drops the slice that was not used for the longest time, and is neither the first nor the parent
 * of another. False if there is none. */
static bool drop_one(struct cache *c)
{
	for (size_t i = c->n; i-- > 1;) {
		struct slice *slice = c->slices[i];

		if (has_children(c, slice))
			continue;
		memmove(c->slices + i, c->slices + i + 1, (--c->n - i) * sizeof(struct slice *));
		slice_free(slice);
		return true;
	}
	return false;
}

void cache_add(struct cache *c, struct slice *slice)
{
	c->slices[c->n++] = slice;
	move_to_front(c, c->n - 1);
	while ((c->n > CACHE_SLICES || total_bytes(c) > CACHE_MAX_BYTES) && drop_one(c))
		;
}

void cache_release(struct cache *c)
{
	for (size_t i = 0; i < c->n; i++)
		slice_free(c->slices[i]);
	*c = (struct cache){ 0 };
}
