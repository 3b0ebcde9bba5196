/* live.c - shards of open addressing with linear probing. Bits of the hash choose the shard in such
 * a way that all addresses of one word of a filter are in the same, so its lock covers that word
 * too. Tables double when they are three quarters full; deletion moves later samples back, so that
 * no marks are left behind.
 *
 * A page that is touched for the first time costs more than a sample does. Most programs have few
 * live samples: these are in small tables, side by side, and in the small filter alone. */
#include "agent/live.h"

#include <string.h>

#include "agent/local.h"
#include "agent/memory.h"

enum {
	SHARD_BITS = 6,
	SHARDS = 1 << SHARD_BITS,
	FIRST_SLOTS = 16,
	MAPPED_SLOTS = 128,   /* of a table that has pages to itself */
	LAST_SLOTS = 1 << 18, /* of each shard: 12 million samples in all */
};

static struct shard {
	struct lock lock;
	uint32_t n, slots; /* slots: a power of two, or 0 */
	struct live_sample *at;
	atomic_bool is_large; /* its samples are in the large filter too; for ever */
} __attribute__((aligned(64))) shards[SHARDS];
static struct live_sample first_tables[SHARDS][FIRST_SLOTS];

/* With ten thousands of live samples most bits of the small filter are set. What passes it is
 * looked for in a larger one, which is still faster than a lock and a table; but not before there
 * are more samples than fit into the first tables. */
enum { LARGE_HASH_BITS = 19 };
uint64_t live_filter[LIVE_FILTER_WORDS];
static uint64_t large_filter[(1 << LARGE_HASH_BITS) / 64];
static uint16_t counts[1 << LIVE_HASH_BITS]; /* of live samples; the highest number: for ever */
static uint8_t large_counts[1 << LARGE_HASH_BITS];
static atomic_ullong lost;

static struct shard *shard_of(uint64_t hash)
{
	return &shards[hash >> (64 - LIVE_HASH_BITS + 6) & (SHARDS - 1)];
}

static uint32_t slot_of(const struct shard *s, uint64_t hash)
{
	return (uint32_t)(hash >> 8) & (s->slots - 1);
}

/* ---- locks. Who is inside the agent already interrupted it in a signal handler, maybe just where
 * it holds this lock, and must not wait. */

static bool enter(struct shard *s)
{
	if (!local.inside) {
		lock_take(&s->lock);
		return true;
	}
	for (int tries = 0; tries < 1000; tries++) {
		if (lock_try(&s->lock))
			return true;
		__builtin_ia32_pause();
	}
	atomic_fetch_add(&lost, 1);
	return false;
}

static void leave(struct shard *s)
{
	lock_give(&s->lock);
}

/* ---- the filters */

static void set_bit(uint64_t *words, uint64_t bit)
{
	__atomic_store_n(&words[bit >> 6], words[bit >> 6] | 1ull << (bit & 63), __ATOMIC_RELAXED);
}

static void clear_bit(uint64_t *words, uint64_t bit)
{
	__atomic_store_n(&words[bit >> 6], words[bit >> 6] & ~(1ull << (bit & 63)),
			 __ATOMIC_RELAXED);
}

static void large_add(uint64_t hash)
{
	uint64_t bit = hash >> (64 - LARGE_HASH_BITS);

	if (large_counts[bit] != UINT8_MAX)
		large_counts[bit]++;
	set_bit(large_filter, bit);
}

static void large_remove(uint64_t hash)
{
	uint64_t bit = hash >> (64 - LARGE_HASH_BITS);

	if (large_counts[bit] != UINT8_MAX && --large_counts[bit] == 0)
		clear_bit(large_filter, bit);
}

static bool is_large(const struct shard *s)
{
	return atomic_load_explicit(&s->is_large, memory_order_acquire);
}

static void filter_add(const struct shard *s, uint64_t hash)
{
	uint64_t bit = hash >> (64 - LIVE_HASH_BITS);

	if (counts[bit] != UINT16_MAX)
		counts[bit]++;
	set_bit(live_filter, bit);
	if (is_large(s))
		large_add(hash);
}

static void filter_remove(const struct shard *s, uint64_t hash)
{
	uint64_t bit = hash >> (64 - LIVE_HASH_BITS);

	if (counts[bit] != UINT16_MAX && --counts[bit] == 0)
		clear_bit(live_filter, bit);
	if (is_large(s))
		large_remove(hash);
}

static bool large_may_have(uint64_t hash)
{
	uint64_t bit = hash >> (64 - LARGE_HASH_BITS);

	return __atomic_load_n(&large_filter[bit >> 6], __ATOMIC_RELAXED) >> (bit & 63) & 1;
}

/* ---- tables */

/* The slot that has the address, or the free one where it would be. */
static struct live_sample *find(const struct shard *s, uintptr_t address, uint64_t hash)
{
	uint32_t i = slot_of(s, hash);

