#include "store/changes.h"

#include <string.h>

#include "base/int.h"

/* How far a change is from the next, next to how far that is from the last one. */
static double nearness(const struct changes *c, unsigned i, int64_t last)
{
	return (double)int_distance(c->at[i].from, c->at[i + 1].from) /
	       ((double)int_distance(c->at[i + 1].from, last) + 1);
}

/* One less: the two that are nearest become one, which says the most of both. So what is late all
 * the time makes little of what is older doubtful. */
static void join_nearest(struct changes *c, int64_t last)
{
	unsigned nearest = 0;

	for (unsigned i = 1; i + 1 < c->nat; i++)
		if (nearness(c, i, last) < nearness(c, nearest, last))
			nearest = i;
	c->at[nearest].number = c->at[nearest + 1].number;
	c->nat--;
	memmove(&c->at[nearest + 1], &c->at[nearest + 2], (c->nat - nearest - 1) * sizeof(*c->at));
}

void changes_add(struct changes *c, int64_t from)
{
	while (c->nat && c->at[c->nat - 1].from >= from)
		c->nat--;
	if (c->nat == CHANGES_KEPT)
		join_nearest(c, from);
	c->at[c->nat++] = (struct changed){ ++c->n, from };
}

void changes_add_old(struct changes *c, int64_t until)
{
	if (!c->old_number || until > c->old_until)
		c->old_until = until;
	c->old_number = ++c->n;
}

bool changes_hold(const struct changes *c, uint64_t n, int64_t start, int64_t end)
{
	if (n == c->n)
		return true;
	if (c->old_number > n && start <= c->old_until)
		return false;
	for (unsigned i = 0; i < c->nat; i++)
		if (c->at[i].number > n && c->at[i].from <= end)
			return false;
	return true;
}
