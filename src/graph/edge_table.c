#include "graph/edge_table.h"

#include <stdlib.h>

#include "base/map.h"

void edge_table_init(struct edge_table *t, bool with_divs, unsigned bits)
{
	*t = (struct edge_table){ .bits = bits, .multiplier = map_seed() | 1 };
	t->slots = xcalloc((size_t)1 << bits, sizeof(*t->slots));
	t->samples = xcalloc((size_t)1 << bits, sizeof(*t->samples));
	if (with_divs)
		t->divs = xcalloc((size_t)1 << bits, sizeof(*t->divs));
}

void edge_table_release(struct edge_table *t)
{
	free(t->slots);
	free(t->samples);
	free(t->divs);
}

void edge_table_grow(struct edge_table *t)
{
	struct edge_table old = *t;

	edge_table_init(t, old.divs, old.bits + 1);
	for (size_t i = 0; i < (size_t)1 << old.bits; i++) {
		if (old.slots[i].key) {
			size_t to = edge_table_find(t, old.slots[i].key);

			t->slots[to] = old.slots[i];
			t->samples[to] = old.samples[i];
			if (t->divs)
				t->divs[to] = old.divs[i];
		}
	}
	edge_table_release(&old);
}

void edge_table_join(struct edge_table *t, const struct edge_table *from)
{
	for (size_t i = 0; i < (size_t)1 << from->bits; i++) {
		const struct edge_slot *e = &from->slots[i];
		size_t slot;

		if (!e->key)
			continue;
		slot = edge_table_find(t, e->key);
		edge_table_add(t, slot, e->key, e->weight);
		if (t->divs)
			t->divs[slot] = int_add(t->divs[slot], from->divs[i]);
	}
}

/* ---- as a list */

static struct edge edge_at(const struct edge_table *t, size_t slot)
{
	const struct edge_slot *s = &t->slots[slot];

	return (struct edge){ .from = (uint32_t)(s->key >> 32) & FRAME_NODE,
			      .to = (uint32_t)s->key & FRAME_NODE,
			      .weight = s->weight,
			      .div = t->divs ? t->divs[slot] : 0,
			      .is_inline = !(s->key & EDGE_SPREADS),
			      .is_residual = s->key & EDGE_RESIDUAL };
}

static uint32_t end_of(const struct edge_slot *s, bool from)
{
	return (uint32_t)(s->key >> (from ? 32 : 0)) & FRAME_NODE;
}

/* How many have a lower end, by end. */
static uint32_t *find_starts(struct arena *a, const struct edge_table *t, uint32_t nnodes,
			     bool from)
{
	uint32_t *starts = arena_many(a, (size_t)nnodes + 1, uint32_t);

	for (size_t i = 0; i < (size_t)1 << t->bits; i++)
		if (t->slots[i].key)
			starts[end_of(&t->slots[i], from) + 1]++;
	for (uint32_t i = 1; i <= nnodes; i++)
		starts[i] += starts[i - 1];
	return starts;
}

/* By where they come from, and then by where they lead to: counted, not compared. */
static void take_in_order(struct graph *g, const struct edge_table *t)
{
	enum { AHEAD = 16 };
	struct arena scratch = { 0 };
	uint32_t *slots = arena_many_raw(&scratch, g->nedges, uint32_t);
	uint32_t *starts = find_starts(&scratch, t, g->nnodes, false);

	for (size_t i = 0; i < (size_t)1 << t->bits; i++)
		if (t->slots[i].key)
			slots[starts[end_of(&t->slots[i], false)]++] = (uint32_t)i;
	starts = find_starts(&scratch, t, g->nnodes, true);
	for (uint32_t i = 0; i < g->nedges; i++) {
		uint32_t next = i + AHEAD < g->nedges ? slots[i + AHEAD] : 0;

		__builtin_prefetch(&t->slots[next]);
		g->edges[starts[end_of(&t->slots[slots[i]], true)]++] = edge_at(t, slots[i]);
	}
	arena_release(&scratch);
}

void edge_table_take(struct arena *a, struct graph *g, const struct edge_table *t, bool in_order)
{
	uint32_t n = 0;

	g->edges = arena_many_raw(a, t->used, struct edge);
	g->nedges = t->used;
	if (in_order) {
		take_in_order(g, t);
		return;
	}
	for (size_t i = 0; i < (size_t)1 << t->bits; i++)
		if (t->slots[i].key)
			g->edges[n++] = edge_at(t, i);
}
