/* stack.c - tables of buckets are reserved at their full size, so that nothing ever moves. */
#include "agent/stack.h"

#include "agent/memory.h"
#include "agent/slots.h"

enum {
	BUCKETS_MAX = 1 << 16,
	BUCKET_SLOTS = BUCKETS_MAX * 2,
};

static struct sequences stacks = STACKS_INIT;

uint32_t stack_add(const frame_t *frames, uint32_t n)
{
	return sequence_add(&stacks, frames, n);
}

const frame_t *stack_frames(uint32_t stack, uint32_t *n)
{
	return sequence_words(&stacks, stack, n);
}

uint64_t stacks_lost(void)
{
	return atomic_load(&stacks.lost);
}

uint32_t stacks_count(void)
{
	return atomic_load(&stacks.count);
}

/* ---- buckets */

struct bucket *bucket_of(struct buckets *b, uint32_t stack, uint32_t labels)
{
	uint64_t mixed = ((uint64_t)labels << 32 | stack) * 0x9e3779b97f4a7c15u;
	uint32_t hash = (uint32_t)(mixed >> 32), mine = 0, found;
	struct bucket *all = pages_once(&b->at, BUCKETS_MAX * sizeof(*all)), *at;
	atomic_uint *index = pages_once(&b->index, BUCKET_SLOTS * sizeof(*index)), *slot;

	if (!all || !index)
		return NULL;
	for (uint32_t tries = 0;; tries++) {
		slot = &index[slot_of(hash, tries, BUCKET_SLOTS)];
		found = atomic_load_explicit(slot, memory_order_acquire);
		if (!found) {
			if (!mine) {
				if (atomic_load(&b->n) >= BUCKETS_MAX - 64)
					return NULL;
				mine = atomic_fetch_add(&b->n, 1) + 1;
				all[mine - 1].stack = stack;
				all[mine - 1].labels = labels;
			}
			if (atomic_compare_exchange_strong(slot, &found, slot_content(hash, mine)))
				return &all[mine - 1];
		}
		at = &all[(found & SLOT_NUMBER) - 1];
		if (slot_may_be(found, hash) && at->stack == stack && at->labels == labels)
			return at; /* `mine`, if any, stays empty: rare */
	}
}

void bucket_add(struct bucket *b, unsigned value, double amount)
{
	double was = atomic_load_explicit(&b->values[value], memory_order_relaxed);

	while (!atomic_compare_exchange_weak(&b->values[value], &was, was + amount))
		;
}

uint32_t buckets_count(const struct buckets *b)
{
	return atomic_load(&b->n);
}

struct bucket *bucket_at(const struct buckets *b, uint32_t i)
{
	struct bucket *at = atomic_load(&b->at);

	return &at[i];
}

void buckets_reset(struct buckets *b)
{
	pages_unmap(atomic_exchange(&b->at, NULL), BUCKETS_MAX * sizeof(struct bucket));
	pages_unmap(atomic_exchange(&b->index, NULL), BUCKET_SLOTS * sizeof(atomic_uint));
	atomic_store(&b->n, 0);
}
