/* live.h - allocations that were sampled and not freed yet, by address.
 *
 * In front of them is a small filter, for free() of all the others: one bit for each of 8192 hashes
 * of an address, set while a live sample has that hash. Each free() reads it, so it must not take
 * up the cache. What passes it is looked for in a larger one, and only then takes a lock.
 */
#ifndef AGENT_LIVE_H
#define AGENT_LIVE_H

#include <stdbool.h>
#include <stdint.h>

struct live_sample {
	uintptr_t address; /* 0: a free slot */
	uint64_t size;
	float weight;	 /* how many allocations it stands for */
	uint32_t bucket; /* a number of its owner's */
};

enum { LIVE_HASH_BITS = 13, LIVE_FILTER_WORDS = (1 << LIVE_HASH_BITS) / 64 };
extern uint64_t live_filter[LIVE_FILTER_WORDS] __attribute__((visibility("hidden")));

/* Its upper half is all that free() needs, and takes one instruction. */
static inline uint64_t live_hash(const void *p)
{
	uintptr_t address = (uintptr_t)p;

	return (uint64_t)((uint32_t)address * 0x9e3779b1u) << 32 |
	       (address * 0x9e3779b97f4a7c15u) >> 32;
}

/* False: certainly not. */
static inline bool live_may_have(const void *p)
{
	uint64_t bit = live_hash(p) >> (64 - LIVE_HASH_BITS);

	return __atomic_load_n(&live_filter[bit >> 6], __ATOMIC_RELAXED) >> (bit & 63) & 1;
}

/* A sample of this address will be added soon: what is needed then is fetched into the cache. */
void live_expect(const void *p);
/* Adds a sample. True if one of the same address was there and is given back in `old`: its end was
 * not seen. What cannot be added is counted. */
bool live_add(const struct live_sample *sample, struct live_sample *old);
/* Takes out what has that address; false if there is nothing. */
bool live_take(const void *p, struct live_sample *sample);

uint64_t live_count(void);
uint64_t live_lost(void); /* samples there was no room for, or that a signal handler met locked */

/* Around a fork, so that no other thread is in here. */
void live_lock_all(void);
void live_unlock_all(void);

#endif