	while (s->at[i].address && s->at[i].address != address)
		i = (i + 1) & (s->slots - 1);
	return &s->at[i];
}

static uint64_t hash_of(const struct live_sample *sample)
{
	return live_hash((const void *)sample->address);
}

/* Who frees looks there without the lock: all of them must be in it first. */
static void make_large(struct shard *s)
{
	for (uint32_t i = 0; i < s->slots; i++)
		if (s->at[i].address)
			large_add(hash_of(&s->at[i]));
	atomic_store_explicit(&s->is_large, true, memory_order_release);
}

static bool grow(struct shard *s)
{
	struct shard larger = { .slots = s->slots == FIRST_SLOTS ? MAPPED_SLOTS : s->slots * 2 };

	if (larger.slots > LAST_SLOTS)
		return false;
	larger.at = pages_map(larger.slots * sizeof(*larger.at));
	if (!larger.at)
		return false;
	for (uint32_t i = 0; i < s->slots; i++)
		if (s->at[i].address)
			*find(&larger, s->at[i].address, hash_of(&s->at[i])) = s->at[i];
	if (is_large(s))
		pages_unmap(s->at, s->slots * sizeof(*s->at));
	else
		make_large(s);
	s->at = larger.at;
	s->slots = larger.slots;
	return true;
}

/* With its first table, if it has none. */
static void begin(struct shard *s)
{
	if (s->slots)
		return;
	s->at = first_tables[s - shards];
	s->slots = FIRST_SLOTS;
}

static bool has_room(struct shard *s)
{
	return s->n < s->slots / 4 * 3 || grow(s) || s->n + 1 < s->slots;
}

/* Frees a slot. Samples after it move up if they are then nearer to where they belong. */
static void clear(struct shard *s, struct live_sample *slot)
{
	uint32_t hole = (uint32_t)(slot - s->at), mask = s->slots - 1;

	for (uint32_t i = (hole + 1) & mask; s->at[i].address; i = (i + 1) & mask) {
		uint32_t home = slot_of(s, hash_of(&s->at[i]));

		if (((i - home) & mask) >= ((i - hole) & mask)) {
			s->at[hole] = s->at[i];
			hole = i;
		}
	}
	s->at[hole].address = 0;
}

/* Tables are larger than caches. Where a table moves meanwhile this is in vain, and harmless. */
static void fetch(const struct shard *s, uint64_t hash)
{
	const struct live_sample *at = __atomic_load_n(&s->at, __ATOMIC_RELAXED);
	uint32_t slots = __atomic_load_n(&s->slots, __ATOMIC_RELAXED);

	__builtin_prefetch(at + ((uint32_t)(hash >> 8) & (slots - 1)), 1);
	if (is_large(s))
		__builtin_prefetch(&large_counts[hash >> (64 - LARGE_HASH_BITS)], 1);
}

void live_expect(const void *p)
{
	uint64_t hash = live_hash(p);

	fetch(shard_of(hash), hash);
}

bool live_add(const struct live_sample *sample, struct live_sample *old)
{
	uint64_t hash = hash_of(sample);
	struct shard *s = shard_of(hash);
	struct live_sample *slot;
	bool is_known = false;

	*old = *sample; /* what is not added, has ended */
	if (!enter(s))
		return true;
	begin(s);
	if (has_room(s)) {
		slot = find(s, sample->address, hash);
		is_known = slot->address;
		*old = *slot;
		*slot = *sample;
		if (!is_known) {
			s->n++;
			filter_add(s, hash);
		}
	} else {
		is_known = true;
		atomic_fetch_add(&lost, 1);
	}
	leave(s);
	return is_known;
}

bool live_take(const void *p, struct live_sample *sample)
{
	uint64_t hash = live_hash(p);
	struct shard *s = shard_of(hash);
	struct live_sample *slot;
	bool is_known = false;

	fetch(s, hash);
	if ((is_large(s) && !large_may_have(hash)) || !enter(s))
		return false;
	if (s->slots) {
		slot = find(s, (uintptr_t)p, hash);
		is_known = slot->address;
		*sample = *slot;
		if (is_known) {
			clear(s, slot);
			filter_remove(s, hash);
			s->n--;
		}
	}
	leave(s);
	return is_known;
}

uint64_t live_count(void)
{
	uint64_t n = 0;

	for (int i = 0; i < SHARDS; i++)
		n += shards[i].n;
	return n;
}

uint64_t live_lost(void)
{
	return atomic_load(&lost);
}

void live_lock_all(void)
{
	for (int i = 0; i < SHARDS; i++)
		lock_take(&shards[i].lock);
}

void live_unlock_all(void)
{
	for (int i = SHARDS; i-- > 0;)
		lock_give(&shards[i].lock);
}
