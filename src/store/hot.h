/* hot.h - what functions weigh in times that have passed, kept in memory.
 *
 * The heaviest functions of a fleet are asked for again and again, over times of which only the
 * last minutes are new. So sums by function of a series in a window that has come to rest
 * (catalog.h) stay here, packed, until something older is put or deleted (changes.h), or there is
 * no room: then those that the last queries did not use go. Of times that have not come to rest
 * there is what was known of them last (`seen`), to which what is new is added. What functions are
 * called is kept once for all.
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
#include "store/changes.h"

struct hot_function {
	uint32_t name, file, module; /* strings; it is told by the first two */
};

struct hot_weight {
	uint32_t function;
	int64_t flat, cum;
};

/* Rows of profiles of a series, from a time on. */
struct hot_seen {
	int64_t nrows, last_row, last_time;
};

#define HOT_EVER UINT64_MAX

/* Of a series in a time. */
struct hot_sum {
	bool has_type;		       /* else there is no such sample type in it */
	bool is_gauge;		       /* it is to be averaged */
	uint32_t name, unit;	       /* strings: of the sample type */
	double total;		       /* of all functions */
	uint64_t nprofiles, ntyped;    /* all; those whose values are in it (kind.h) */
	double rounds;		       /* of gauges: how often each process told (rounds.h) */
	int64_t first, last, duration; /* times of profiles; what they took together */
	struct hot_seen seen;	       /* of an open window */
	uint64_t generation;	       /* of names (naming.h): good as long as that, or HOT_EVER */
	vec(struct hot_weight) weights;
};

struct hot_key {
	int64_t series, start, length;
	uint32_t sample_type;	       /* string */
	bool is_open;		       /* more may come */
	const struct changes *changes; /* of the series, before it was read */
	uint64_t generation;	       /* of names, now */
};

struct hot_entry;

/* What functions are of: a text of each, made by whoever asks (struct store_top_params). */
typedef struct str hot_group(void *ctx, struct str function, struct str file, struct str module);
struct hot_groups {
	hot_group *group;
	void *ctx;
	vec(uint32_t) of; /* functions: string + 1, or 0 */
};
enum { HOT_NGROUPS = 4 };

struct hot {
	pthread_rwlock_t lock;
	struct strings strings;
	vec(struct hot_function) functions;
	vec(struct hot_entry *) entries;
	struct map function_map, entry_map;
	struct hot_groups groups[HOT_NGROUPS];
	unsigned next_group;
	uint64_t seed;
	size_t bytes, max_bytes;
	uint64_t nqueries, swept;
	_Atomic uint64_t names; /* goes up when numbers of functions mean others */
	atomic_bool has_new_open;
	unsigned nactive;
};

void hot_init(struct hot *h, uint64_t max_memory);
void hot_release(struct hot *h);
uint64_t hot_bytes(struct hot *h);

/* Between these, numbers of strings and functions stay. */
void hot_begin(struct hot *h);
void hot_end(struct hot *h);
/* The first of them for who adds to what is known, and does not ask: what queries use stays. */
void hot_begin_adding(struct hot *h);
/* Names alone take more than all may. */
bool hot_is_full(struct hot *h);

uint32_t hot_string(struct hot *h, struct str s);
uint32_t hot_function(struct hot *h, struct str name, struct str file, struct str module);
/* The same of one that is not known, most likely. */
uint32_t hot_new_function(struct hot *h, struct str name, struct str file, struct str module);
/* What a number stands for; good until hot_end. */
struct str hot_text(struct hot *h, uint32_t string);
struct hot_function hot_function_at(struct hot *h, uint32_t function);
uint32_t hot_nfunctions(struct hot *h);
/* Groups that are known of functions are copied here, or, at the end, from here. */
void hot_get_groups(struct hot *h, struct hot_groups *to);
void hot_put_groups(struct hot *h, struct hot_groups *from);

bool hot_has(struct hot *h, const struct hot_key *key);
/* Is it there? Its weights are added to those of `sum`, which is otherwise replaced. */
bool hot_get(struct hot *h, const struct hot_key *key, struct hot_sum *sum);
/* Of functions in order; it may be left out for want of room. */
void hot_put(struct hot *h, const struct hot_key *key, const struct hot_sum *sum);
/* Open windows that ended before this time have come to rest, and are known as such. */
void hot_drop_open(struct hot *h, int64_t until);

/* ---- for who writes them down (kept.h) */

/* An entry as bytes: good as long as the numbers of functions are. */
struct hot_packed {
	struct hot_key key; /* without its changes: */
	uint64_t nchanges;
	struct hot_sum sum; /* without its weights */
	uint32_t n;
	struct str data;
};
/* Those of the default sample type that hold for ever and were not handed out before, of open
 * windows or of others, up to `max` at a time; they lie in `a`. *at begins with 0, and is where to
 * go on. */
size_t hot_take_new(struct hot *h, bool is_open, struct arena *a, struct hot_packed *to, size_t max,
		    size_t *at);
/* Has an open window been put since this was asked last? */
bool hot_has_new_open(struct hot *h);
/* Puts back what was taken in this process or an earlier one. `data` is untrusted. */
void hot_put_packed(struct hot *h, const struct hot_packed *p);

#endif
