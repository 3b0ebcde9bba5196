/* stack.h - stacks that were seen, each once, and sums by them.
 *
 * Tables have room for a fixed number; more memory is touched only as it is needed. They only grow,
 * nothing is locked: hooks of any thread add to them, even those that run inside a program's
 * signal handler.
 *
 * Stacks of calls (of malloc, of locks) are kept forever: a program has so many and no more. Where
 * samples are taken a thread may be at any instruction, there are always new ones: each kind of
 * profile has a table of its own for them, which ends with the profile.
 */
#ifndef AGENT_STACK_H
#define AGENT_STACK_H

#include "agent/module.h"
#include "agent/sequence.h"

/* Room for the stacks of a profile: 32 MB of frames, at the most. */
#define STACKS_INIT                                    \
	{                                              \
		.slots = 1 << 17, .words_max = 4 << 20 \
	}

/* The number of a stack of calls; 0: there is no room, which is counted. */
uint32_t stack_add(const frame_t *frames, uint32_t n);
const frame_t *stack_frames(uint32_t stack, uint32_t *n);
uint64_t stacks_lost(void);
uint32_t stacks_count(void);

/* Sums of one profile, by stack and labels. Floating point, since samples of some kinds stand for
 * fractions; what they stand for is added up before it is rounded. */
struct bucket {
	uint32_t stack, labels;
	_Atomic double values[4];
};
struct buckets {
	_Atomic(void *) at, index; /* reserved when first used */
	atomic_uint n;
};
/* NULL: there is no room. */
struct bucket *bucket_of(struct buckets *b, uint32_t stack, uint32_t labels);
void bucket_add(struct bucket *b, unsigned value, double amount);
/* In no order; those being added now may be missing. */
uint32_t buckets_count(const struct buckets *b);
struct bucket *bucket_at(const struct buckets *b, uint32_t i);
/* Empties it and gives its memory back. Nobody may use it meanwhile. */
void buckets_reset(struct buckets *b);

#endif
