/* stack.c - all tables are reserved at their full size, which costs nothing until it is used, so
 * that nothing ever moves and a number or pointer stays good. */
#include "agent/stack.h"

#include <string.h>

#include "agent/memory.h"

enum {
	INDEX_SIZE = 1 << 17, /* slots, a power of two */
	STACKS_MAX = INDEX_SIZE / 2,
	WORDS_MAX = 4 << 20, /* 32 MB of frames, at the most */
	BUCKETS_MAX = 1 << 16,
	BUCKET_SLOTS = BUCKETS_MAX * 2,
};

/* In words: what a stack is compared by, its length, then the frames. */
struct stack {
	uint32_t hash, n;
	frame_t frames[];
};

static struct {
	_Atomic(void *) words; /* of uint64_t */
	_Atomic(void *) index; /* of atomic_uint: slot -> position in words; 0: free */
	atomic_uint used;      /* words */
	atomic_uint count;
	atomic_ullong lost;
} stacks;

/* Reserves memory once, whoever comes first. */
static void *reserve(_Atomic(void *) *to, size_t bytes)
{
	void *p = atomic_load_explicit(to, memory_order_acquire), *fresh;

	if (p)
		return p;
	fresh = pages_map(bytes);
	if (!fresh)
		return NULL;
	if (atomic_compare_exchange_strong(to, &p, fresh))
		return fresh;
	pages_unmap(fresh, bytes);
	return p;
}

static uint32_t hash_frames(const frame_t *frames, uint32_t n)
{
	uint64_t h = n;

	for (uint32_t i = 0; i < n; i++) {
		h = (h ^ frames[i]) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	return (uint32_t)(h >> 32 ^ h);
}

static struct stack *stack_at(uint32_t stack)
{
	uint64_t *words = atomic_load_explicit(&stacks.words, memory_order_acquire);

	return (struct stack *)(words + stack);
}

static bool is_same(const struct stack *s, uint32_t hash, const frame_t *frames, uint32_t n)
{
	return s->hash == hash && s->n == n && memcmp(s->frames, frames, n * sizeof(*frames)) == 0;
}

/* Writes it where nobody looks yet. */
static uint32_t write_stack(uint32_t hash, const frame_t *frames, uint32_t n)
{
	uint32_t at = atomic_fetch_add(&stacks.used, n + 1) + 1; /* 0 is none */
	struct stack *s;

	if (at + n + 1 >= WORDS_MAX) {
		atomic_fetch_sub(&stacks.used, n + 1);
		return 0;
	}
	s = stack_at(at);
	s->hash = hash;
	s->n = n;
	memcpy(s->frames, frames, n * sizeof(*frames));
	return at;
}

static uint32_t lose(void)
{
	atomic_fetch_add(&stacks.lost, 1);
	return 0;
}

uint32_t stack_add(const frame_t *frames, uint32_t n)
{
	uint32_t hash = hash_frames(frames, n), slot = hash & (INDEX_SIZE - 1), mine = 0, found;
	atomic_uint *index;

	if (!reserve(&stacks.words, WORDS_MAX * sizeof(uint64_t)))
		return lose();
	index = reserve(&stacks.index, INDEX_SIZE * sizeof(*index));
	if (!index)
		return lose();
	for (;; slot = (slot + 1) & (INDEX_SIZE - 1)) {
		found = atomic_load_explicit(&index[slot], memory_order_acquire);
		if (!found) {
			if (atomic_load(&stacks.count) >= STACKS_MAX)
				return lose();
			if (!mine)
				mine = write_stack(hash, frames, n);
			if (!mine)
				return lose();
			if (atomic_compare_exchange_strong(&index[slot], &found, mine)) {
				atomic_fetch_add(&stacks.count, 1);
				return mine;
			}
		}
		if (is_same(stack_at(found), hash, frames, n))
			return found; /* `mine`, if any, is left unused: rare */
	}
}

const frame_t *stack_frames(uint32_t stack, uint32_t *n)
{
	*n = stack ? stack_at(stack)->n : 0;
	return stack ? stack_at(stack)->frames : NULL;
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
	uint64_t hash = ((uint64_t)labels << 32 | stack) * 0x9e3779b97f4a7c15u;
	uint32_t slot = (uint32_t)(hash >> 40) & (BUCKET_SLOTS - 1), mine = 0, found;
	struct bucket *at = reserve(&b->at, BUCKETS_MAX * sizeof(*at));
	atomic_uint *index = reserve(&b->index, BUCKET_SLOTS * sizeof(*index));

	if (!at || !index)
		return NULL;
	for (;; slot = (slot + 1) & (BUCKET_SLOTS - 1)) {
		found = atomic_load_explicit(&index[slot], memory_order_acquire);
		if (!found) {
			if (!mine) {
				if (atomic_load(&b->n) >= BUCKETS_MAX - 64)
					return NULL;
				mine = atomic_fetch_add(&b->n, 1) + 1;
				at[mine - 1].stack = stack;
				at[mine - 1].labels = labels;
			}
			if (atomic_compare_exchange_strong(&index[slot], &found, mine))
				return &at[mine - 1];
		}
		if (at[found - 1].stack == stack && at[found - 1].labels == labels)
			return &at[found - 1]; /* `mine`, if any, stays empty: rare */
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
