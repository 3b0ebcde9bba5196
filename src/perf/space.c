#include "perf/space.h"

#include "base/map.h"

/* A treap: a search tree by start, a heap by priority, which is random. Ranges do not overlap. */
struct space_node {
	struct range range;
	uint64_t priority;
	uint32_t owner;
	struct space_node *left, *right;
};

struct editor {
	struct spaces *all;
	uint32_t owner;
};

void spaces_init(struct spaces *all)
{
	*all = (struct spaces){ .seed = map_seed() };
}

void spaces_release(struct spaces *all)
{
	arena_release(&all->nodes);
}

struct space space_fork(struct spaces *all, struct space *from)
{
	from->owner = ++all->nowners;
	return (struct space){ from->root, ++all->nowners };
}

static struct space_node *new_node(struct editor *x, const struct range *r)
{
	struct space_node *n = arena_new(&x->all->nodes, struct space_node);

	n->range = *r;
	n->priority = hash_mix(x->all->seed, ++x->all->ninserted);
	n->owner = x->owner;
	return n;
}

static struct space_node *own(struct editor *x, struct space_node *n)
{
	if (n->owner == x->owner)
		return n;
	n = arena_copy(&x->all->nodes, n, sizeof(*n));
	n->owner = x->owner;
	return n;
}

static struct space_node *join(struct editor *x, struct space_node *low, struct space_node *high)
{
	if (!low || !high)
		return low ? low : high;
	if (low->priority > high->priority) {
		low = own(x, low);
		low->right = join(x, low->right, high);
		return low;
	}
	high = own(x, high);
	high->left = join(x, low, high->left);
	return high;
}

/* Into the ranges that start below `at` and the others. */
static void split(struct editor *x, struct space_node *n, uint64_t at, struct space_node **low,
		  struct space_node **high)
{
	if (!n) {
		*low = *high = NULL;
		return;
	}
	n = own(x, n);
	if (n->range.start < at) {
		split(x, n->right, at, &n->right, high);
		*low = n;
	} else {
		split(x, n->left, at, low, &n->left);
		*high = n;
	}
}

/* Cuts what the last range of `low` has beyond `at`; returns that piece, or NULL. */
static struct space_node *cut_last(struct editor *x, struct space_node **low, uint64_t at)
{
	struct space_node **link = low;
	struct range rest;

	if (!*low)
		return NULL;
	for (*link = own(x, *link); (*link)->right; *link = own(x, *link))
		link = &(*link)->right;
	if ((*link)->range.limit <= at)
		return NULL;
	rest = (*link)->range;
	rest.start = at;
	(*link)->range.limit = at;
	return new_node(x, &rest);
}

void space_insert(struct spaces *all, struct space *s, const struct range *r)
{
	struct editor x = { all, s->owner };
	struct space_node *low, *middle, *high, *rest;

	if (r->start >= r->limit)
		return;
	split(&x, s->root, r->start, &low, &middle);
	rest = cut_last(&x, &low, r->start);
	if (rest)
		middle = join(&x, rest, middle);
	split(&x, middle, r->limit, &middle, &high);
	rest = cut_last(&x, &middle, r->limit);
	if (rest)
		high = join(&x, rest, high);
	s->root = join(&x, join(&x, low, new_node(&x, r)), high);
}

const struct range *space_find(const struct space *s, uint64_t address)
{
	const struct space_node *n = s->root;

	while (n) {
		if (address < n->range.start)
			n = n->left;
		else if (address >= n->range.limit)
			n = n->right;
		else
			return &n->range;
	}
	return NULL;
}
