#include "web/changes.h"

#include "base/int.h"

void changes_release(struct changes *c)
{
	vec_release(&c->boxes);
	vec_release(&c->unused);
	vec_release(&c->added);
	vec_release(&c->functions);
	map_release(&c->ids);
	map_release(&c->sent_functions);
}

void changes_forget(struct changes *c)
{
	changes_release(c);
	*c = (struct changes){ 0 };
}

bool changes_is_first(const struct changes *c)
{
	return !c->boxes.n || !c->boxes.at[0].is_sent;
}

/* ---- functions */

static bool same_function(const void *ctx, uint32_t index)
{
	const struct changes *c = ((const void *const *)ctx)[0];
	const uint32_t *want = ((const void *const *)ctx)[1];

	return c->functions.at[index] == *want;
}

/* False: it was known. */
static bool learn_function(struct changes *c, uint32_t function)
{
	uint32_t fresh = (uint32_t)c->functions.n;

	if (map_put(&c->sent_functions, hash_mix(map_seed(), function), fresh, same_function,
		    (const void *[]){ c, &function }) != fresh)
		return false;
	vec_push(&c->functions, function);
	return true;
}

/* ---- boxes */

static bool same_box(const void *ctx, uint32_t id)
{
	const struct changes *c = ((const void *const *)ctx)[0];
	const struct change_box *want = ((const void *const *)ctx)[1];

	return c->boxes.at[id].parent == want->parent && c->boxes.at[id].function == want->function;
}

static uint64_t hash_box(const struct change_box *b)
{
	return hash_mix(map_seed(), (uint64_t)b->parent << 32 | b->function);
}

static uint32_t add_box(struct changes *c, const struct change_box *b)
{
	uint32_t id = (uint32_t)c->boxes.n;

	if (c->unused.n)
		id = c->unused.at[--c->unused.n];
	else
		vec_push(&c->boxes, (struct change_box){ 0 });
	c->boxes.at[id] = *b;
	map_add(&c->ids, hash_box(b), id);
	vec_push(&c->added, id);
	return id;
}

void changes_begin(struct changes *c, const struct change_values *root)
{
	if (!c->boxes.n)
		vec_push(&c->boxes, (struct change_box){ 0 });
	for (size_t i = 0; i < c->boxes.n; i++)
		c->boxes.at[i].is_there = false;
	c->boxes.at[0].is_there = true;
	c->boxes.at[0].now = *root;
}

uint32_t changes_box(struct changes *c, uint32_t parent, uint32_t function,
		     const struct change_values *values, bool *is_new)
{
	struct change_box wanted = { .parent = parent, .function = function };
	uint32_t id = map_get(&c->ids, hash_box(&wanted), same_box, (const void *[]){ c, &wanted });
	struct change_box *b;

	if (id == MAP_NONE)
		id = add_box(c, &wanted);
	b = &c->boxes.at[id];
	if (!b->is_there)
		b->now = (struct change_values){ 0 };
	b->is_there = true;
	b->now.first = int_add(b->now.first, values->first);
	b->now.second = int_add(b->now.second, values->second);
	*is_new = learn_function(c, function);
	return id;
}

/* ---- as JSON */

static void put_comma(struct buf *out, bool *more)
{
	buf_puts(out, *more ? "," : "");
	*more = true;
}

static void put_gone(const struct changes *c, struct buf *out)
{
	bool more = false;

	buf_puts(out, "\"gone\":[");
	for (uint32_t id = 1; id < c->boxes.n; id++) {
		if (!c->boxes.at[id].is_sent || c->boxes.at[id].is_there)
			continue;
		put_comma(out, &more);
		buf_uint(out, id);
	}
	buf_char(out, ']');
}

/* In the order in which they came: callers before their callees. */
static void put_new(const struct changes *c, struct buf *out)
{
	buf_puts(out, ",\"new\":[");
	for (size_t i = 0; i < c->added.n; i++) {
		const struct change_box *b = &c->boxes.at[c->added.at[i]];

		buf_printf(out, "%s[%u,%u,%u,%lld,%lld]", i ? "," : "", c->added.at[i], b->parent,
			   b->function, (long long)b->now.first, (long long)b->now.second);
	}
	buf_char(out, ']');
}

static bool has_changed(const struct change_box *b)
{
	return b->now.first != b->sent.first || b->now.second != b->sent.second;
}

static void put_changed(const struct changes *c, struct buf *out)
{
	bool more = false;

	buf_puts(out, ",\"changed\":[");
	for (uint32_t id = 0; id < c->boxes.n; id++) {
		const struct change_box *b = &c->boxes.at[id];

		if ((id && !b->is_sent) || !b->is_there || !has_changed(b))
			continue;
		put_comma(out, &more);
		buf_printf(out, "[%u,%lld,%lld]", id, (long long)b->now.first,
			   (long long)b->now.second);
	}
	buf_char(out, ']');
}

/* Ids of what is gone are free from now on. */
static void note_sent(struct changes *c)
{
	map_release(&c->ids);
	c->unused.n = c->added.n = 0;
	for (uint32_t id = 0; id < c->boxes.n; id++) {
		struct change_box *b = &c->boxes.at[id];

		b->is_sent = b->is_there;
		b->sent = b->now;
		if (id && b->is_there)
			map_add(&c->ids, hash_box(b), id);
		else if (id)
			vec_push(&c->unused, id);
	}
}

void changes_put(struct changes *c, struct buf *out)
{
	put_gone(c, out);
	put_new(c, out);
	put_changed(c, out);
	note_sent(c);
}
