/* hot.h - what functions weigh in times that have passed, kept in memory.
 *
 * The heaviest functions of a fleet are asked for again and again, over times of which only the
 * last minutes are new. So sums by function of a series in a window that has come to rest
 * (catalog.h) stay here, packed, until something older is put or deleted (nchanges), or there is no
 * room: then those that the last queries did not use go. What functions are called is kept once for
 * all.
 *
 * Threads: any number.
 */
#ifndef STORE_HOT_H
#define STORE_HOT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/strings.h"
#include "base/vec.h"

struct hot_function {
	uint32_t name, file, module; /* strings; it is told by the first two */
};

struct hot_weight {
	uint32_t function;
	int64_t flat, cum;
};

/* Of a series in a time. */
struct hot_sum {
	bool has_type; /* else there is no such sample type in it */
	bool is_gauge; /* it is to be averaged */
	uint32_t unit; /* string */
	double total;  /* of all functions */
	uint64_t nprofiles;
	int64_t first, last, duration; /* times of profiles; what they took together */
	vec(struct hot_weight) weights;
};

struct hot_key {
	int64_t series, start, length;
	uint32_t sample_type; /* string */
	uint64_t nchanges;
};

struct hot_entry;

struct hot {
	pthread_rwlock_t lock;
	struct strings strings;
	vec(struct hot_function) functions;
	vec(struct hot_entry *) entries;
	struct map function_map, entry_map;
	uint64_t seed;
	size_t bytes, max_bytes;
	uint64_t nqueries, swept;
	unsigned nactive;
};

void hot_init(struct hot *h, uint64_t max_memory);
void hot_release(struct hot *h);
uint64_t hot_bytes(struct hot *h);

/* Between these, numbers of strings and functions stay. */
void hot_begin(struct hot *h);
void hot_end(struct hot *h);

uint32_t hot_string(struct hot *h, struct str s);
/* Is it there? Its weights are added to those of `sum`, which is otherwise replaced. */
bool hot_get(struct hot *h, const struct hot_key *key, struct hot_sum *sum);
/* Of functions in order; it may be left out for want of room. */
void hot_put(struct hot *h, const struct hot_key *key, const struct hot_sum *sum);

/* For many functions at a time; hot_function only between these. */
void hot_lock(struct hot *h);
void hot_unlock(struct hot *h);
uint32_t hot_function(struct hot *h, struct str name, struct str file, struct str module);

/* What a number stands for; good until hot_end. */
struct str hot_text(struct hot *h, uint32_t string);
struct hot_function hot_function_at(struct hot *h, uint32_t function);

#endif
