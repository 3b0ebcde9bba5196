/* slots.h - where in a hash table of numbers one is looked for. The slots that are tried first are
 * near its beginning: who has few numbers touches few pages of a table that has room for many.
 * Tables only grow, so that the first free slot means that a number is not there. A slot has some
 * bits of the hash, too: it is seldom that the wrong one is looked at.
 */
#ifndef AGENT_SLOTS_H
#define AGENT_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SLOT_NUMBER = (1 << 22) - 1, /* the bits that are the number, never 0 */
	SLOTS_NEAR = 1 << 10,
	SLOTS_FAR = 1 << 14,
	TRIES_NEAR = 8,
	TRIES_FAR = 16,
};

/* The one to try, of so many, after `tries` others. */
static inline uint32_t slot_of(uint32_t hash, uint32_t tries, uint32_t slots)
{
	uint32_t room = tries < TRIES_NEAR ? SLOTS_NEAR : tries < TRIES_FAR ? SLOTS_FAR : slots;

	return (hash + tries) & ((room < slots ? room : slots) - 1);
}

static inline uint32_t slot_content(uint32_t hash, uint32_t number)
{
	return (hash & ~(uint32_t)SLOT_NUMBER) | number;
}

static inline bool slot_may_be(uint32_t content, uint32_t hash)
{
	return ((content ^ hash) & ~(uint32_t)SLOT_NUMBER) == 0;
}

#endif
