/* sequence.c - tables are reserved at their full size, which costs nothing until it is used. */
#include "agent/sequence.h"

#include <stdbool.h>
#include <string.h>

#include "agent/memory.h"
#include "agent/slots.h"

/* In words: what it is compared by, its length, then itself. */
struct sequence {
	uint32_t hash, n;
	uint64_t words[];
};

static uint32_t hash_words(const uint64_t *words, uint32_t n)
{
	uint64_t h = n;

	for (uint32_t i = 0; i < n; i++) {
		h = (h ^ words[i]) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	return (uint32_t)(h >> 32 ^ h);
}

static struct sequence *sequence_at(const struct sequences *s, uint32_t number)
{
	uint64_t *words = atomic_load_explicit(&s->words, memory_order_acquire);

	return (struct sequence *)(words + number);
}

static bool is_same(const struct sequence *q, uint32_t hash, const uint64_t *words, uint32_t n)
{
	return q->hash == hash && q->n == n && memcmp(q->words, words, n * sizeof(*words)) == 0;
}

/* Writes it where nobody looks yet. */
static uint32_t write_sequence(struct sequences *s, uint32_t hash, const uint64_t *words,
			       uint32_t n)
{
	uint32_t at = atomic_fetch_add(&s->used, n + 1) + 1; /* 0 is none */
	struct sequence *q;

	if (at + n + 1 >= s->words_max) {
		atomic_fetch_sub(&s->used, n + 1);
		return 0;
	}
	q = sequence_at(s, at);
	q->hash = hash;
	q->n = n;
	memcpy(q->words, words, n * sizeof(*words));
	return at;
}

static uint32_t lose(struct sequences *s)
{
	atomic_fetch_add(&s->lost, 1);
	return 0;
}

uint32_t sequence_add(struct sequences *s, const uint64_t *words, uint32_t n)
{
	uint32_t hash = hash_words(words, n), mine = 0, found;
	atomic_uint *index, *slot;

	if (!pages_once(&s->words, s->words_max * sizeof(uint64_t)))
		return lose(s);
	index = pages_once(&s->index, s->slots * sizeof(*index));
	if (!index)
		return lose(s);
	for (uint32_t tries = 0;; tries++) {
		slot = &index[slot_of(hash, tries, s->slots)];
		found = atomic_load_explicit(slot, memory_order_acquire);
		if (!found) {
			if (atomic_load(&s->count) >= s->slots / 2)
				return lose(s);
			if (!mine)
				mine = write_sequence(s, hash, words, n);
			if (!mine)
				return lose(s);
			if (atomic_compare_exchange_strong(slot, &found,
							   slot_content(hash, mine))) {
				atomic_fetch_add(&s->count, 1);
				return mine;
			}
		}
		if (slot_may_be(found, hash) &&
		    is_same(sequence_at(s, found & SLOT_NUMBER), hash, words, n))
			return found & SLOT_NUMBER; /* `mine`, if any, is left unused: rare */
	}
}

const uint64_t *sequence_words(const struct sequences *s, uint32_t number, uint32_t *n)
{
	*n = number ? sequence_at(s, number)->n : 0;
	return number ? sequence_at(s, number)->words : NULL;
}

void sequences_reset(struct sequences *s)
{
	pages_unmap(atomic_exchange(&s->words, NULL), s->words_max * sizeof(uint64_t));
	pages_unmap(atomic_exchange(&s->index, NULL), s->slots * sizeof(atomic_uint));
	atomic_store(&s->used, 0);
	atomic_store(&s->count, 0);
	atomic_store(&s->lost, 0);
}
