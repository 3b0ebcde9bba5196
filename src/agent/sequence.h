/* sequence.h - sequences of words that were seen, each once: stacks, texts, sets of labels.
 *
 * Tables have room for a fixed number; more memory is touched only as it is needed. They only grow
 * until they are given up as a whole, nothing moves and nothing is locked: hooks of any thread add
 * to them, even those that run inside a program's signal handler.
 */
#ifndef AGENT_SEQUENCE_H
#define AGENT_SEQUENCE_H

#include <stdatomic.h>
#include <stdint.h>

struct sequences {
	uint32_t slots;	       /* a power of two; half as many sequences fit */
	uint32_t words_max;    /* of all of them, up to SLOT_NUMBER + 1 */
	_Atomic(void *) words; /* of uint64_t; reserved when first used, as is the next */
	_Atomic(void *) index; /* of atomic_uint: slot -> position in words; 0: free */
	atomic_uint used;      /* words */
	atomic_uint count;
	atomic_ullong lost; /* those there was no room for */
};

/* Its number, good until the next reset; 0: there is no room. */
uint32_t sequence_add(struct sequences *s, const uint64_t *words, uint32_t n);
/* NULL and no words for the number 0. */
const uint64_t *sequence_words(const struct sequences *s, uint32_t number, uint32_t *n);
/* Empties it and gives its memory back. Nobody may use it meanwhile. */
void sequences_reset(struct sequences *s);

#endif
